use super::Finding;
use crate::metadata::Metadata;

/// Licences that ask for no more than a notice.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Finds dependencies that cannot be used under the allowed licences alone.
pub(super) fn check(metadata: &Metadata) -> Vec<Finding> {
    metadata
        .foreign()
        .filter_map(|package| match &package.license {
            None => Some(Finding::new(&package.name, "names no licence")),
            Some(licence) if is_allowed(licence) => None,
            Some(licence) => {
                Some(Finding::new(&package.name, format!("its licence is not allowed: {licence}")))
            }
        })
        .collect()
}

/// Whether the terms of an SPDX expression can be met with the allowed licences. The old way of
/// writing `OR` as a slash counts too; an expression that cannot be read is not allowed.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words) == Some(true) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>) -> Option<bool> {
    let mut met = all_of(words)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= all_of(words)?;
    }
    Some(met)
}

fn all_of(words: &mut Words<'_>) -> Option<bool> {
    let mut met = one(words)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words)?;
    }
    Some(met)
}

fn one(words: &mut Words<'_>) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let met = any_of(words)?;
        return (words.next()? == ")").then_some(met);
    }
    if words.next_if_eq(&"WITH").is_some() {
        let licence = format!("{word} WITH {}", words.next()?);
        return Some(ALLOWED.contains(&licence.as_str()));
    }
    Some(ALLOWED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    #[test]
    fn one_allowed_choice_is_enough_and_all_parts_are_needed() {
        for allowed in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "GPL-3.0 OR (MIT AND ISC)",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in
            ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND AGPL-3.0", "", "MIT OR", "(MIT", "MIT MIT"]
        {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    #[test]
    fn a_dependency_without_an_allowed_licence_is_found() {
        let json = r#"{"packages": [
            {"name": "ours", "id": "1", "license": "Our own", "dependencies": [], "features": {}},
            {"name": "copyleft", "id": "2", "license": "GPL-3.0", "dependencies": [], "features": {}},
            {"name": "silent", "id": "3", "license": null, "dependencies": [], "features": {}},
            {"name": "fine", "id": "4", "license": "MIT", "dependencies": [], "features": {}}],
          "workspace_members": ["1"]}"#;
        assert_eq!(
            shown(&check(&Metadata::parse(json).unwrap())),
            ["copyleft: its licence is not allowed: GPL-3.0", "silent: names no licence"]
        );
    }
}
