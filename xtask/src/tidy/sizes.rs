use super::Finding;
use super::tree::Tree;

/// The most lines of a Rust file. Past it, a file has more than one noun in it.
const FILE_LINES_MAX: usize = 700;

/// Finds Rust files that are too long.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.texts()
        .filter(|(path, _)| path.ends_with(".rs"))
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            (lines > FILE_LINES_MAX).then(|| {
                Finding::new(path, format!("{lines} lines are more than {FILE_LINES_MAX}: cut it in two"))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    #[test]
    fn a_rust_file_over_the_limit_is_found() {
        let (fits, too_long) = ("x\n".repeat(FILE_LINES_MAX), "x\n".repeat(FILE_LINES_MAX + 1));
        let tree = Tree::of(&[("a.rs", &fits), ("b.rs", &too_long), ("Cargo.lock", &too_long)]);
        assert_eq!(shown(&check(&tree)), ["b.rs: 701 lines are more than 700: cut it in two"]);
    }
}
