use std::path::{Path, PathBuf};

/// The environment variable that names the program, for those who have their own.
pub const PROGRAM_VARIABLE: &str = "PLEACH_NATS_SERVER";

/// Where `cargo xtask` puts what tests need, below the target directory.
const TOOLS: &str = "tools";

/// The nats-server to start: what [`PROGRAM_VARIABLE`] says, else what `cargo xtask tools` has installed.
///
/// # Panics
/// If there is none: says how to get it.
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAM_VARIABLE) {
        let named = PathBuf::from(named);
        assert!(named.is_file(), "{PROGRAM_VARIABLE} names {}, which is no file", named.display());
        return named;
    }
    installed("nats-server").unwrap_or_else(|| {
        panic!("these tests need a nats-server: run `cargo xtask tools`, or name one in {PROGRAM_VARIABLE}")
    })
}

/// Something else that `cargo xtask tools` has installed.
///
/// # Panics
/// If it is not there: says how to get it.
pub fn tool(name: &str) -> PathBuf {
    installed(name).unwrap_or_else(|| panic!("these tests need {name}: run `cargo xtask tools`"))
}

/// Whoever asks was built below the target directory, at whatever depth.
fn installed(name: &str) -> Option<PathBuf> {
    let asking = std::env::current_exe().unwrap_or_default();
    let mut places = asking.ancestors().map(|directory: &Path| directory.join(TOOLS).join(name));
    places.find(|place| place.exists())
}
