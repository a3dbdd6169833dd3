use std::fs;

use serde_json::Value;

use crate::given::{Given, given_nothing, json_lines};
use crate::terminal::Terminal;

/// A contract with five errors of different kinds; that a schema is unused follows from one of them.
pub(crate) const BROKEN: &str = "\
format: pleach.contract.v1
id: Notes
kind: servce
displayName: Notes
description: Notes
schemas:
  Note: {type: objct}
  Unused: {}
resources:
  kv:
    notes:
      purpose: Notes
      schema: {schema: Nte}
      histroy: 5
";

/// The same without them.
pub(crate) const SOUND: &str = "\
format: pleach.contract.v1
id: acme.notes@v1
kind: service
displayName: Notes
description: Notes

schemas:
  Note: {type: object}

resources:
  kv:
    notes:
      purpose: Notes
      schema: {schema: Note}
";

pub(crate) fn given_contracts() -> Given {
    let given = given_nothing();
    given.file("broken.yaml", BROKEN);
    given.file("sound.yaml", SOUND);
    given.file("spare.yaml", SOUND.replace("schemas:\n", "schemas:\n  Spare: {}\n"));
    given
}

#[test]
fn a_new_contract_can_be_used_as_it_is() {
    let given = given_nothing();
    given.ok(&[
        "contract",
        "new",
        "acme.notes@v1",
        "--kind",
        "app",
        "--state",
        "drafts=map",
        "--kv",
        "up-loads",
    ]);
    let checked = given.json(&["contract", "check", "contract.yaml"]);
    assert_eq!(checked.len(), 1, "{checked:?}");
    assert_eq!((&checked[0]["errors"], &checked[0]["warnings"]), (&Value::from(0), &Value::from(0)));
    let text = fs::read_to_string(given.path().join("contract.yaml")).unwrap();
    assert!(text.contains("\n# Who it is."), "{text}");
    given.ok(&["contract", "fmt", "contract.yaml"]);
    let laid_out = fs::read_to_string(given.path().join("contract.yaml")).unwrap();
    for comment in text.lines().filter(|line| line.trim_start().starts_with('#')) {
        assert!(laid_out.contains(comment.trim()), "{comment} is not in\n{laid_out}");
    }
    assert_eq!(given.json(&["contract", "check", "contract.yaml"])[0]["digest"], checked[0]["digest"]);
}

#[test]
fn what_a_new_contract_needs_is_asked_for_on_a_terminal() {
    let given = given_nothing();
    let answers = "acme.mail@v2\napp\nPost\nMail that waits\nletters\n";
    let (asked, code) = Terminal::open().run(given.command(&["contract", "new"]), answers);
    assert_eq!(code, 0, "{asked}");
    for question in [
        "id, such as acme.notes@v1 [acme.notes@v1]: ",
        "kind: service, app, device or agent [service]: ",
        "name for people [Mail]: ",
        "what it is for, in a sentence [What Post keeps]: ",
        "alias of its first bucket [entries]: ",
    ] {
        assert!(asked.contains(question), "{question:?} is not in {asked:?}");
    }
    let text = fs::read_to_string(given.path().join("contract.yaml")).unwrap();
    for said in [
        "id: acme.mail@v2",
        "kind: app",
        "displayName: \"Post\"",
        "description: \"Mail that waits\"",
        "letters:",
    ] {
        assert!(text.contains(said), "{said:?} is not in {text}");
    }
}

#[test]
fn an_empty_answer_is_the_default_and_what_is_given_is_not_asked_for() {
    let given = given_nothing();
    let (asked, code) = Terminal::open()
        .run(given.command(&["contract", "new", "acme.mail@v1", "--kind", "app", "--kv", "letters"]), "\n\n");
    assert_eq!(code, 0, "{asked}");
    assert!(!asked.contains("id, such as") && !asked.contains("alias of"), "{asked:?}");
    let text = fs::read_to_string(given.path().join("contract.yaml")).unwrap();
    for said in ["displayName: \"Mail\"", "description: \"What Mail keeps\""] {
        assert!(text.contains(said), "{said:?} is not in {text}");
    }
    let (asked, code) =
        Terminal::open().run(given.command(&["contract", "new", "-o", "x.yaml"]), "Mail\n\n\n\n\n");
    assert_eq!(code, 2, "{asked}");
    assert!(asked.contains("`Mail` is not the id of a contract") && !given.has("x.yaml"), "{asked:?}");
}

