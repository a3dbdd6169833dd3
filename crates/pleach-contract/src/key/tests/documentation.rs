//! `docs/keys.md` says what the code does.

use crate::key::{Code, Grammar};

const KEYS: &str = include_str!("../../../../../docs/keys.md");

#[test]
fn the_documentation_lists_every_code_with_its_meaning() {
    let listed: Vec<&str> =
        KEYS.lines().filter(|line| line.starts_with("| `") && is_code_row(line)).collect();
    let expected: Vec<String> =
        Code::ALL.iter().map(|code| format!("| `{code}` | {} |", code.meaning())).collect();
    assert_eq!(listed, expected, "the table of codes should be\n{}", expected.join("\n"));
}

fn is_code_row(line: &str) -> bool {
    ["grammar-", "key-", "value-", "path-", "filter-", "keyspace-"]
        .iter()
        .any(|start| line[3..].starts_with(start))
}

#[test]
fn a_code_has_one_name_everywhere() {
    for code in Code::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
}

#[test]
fn the_grammars_of_the_documentation_are_grammars() {
    let mut found = 0;
    for block in KEYS.split("```text\n").skip(1) {
        let lines = block.split("```").next().unwrap_or_default().lines();
        for line in lines.filter(|line| line.contains('{')) {
            let text = line.split_whitespace().next().unwrap();
            Grammar::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            found += 1;
        }
    }
    assert!(found >= 3, "the documentation has no examples any more");
}

/// The last number in the column of bytes is the width of the bare type.
#[test]
fn the_documentation_has_the_width_of_every_type() {
    for (kind, segment) in ["slug", "token", "ulid", "uuid", "uint", "int", "time", "date", "hash", "bytes"]
        .map(|kind| (format!("`{kind}`"), format!("x.{{v:{kind}}}")))
        .into_iter()
        .chain([("rest".to_owned(), "x.{v...}".to_owned())])
    {
        let is_row = |line: &&str| line.starts_with(&format!("| {kind}")) && line.split(" | ").count() == 5;
        let row = KEYS.lines().find(is_row).unwrap_or_else(|| panic!("{kind} has no row"));
        let mut numbers = row.split(" | ").nth(3).unwrap().split(|c: char| !c.is_ascii_digit());
        let width: usize = numbers.rfind(|number| !number.is_empty()).unwrap().parse().unwrap();
        assert_eq!(Grammar::parse(segment).unwrap().segments()[1].kind().key_bytes_max(), width, "{row}");
    }
}
