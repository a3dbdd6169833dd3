use serde_json::Value;

use crate::given::{Given, given_nothing};

const BUCKET: &str = "svc_notes_notes";

const CONTRACT: &str = "\
format: pleach.contract.v1
id: acme.notes@v1
kind: app
displayName: Notes
description: Notes
schemas:
  Note: {type: object, properties: {owner: {type: string}}}
resources:
  kv:
    notes:
      purpose: Notes
      schema: {schema: Note}
      history: 2
      keyspaces: {note: {key: 'note.{id}'}}
      indexes: {by_owner: {of: note, key: 'by.{owner}.{id}', values: {owner: /owner}}}
";

/// A store in which the contract is in force.
fn given_notes() -> Given {
    let given = given_nothing();
    given.file("notes.yaml", CONTRACT);
    let run = given.run(&["contract", "plan", "notes.yaml", "--out", "plan.json"]);
    let short = "index `by_owner` is declared but Pleach does not maintain it yet";
    assert!(run.code == 2 && run.text().contains(short), "{}", run.text());
    // What is declared and not kept stops nobody.
    given.ok(&["contract", "apply", "plan.json"]);
    given
}

#[test]
fn drift_is_a_section_of_its_own() {
    let given = given_notes();
    given.ok(&["--break-glass", "a test", "kv", "bucket", "edit", BUCKET, "--history", "9"]);
    for _ in 0..4 {
        given.ok(&["kv", "put", BUCKET, "note.a", "{}"]);
    }
    let run = given.run(&["contract", "plan", "notes.yaml"]);
    let text = run.text();
    assert_eq!(run.code, 3, "{text}");
    assert!(text.contains("drift: changed past the contract in force"), "{text}");
    assert!(text.contains("dangerous: past the contract, history of bucket svc_notes_notes"), "{text}");
    let run = given.run(&["--json", "contract", "plan", "notes.yaml"]);
    let last: Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    let drift = &last["drift"][0];
    assert_eq!((&drift["setting"], &drift["found"]), (&"history".into(), &"9".into()), "{last}");
}

#[test]
fn kept_records_are_told_from_live_ones() {
    let given = given_notes();
    for note in [r#"{"owner": "much too long"}"#, "{}"] {
        given.ok(&["kv", "put", BUCKET, "note.a", note]);
    }
    given.file("next.yaml", CONTRACT.replace("{type: string}", "{type: string, maxLength: 5}"));
    let run = given.run(&["contract", "plan", "next.yaml"]);
    let text = run.text();
    assert_eq!(run.code, 3, "{text}");
    assert!(text.contains("1 kept record of 1 key stands against it"), "{text}");
    assert!(text.contains("note.a (kept, revision "), "{text}");
}