#[test]
fn a_new_contract_writes_over_nothing_unless_told_to() {
    let given = given_contracts();
    given.run(&["contract", "new", "acme.notes@v1", "-o", "sound.yaml"]).fails(4, "there already");
    assert_eq!(fs::read_to_string(given.path().join("sound.yaml")).unwrap(), SOUND);
    given.ok(&["contract", "new", "acme.notes@v1", "-o", "sound.yaml", "--force"]);
    assert_ne!(fs::read_to_string(given.path().join("sound.yaml")).unwrap(), SOUND);
}

#[test]
fn what_a_new_contract_cannot_be_is_told() {
    let given = given_nothing();
    given.run(&["contract", "new"]).fails(2, "a contract needs an id");
    given.run(&["contract", "new", "Notes"]).fails(2, "is not the id of a contract");
    given.run(&["contract", "new", "a@v1", "--state", "x=list"]).fails(2, "must be one of: value, map");
    assert!(!given.has("contract.yaml"));
}

#[test]
fn checking_ends_with_the_code_that_says_what_to_do() {
    let given = given_contracts();
    assert_eq!(given.run(&["contract", "check", "sound.yaml"]).code, 0);
    assert_eq!(given.run(&["contract", "check", "sound.yaml", "broken.yaml"]).code, 2);
    given.run(&["contract", "check", "gone.yaml"]).fails(3, "cannot read the contract gone.yaml");
    let run = given.run_with(SOUND.as_bytes(), &["contract", "check", "-"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn findings_are_one_object_each() {
    let given = given_contracts();
    let run = given.run(&["--json", "contract", "check", "broken.yaml"]);
    let lines = json_lines(&run.text());
    let codes: Vec<&str> = lines.iter().filter_map(|line| line["code"].as_str()).collect();
    assert_eq!(codes, ["id.form", "field.choice", "schema.invalid", "schema.unknown", "field.unknown"]);
    assert_eq!((&lines[0]["line"], &lines[0]["path"]), (&Value::from(2), &Value::from("/id")));
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["event"], &last["errors"], &last["warnings"]),
        (&"checked".into(), &5.into(), &0.into())
    );
}

#[test]
fn one_contract_has_one_digest_in_either_notation() {
    let given = given_contracts();
    let canonical = given.ok(&["contract", "digest", "sound.yaml", "--canonical"]);
    let mut document: Value = serde_json::from_str(&canonical).unwrap();
    document["displayName"] = "Other".into();
    document["description"] = "Other".into();
    given.file("sound.json", document.to_string());
    let lines = given.json(&["contract", "digest", "sound.yaml", "sound.json"]);
    assert_eq!(lines[0]["digest"], lines[1]["digest"]);
    given
        .run(&["contract", "digest", "broken.yaml"])
        .fails(2, "see all of them with `pleach contract check broken.yaml`");
}

#[test]
fn laying_out_is_checked_and_done() {
    let given = given_contracts();
    assert_eq!(given.run(&["contract", "fmt", "--check", "sound.yaml"]).code, 0);
    given.file(
        "messy.yaml",
        SOUND.replace("kind: service\n", "").replace("format", "kind:   service\nformat"),
    );
    assert_eq!(given.run(&["contract", "fmt", "--check", "messy.yaml"]).code, 4);
    given.ok(&["contract", "fmt", "messy.yaml"]);
    assert_eq!(fs::read_to_string(given.path().join("messy.yaml")).unwrap(), SOUND);
    let json = given.run_with(b"{\"kind\":\"app\",\"format\":\"x\"}", &["contract", "fmt", "-"]).ok();
    assert_eq!(json, "{\n  \"format\": \"x\",\n  \"kind\": \"app\"\n}\n");
}

#[test]
fn the_schema_of_contracts_is_printed_or_written() {
    let given = given_nothing();
    let printed: Value = serde_json::from_str(&given.ok(&["contract", "schema"])).unwrap();
    assert_eq!(printed["properties"]["format"]["const"], "pleach.contract.v1");
    given.ok(&["contract", "schema", "-o", "schema.json"]);
    let written: Value =
        serde_json::from_slice(&fs::read(given.path().join("schema.json")).unwrap()).unwrap();
    assert_eq!(written, printed);
}
