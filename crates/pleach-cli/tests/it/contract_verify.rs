//! `pleach contract verify`, and who tells of what it found.

use serde_json::Value;

use crate::given::{Given, given_nothing};
use crate::terminal::Terminal;

const FIRST: &str = include_str!("../../src/demo/first.yaml");
const MENDED: &str = include_str!("../../src/demo/mended.yaml");
const BUCKET: &str = "svc_cases_cases";
const LINEAGE: &str = "acme.cases@v1";
const KEY: &str = "t.acme.case.01HK153X000000000000000000";
const CASE: &str =
    r#"{"title":"printer on fire","status":"waiting","assignee":"ann","openedAt":"2024-05-02T09:00:00Z"}"#;

fn given_cases() -> Given {
    let given = given_nothing();
    given.file("first.yaml", FIRST);
    given.file("mended.yaml", MENDED);
    given.run(&["contract", "plan", "first.yaml", "--out", "plan.json"]);
    given.ok(&["contract", "apply", "plan.json"]);
    given.ok(&["kv", "put", BUCKET, KEY, CASE]);
    given
}

#[test]
fn verify_lists_what_breaks_the_contract_and_ends_with_9() {
    let given = given_cases();
    let text = given.ok(&["contract", "verify"]);
    assert_eq!(text, "acme.cases@v1: 1 stored value was read, and all keep the contract in force\n");
    given.ok(&["--break-glass", "an emergency", "kv", "put", BUCKET, KEY, "no case"]);
    let run = given.run(&["contract", "verify", LINEAGE]);
    assert_eq!(run.code, 9);
    let text = run.text();
    assert!(text.starts_with("cases  1 live value and 0 kept records break the contract\n"), "{text}");
    assert!(text.contains(&format!("{BUCKET}/{KEY} at revision ")), "{text}");
    assert!(run.stderr.contains("1 stored value breaks its contract"), "{}", run.stderr);
    let run = given.run(&["--json", "contract", "verify"]);
    let lines: Vec<Value> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["event"], &lines[0]["breach"]["key"]), (&"breach".into(), &KEY.into()));
    assert_eq!((&lines[1]["event"], &lines[1]["breaches"]), (&"verified".into(), &1.into()));
    given.run(&["contract", "verify", "acme.gone@v1"]).fails(3, "keeps no contract acme.gone@v1");
}

#[test]
fn status_and_doctor_tell_what_verify_found_and_of_the_broken_glass() {
    let given = given_cases();
    given.ok(&["contract", "verify"]);
    assert!(given.ok(&["contract", "status"]).contains("all of 1 stored value keep it"));
    given.ok(&["--break-glass", "an emergency", "kv", "put", BUCKET, KEY, "no case"]);
    let told = "the guards of acme.cases@v1 were passed 1 time since it was verified";
    assert!(given.ok(&["status"]).contains(told));
    let run = given.run(&["doctor"]);
    assert!(run.text().contains(told), "{}", run.text());
    assert_eq!(run.code, 7);
    assert_eq!(given.run(&["contract", "verify"]).code, 9);
    let lines = given.run(&["--json", "doctor"]).text();
    assert!(lines.contains("contract_broken") && !lines.contains("contract_overridden"), "{lines}");
    let status = given.ok(&["contract", "status"]);
    assert!(
        status.contains("1 of 2 stored values break it; list them with `pleach contract verify"),
        "{status}"
    );
    assert_eq!(given.json(&["contract", "status"])[0]["verified"]["breaches"], 1);
}

#[test]
fn the_broken_glass_stands_in_the_history_between_the_decisions() {
    let given = given_cases();
    given.ok(&["kv", "bucket", "add", "other"]);
    given.ok(&["--break-glass", "an emergency", "kv", "put", BUCKET, KEY, CASE]);
    given.run(&["contract", "plan", "mended.yaml", "--out", "plan.json"]);
    given.ok(&["contract", "apply", "plan.json", "--who", "bob"]);
    let lines = given.json(&["contract", "history", LINEAGE]);
    let kinds: Vec<bool> = lines.iter().map(|line| line["override"].is_object()).collect();
    assert_eq!(kinds, [false, true, false], "{lines:?}");
    assert_eq!(lines[1]["override"]["why"], "an emergency");
    let text = given.ok(&["contract", "history", LINEAGE]);
    assert!(text.contains(&format!("break-glass: {BUCKET} written to, 1 key: an emergency")), "{text}");
}

#[test]
fn a_plan_that_is_in_force_is_said_to_be_when_it_is_applied_again() {
    let given = given_cases();
    let again = given.ok(&["contract", "apply", "plan.json"]);
    assert_eq!(again, "acme.cases@v1 is already in force, as version 1\n");
    // The file was made before there was a store; what was applied is in the history.
    let history = given.json(&["contract", "history", LINEAGE]);
    let id = &history[0]["decision"]["plan"].as_str().unwrap()[..12];
    assert_eq!(given.ok(&["contract", "apply", id]), again);
    assert_eq!(given.json(&["contract", "apply", id])[0]["wasInForce"], true);
}

#[test]
fn on_a_terminal_an_apply_asks_first() {
    let given = given_nothing();
    given.file("first.yaml", FIRST);
    given.run(&["contract", "plan", "first.yaml", "--out", "plan.json"]);
    let command = || given.command(&["contract", "apply", "plan.json"]);
    let (shown, code) = Terminal::open().run(command(), "n\n");
    assert!(shown.contains("of acme.cases@v1: 1 step, none of its changes is dangerous? [y/N]"), "{shown}");
    assert_eq!(code, 1, "{shown}");
    assert!(given.ok(&["contract", "status"]).contains("not in force yet"));
    let (shown, code) = Terminal::open().run(command(), "y\n");
    assert_eq!(code, 0, "{shown}");
    let yes = given.command(&["contract", "apply", "plan.json", "--yes"]);
    let (shown, code) = Terminal::open().run(yes, "");
    assert_eq!((shown.contains("[y/N]"), code), (false, 0), "{shown}");
}

#[test]
fn an_import_skips_the_records_of_the_exported_store() {
    let given = given_nothing();
    given.ok(&["kv", "bucket", "add", "b"]);
    let lines = r#"{"v":1,"bucket":"b","key":"a","value":"1"}
{"v":1,"bucket":"b","key":"_kv.projection.x","value":"{}"}
"#;
    given.file("dump.jsonl", lines);
    let run = given.run(&["kv", "import", "dump.jsonl"]);
    assert_eq!((run.code, run.text().as_str()), (0, "imported 1 record\n"));
    assert_eq!(given.ok(&["kv", "ls", "b"]), "a\n");
}
