use std::path::Path;
use std::process::Command;

use pleach_engine::{Batch, Engine, ErrorKind};
use pollster::block_on;

use crate::store::{bucket, contents, create, get, key, put, small};

/// A small disk of its own.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts one; none where the user may not.
    fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(directory.path())
            .status()
            .is_ok_and(|status| status.success());
        mounted.then_some(Self { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.directory.path()).status();
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a test that cannot run here says so")]
fn a_full_disk_refuses_writes_loses_nothing_and_goes_on_when_there_is_room_again() {
    let Some(disk) = SmallDisk::mount("2m") else {
        assert!(std::env::var_os("CI").is_none(), "a small disk is needed, and mounting one is not allowed");
        return println!("skipped: mounting a small disk is not allowed here");
    };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1024 * 1024]).expect("room for ballast");
    let store = disk.path().join("store");
    let clock = || std::sync::Arc::new(pleach_engine::SystemClock::new());
    let engine = pleach_embedded::EmbeddedEngine::open_with(&store, small(), clock()).expect("it opens");
    let name = create(&engine, 1);
    let mut written = Vec::new();
    let error = loop {
        let at = format!("k.{}", written.len());
        let batch = Batch::new().put(key(&at), vec![b'v'; 1000]);
        match block_on(engine.commit(&bucket("b"), batch)) {
            Ok(_) => written.push(at),
            Err(error) => break error,
        }
        assert!(written.len() < 10_000, "the disk never got full");
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("no space"), "{error}");
    assert!(!written.is_empty());
    for at in &written {
        assert!(get(&engine, &name, at).is_some(), "{at} was acknowledged");
    }
    assert_eq!(get(&engine, &name, &format!("k.{}", written.len())), None, "what was refused is not there");

    std::fs::remove_file(&ballast).expect("the ballast goes");
    let again = (0..5000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        block_on(engine.commit(&name, Batch::new().put(key("after"), "room"))).is_ok()
    });
    assert!(again, "writes go on without a restart");
    drop(engine);

    let engine =
        pleach_embedded::EmbeddedEngine::open_with(&store, small(), clock()).expect("it opens again");
    assert_eq!(contents(&engine, &name).expect("a scan").len(), written.len() + 1);
    put(&engine, &name, "more", "v");
}
