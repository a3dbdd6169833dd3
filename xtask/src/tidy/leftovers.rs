use super::Finding;
use super::tree::Tree;

// Written in two parts, so that this file passes.
const MACROS: [&str; 2] = [concat!("to", "do!("), concat!("unimple", "mented!(")];
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const SKIPPED: [&str; 2] = [concat!("#[ig", "nore"), concat!("```ig", "nore")];

/// Finds work left undone in Rust code: a hole, a mark without an issue number, a test that is skipped.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".rs")) {
        for (index, line) in text.lines().enumerate() {
            let mut find = |what: String| findings.push(Finding::at_line(path, index, what));
            if let Some(found) = MACROS.iter().find(|name| line.contains(**name)) {
                find(format!("`{found}…)` is a hole: fill it"));
            }
            if let Some(found) = MARKS.iter().find(|mark| line.contains(**mark) && !has_issue(line, mark)) {
                find(format!("`{found}` without an issue number: write `{found}(#12)`, or do it"));
            }
            if let Some(found) = SKIPPED.iter().find(|mark| line.contains(**mark)) {
                find(format!("`{found}` skips a test: mend it or delete it"));
            }
        }
    }
    findings
}

/// Whether a number follows every such mark of the line.
fn has_issue(line: &str, mark: &str) -> bool {
    line.split(mark).skip(1).all(|after| {
        let number = after.strip_prefix("(#").or_else(|| after.strip_prefix(" #"));
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    fn check_line(line: &str) -> Vec<String> {
        shown(&check(&Tree::of(&[("a.rs", line)])))
    }

    #[test]
    fn a_hole_is_found() {
        for hole in MACROS {
            assert_eq!(
                check_line(&format!("fn f() {{ {hole}) }}")),
                [format!("a.rs:1: `{hole}…)` is a hole: fill it")]
            );
        }
    }

    #[test]
    fn a_mark_needs_an_issue_number() {
        for mark in MARKS {
            assert_eq!(check_line(&format!("// {mark}: later")).len(), 1);
            assert_eq!(check_line(&format!("// {mark}(#x) later")).len(), 1);
            assert_eq!(check_line(&format!("// {mark}(#12) and {mark} again")).len(), 1);
            assert!(check_line(&format!("// {mark}(#12): later")).is_empty());
            assert!(check_line(&format!("// {mark} #12: later")).is_empty());
        }
    }

    #[test]
    fn a_skipped_test_is_found() {
        for skipped in SKIPPED {
            assert_eq!(check_line(&format!("    {skipped}]")).len(), 1);
        }
    }

    #[test]
    fn other_text_is_left_alone() {
        assert!(shown(&check(&Tree::of(&[("a.md", MARKS[0])]))).is_empty());
    }
}
