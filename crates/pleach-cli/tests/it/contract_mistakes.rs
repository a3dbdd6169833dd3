//! What is surely a mistake in a contract is told by `pleach contract check`, and does not stop it.

use serde_json::Value;

use crate::given::given_nothing;

const MISTAKES: &str = r#"format: pleach.contract.v1
id: acme.notes@v1
kind: service
displayName: Notes
description: Notes
schemas:
  Note:
    type: object
    properties:
      mail: {type: string, format: emial}
      stars: {type: integer, minimum: 5, maximum: 1}
      kind: {type: string, enum: [a, 2]}
    requierd: [mail]
resources:
  kv:
    notes:
      purpose: Notes
      schema: {schema: Note}
"#;

#[test]
fn likely_mistakes_are_warnings_with_codes_and_places() {
    let given = given_nothing();
    given.file("contract.yaml", MISTAKES);
    let run = given.run(&["contract", "check", "contract.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for part in [
        "contract.yaml:10:28: warning: the format `emial` is unknown, so values are not checked by it [schema.format]",
        "  at    /schemas/Note/properties/mail/format",
        "  fix   did you mean `email`?",
        "contract.yaml:11:30: warning: no number lies between: `minimum` is 5, and `maximum` is 1 [schema.impossible]",
        "warning: `enum` lists 2, and `type` allows only string [schema.impossible]",
        "contract.yaml:13:5: warning: `requierd` is no keyword of JSON Schema, and checks nothing [schema.keyword]",
        "  fix   did you mean `required`?",
        "contract.yaml is the contract acme.notes@v1, with 4 warnings",
    ] {
        assert!(run.text().contains(part), "{part} is not in\n{}", run.text());
    }
    let run = given.run(&["--json", "contract", "check", "contract.yaml"]);
    let lines: Vec<Value> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<&str> = lines.iter().filter_map(|line| line["code"].as_str()).collect();
    assert_eq!(codes, ["schema.format", "schema.impossible", "schema.impossible", "schema.keyword"]);
    assert!(lines.iter().filter(|line| line["event"] == "problem").all(|line| line["severity"] == "warning"));
    assert_eq!((run.code, lines.last().unwrap()["warnings"].as_u64()), (0, Some(4)));
}

#[test]
fn a_pattern_with_a_syntax_error_is_called_that() {
    let given = given_nothing();
    given.file("contract.yaml", MISTAKES.replace("format: emial", "pattern: \"a(b\""));
    let run = given.run(&["contract", "check", "contract.yaml"]);
    let expected = "contract.yaml:10:28: error: the pattern has a syntax error at character 2: unclosed group [pattern.syntax]";
    assert!(run.text().contains(expected), "{}", run.text());
    assert_eq!(run.code, 2);
}
