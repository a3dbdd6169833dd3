use super::Finding;
use super::tree::Tree;

/// Finds dependencies that nobody gave a reason for. The reasons stand in the root manifest, one a
/// line; so the manifests of the crates must take every dependency from there.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in dependency_lines(tree.text("Cargo.toml").unwrap_or_default()) {
        let ours = line.contains("path =");
        let reason = line.split_once('#').map_or("", |(_, reason)| reason.trim());
        if !ours && reason.is_empty() {
            findings.push(Finding::at_line("Cargo.toml", index, "a dependency without a reason after `#`"));
        }
    }
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with("/Cargo.toml")) {
        for (index, line) in dependency_lines(text) {
            if !line.contains("workspace = true") {
                let what = "a dependency of its own: name it in the root manifest, with a reason";
                findings.push(Finding::at_line(path, index, what));
            }
        }
    }
    findings
}

/// The lines of a manifest that name a dependency, with their indices.
fn dependency_lines(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    manifest.lines().enumerate().filter(move |(_, line)| {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.trim_end_matches(']').ends_with("dependencies");
            return false;
        }
        inside && line.contains('=') && !line.starts_with('#')
    })
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let root = "[workspace.dependencies]\n# Others.\nbytes = \"1\" # values\nserde = \"1\"\nclap = \"4\" #\n\
                    pleach = { path = \"crates/pleach\" }\n[profile.dev]\ndebug = 1\n";
        assert_eq!(
            shown(&check(&Tree::of(&[("Cargo.toml", root)]))),
            [
                "Cargo.toml:4: a dependency without a reason after `#`",
                "Cargo.toml:5: a dependency without a reason after `#`"
            ]
        );
    }

    #[test]
    fn a_crate_with_a_dependency_of_its_own_is_found() {
        let member = "[package]\nname = \"x\"\n[dependencies]\nserde.workspace = true\n\
                      [dev-dependencies]\nrand = \"1\"\n[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n";
        assert_eq!(
            shown(&check(&Tree::of(&[("crates/x/Cargo.toml", member)]))),
            [
                "crates/x/Cargo.toml:6: a dependency of its own: name it in the root manifest, with a reason",
                "crates/x/Cargo.toml:8: a dependency of its own: name it in the root manifest, with a reason",
            ]
        );
    }
}
