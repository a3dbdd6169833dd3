use super::Finding;
use super::tree::Tree;

/// How a path of the project begins, where a document names one.
const BEGINNINGS: [&str; 7] = [".cargo/", ".ci/", "crates/", "docs/", "testdata/", "tests/", "xtask/"];

/// Finds paths in documents, between backticks, at which there is nothing.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (document, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        let mut in_fence = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_fence = !in_fence;
            }
            if in_fence {
                continue;
            }
            for path in quoted(line).filter(|quoted| is_path(quoted)) {
                if !tree.has(path) {
                    findings.push(Finding::at_line(document, index, format!("there is no `{path}`")));
                }
            }
        }
    }
    findings
}

/// What stands between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether it is meant as one path of the project, rather than a command or a pattern of paths.
fn is_path(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
        && !text.contains(|c: char| c.is_whitespace() || "*<>{}…".contains(c))
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    #[test]
    fn a_path_that_a_document_names_must_exist() {
        let readme = "See `crates/a/src/lib.rs`, `crates/a/`, `crates/b/lib.rs` and `docs/c.md`.\n\
                      ```text\n`crates/d`\n```\nNot `crates/*/src` or `cargo run`; `.ci/gone`.\n";
        let tree = Tree::of(&[("README.md", readme), ("crates/a/src/lib.rs", ""), ("docs/c.md", "")]);
        assert_eq!(
            shown(&check(&tree)),
            ["README.md:1: there is no `crates/b/lib.rs`", "README.md:5: there is no `.ci/gone`"]
        );
    }
}
