//! `docs/evolution.md` says what the code does.

use serde::Serialize;

use crate::evolution::FindingCode;

const PAGE: &str = include_str!("../../../../../docs/evolution.md");

fn words<T: Serialize>(list: &[T]) -> String {
    let word = |item: &T| serde_json::to_value(item).unwrap().as_str().unwrap().to_owned();
    list.iter().map(word).collect::<Vec<String>>().join(", ")
}

#[test]
fn the_documentation_lists_every_code_with_what_it_can_do() {
    let listed: Vec<&str> =
        PAGE.lines().filter(|line| line.starts_with("| `") && line.contains(".")).collect();
    let row = |code: &FindingCode| {
        let effects = [words(code.backward()), words(code.forward()), words(code.verdicts())].join(" | ");
        format!("| `{code}` | {effects} | {} |", code.meaning())
    };
    let expected: Vec<String> = FindingCode::ALL.iter().map(row).collect();
    assert_eq!(listed, expected, "the table of codes should be\n{}", expected.join("\n"));
}

#[test]
fn a_code_has_one_name_everywhere() {
    for code in FindingCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert_eq!(FindingCode::ALL.iter().filter(|other| other.as_str() == code.as_str()).count(), 1);
    }
}
