use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::given::{Given, given_nothing, given_store, json_lines};

const FIRST: &str = include_str!("../../src/demo/first.yaml");
const CARELESS: &str = include_str!("../../src/demo/careless.yaml");
const MENDED: &str = include_str!("../../src/demo/mended.yaml");

const BUCKET: &str = "svc_cases_cases";
const KEY: &str = "t.acme.case.01HK153X000000000000000000";
const CASE: &str =
    r#"{"title":"printer on fire","status":"waiting","assignee":"ann","openedAt":"2024-05-02T09:00:00Z"}"#;

/// A store in which the first contract is in force, with one case.
fn given_cases() -> Given {
    with_cases(given_nothing())
}

fn with_cases(given: Given) -> Given {
    given.file("first.yaml", FIRST);
    given.file("careless.yaml", CARELESS);
    given.file("mended.yaml", MENDED);
    given.run(&["contract", "plan", "first.yaml", "--out", "plan.json"]);
    given.ok(&["contract", "apply", "plan.json"]);
    given.ok(&["kv", "put", BUCKET, KEY, CASE]);
    given
}

#[test]
fn exit_codes_of_a_plan_tell_nothing_changes_and_dangers_apart() {
    let given = given_cases();
    let code = |file: &str| given.run(&["contract", "plan", file]).code;
    assert_eq!((code("first.yaml"), code("mended.yaml"), code("careless.yaml")), (0, 2, 3));
    given.run(&["contract", "plan", "gone.yaml"]).fails(1, "cannot read the contract gone.yaml");
    given.run(&["contract", "plan", "first.yaml", "--adopt", "cases"]).fails(1, "ALIAS=BUCKET");
}

#[test]
fn a_dangerous_plan_is_applied_only_with_a_reason_which_is_kept() {
    let given = given_cases();
    given.run(&["contract", "plan", "careless.yaml", "--out", "plan.json"]);
    given.run(&["contract", "apply", "plan.json"]).fails(3, "nobody has acknowledged");
    // That it was changed is said first, also if nobody has acknowledged it.
    let plan = std::fs::read_to_string(given.path().join("plan.json")).unwrap();
    for (name, change) in [("service", "other"), ("lineage", "no lineage\\n.>")] {
        let mut edited: Value = serde_json::from_str(&plan).unwrap();
        edited[name] = change.into();
        given.file("edited.json", edited.to_string());
        given.run(&["contract", "apply", "edited.json"]).fails(1, "changed after it was made");
    }
    given.run(&["contract", "apply", "plan.json", "--acknowledge", " "]).fails(3, "nobody has acknowledged");
    given.ok(&["contract", "apply", "plan.json", "--acknowledge", "a test", "--who", "ann"]);
    let lines = given.json(&["contract", "history", "acme.cases@v1"]);
    let decision = &lines[1]["decision"];
    assert_eq!((&decision["who"], &decision["acknowledgement"]), (&"ann".into(), &"a test".into()));
}

#[test]
fn a_plan_tells_programs_everything() {
    let given = given_cases();
    let run = given.run(&["--json", "contract", "plan", "careless.yaml"]);
    let lines: Vec<Value> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let removed = lines.iter().find(|line| line["code"] == "enum.narrowed").unwrap();
    assert_eq!((&removed["verdict"], &removed["answer"]["count"]), (&"dangerous".into(), &1.into()));
    assert_eq!(removed["answer"]["samples"][0]["key"], KEY);
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["scans"]["cases"]["versions"]["v1"]), (&"planned".into(), &1.into()));
}

#[test]
fn a_plan_is_applied_as_it_was_made_or_not_at_all() {
    let given = given_cases();
    given.run(&["contract", "plan", "mended.yaml", "--out", "plan.json"]);
    let plan = std::fs::read_to_string(given.path().join("plan.json")).unwrap();
    given.file("edited.json", plan.replace("\"service\": \"cases\"", "\"service\": \"other\""));
    given.run(&["contract", "apply", "edited.json"]).fails(1, "changed after it was made");
    given.file("broken.json", &plan[..plan.len() / 2]);
    given.run(&["contract", "apply", "broken.json"]).fails(1, "cannot read the plan broken.json");
    given.run(&["contract", "apply", "mended.yaml"]).fails(1, "mended.yaml is a contract");
    given.run(&["contract", "apply", "zz"]).fails(1, "neither a file nor the id of a pending plan");
    let elsewhere = given_cases();
    elsewhere.file("plan.json", &plan);
    elsewhere.run(&["contract", "apply", "plan.json"]).fails(1, "made for the store");
    given.ok(&["contract", "apply", "plan.json"]);
    assert!(given.ok(&["contract", "apply", "plan.json"]).contains("is already in force"));
}

#[test]
fn a_pending_plan_is_found_by_the_beginning_of_its_id_and_can_be_rejected() {
    let given = given_cases();
    let run = given.run(&["--json", "contract", "plan", "mended.yaml"]);
    let last: Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    let id = last["plan"].as_str().unwrap()[..12].to_owned();
    assert!(given.ok(&["contract", "status"]).contains(&id));
    given.ok(&["contract", "reject", &id]);
    given.run(&["contract", "apply", &id]).fails(1, "pending plan");
}

#[test]
fn the_plan_of_a_first_contract_is_pending_too() {
    let given = given_nothing();
    given.file("first.yaml", FIRST);
    // A plan for a store that is not there is remembered nowhere.
    given.ok(&["kv", "bucket", "add", "b"]);
    given.run(&["contract", "plan", "first.yaml"]);
    let text = given.ok(&["contract", "status"]);
    assert!(text.starts_with("acme.cases@v1  not in force yet\npending  plan "), "{text}");
    let lines = given.json(&["contract", "status"]);
    assert_eq!(
        (&lines[0]["authority"]["version"], &lines[0]["plans"][0]["verdict"]),
        (&0.into(), &"safe".into())
    );
    let id = lines[0]["plans"][0]["id"].as_str().unwrap().to_owned();
    given.ok(&["contract", "apply", &id]);
    assert!(!given.ok(&["contract", "status"]).contains("not in force yet"));
    given.run(&["demo", "--keep", "."]).fails(2, "--keep");
}

#[test]
fn an_entry_is_shown_as_its_contract_sees_it() {
    let given = given_cases();
    let text = given.ok(&["kv", "get", BUCKET, KEY, "--typed"]);
    for part in ["acme.cases@v1 cases case", "version v1", "tenant", "acme", "\"status\": \"waiting\""] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    given.run(&["contract", "plan", "mended.yaml", "--out", "plan.json"]);
    given.ok(&["contract", "apply", "plan.json"]);
    let line = &given.json(&["kv", "get", BUCKET, KEY, "--typed"])[0];
    assert_eq!((&line["version"], &line["migrationRequired"]), (&"v1".into(), &true.into()));
    given.ok(&["kv", "bucket", "add", "plain"]);
    given.ok(&["kv", "put", "plain", "a", "1"]);
    given.run(&["kv", "get", "plain", "a", "--typed"]).fails(6, "no contract says what bucket plain holds");
}

#[test]
fn guards_are_passed_by_only_on_record() {
    let given = given_cases();
    given.run(&["kv", "put", BUCKET, KEY, "no case"]).fails(2, "acme.cases@v1 says otherwise");
    given.run(&["kv", "bucket", "rm", BUCKET, "--yes"]).fails(11, "belongs to acme.cases@v1");
    given.ok(&["--break-glass", "an emergency", "kv", "put", BUCKET, KEY, "no case"]);
    assert_eq!(given.ok(&["kv", "get", BUCKET, KEY]), "no case\n");
    assert_eq!(given.run(&["kv", "get", BUCKET, KEY, "--typed"]).code, 9);
    assert!(given.ok(&["kv", "ls", "pleach_system", "glass.>"]).starts_with("glass."));
}

/// Writes a record of the system bucket past everything that would refuse it: on a server, what one store calls its
/// system bucket is any bucket to another.
fn damage(given: &Given, store: &str, key: &str, value: &str) {
    given.ok(&["--store", &format!("{store}pleach_"), "kv", "put", "system", key, value]);
}

#[test]
fn a_damaged_record_is_shown_and_concerns_its_bucket_alone() {
    let store = crate::nats::store();
    let given = with_cases(given_store(&store));
    let other = "format: pleach.contract.v1\nid: acme.notes@v1\nkind: app\ndisplayName: Notes\ndescription: Notes\n\
                 schemas:\n  Note: {type: object}\nresources:\n  kv:\n    notes: {purpose: Notes, schema: {schema: Note}}\n";
    given.file("notes.yaml", other);
    given.run(&["contract", "plan", "notes.yaml", "--out", "notes.json"]);
    given.ok(&["contract", "apply", "notes.json"]);
    damage(&given, &store, &format!("bucket.{BUCKET}"), "{damaged");
    // What concerns the bucket names the record and the next command; what is stored can still be read.
    given.run(&["kv", "put", BUCKET, KEY, CASE]).fails(9, &format!("bucket.{BUCKET}"));
    given.run(&["kv", "put", BUCKET, KEY, CASE]).fails(9, "pleach contract status");
    given.run(&["contract", "plan", "mended.yaml"]).fails(1, &format!("bucket.{BUCKET}"));
    given.run(&["contract", "plan", "mended.yaml"]).fails(1, "pleach contract status");
    assert_eq!(given.ok(&["kv", "get", BUCKET, KEY]), format!("{CASE}\n"));
    // The rest goes on.
    given.ok(&["kv", "put", "svc_notes_notes", "one", "{}"]);
    given.file("notes.yaml", other.replace("{type: object}", "{type: object, maxProperties: 1}"));
    assert_eq!(given.run(&["contract", "plan", "notes.yaml", "--out", "notes.json"]).code, 2);
    given.ok(&["contract", "apply", "notes.json"]);
    given.ok(&["contract", "sweep"]);
    // And the status shows both.
    let status = given.run(&["contract", "status"]);
    assert_eq!(status.code, 9);
    assert!(status.stderr.contains("1 record of this store about contracts is damaged"), "{}", status.stderr);
    let text = status.text();
    for part in [
        &format!("damaged  pleach_system/bucket.{BUCKET} at revision"),
        "acme.notes@v1",
        "its record is damaged or missing",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let lines = json_lines(&given.run(&["--json", "contract", "status"]).text());
    assert_eq!(lines[0]["damaged"]["key"], format!("bucket.{BUCKET}"));
    assert_eq!(lines.len(), 3);
}

#[test]
fn a_removed_resource_is_set_aside_and_restored() {
    let given = given_cases();
    let without =
        FIRST.split("resources:").next().unwrap().replace("schemas:", "schemas:\n  Note: {type: object}");
    let notes = "resources:\n  kv:\n    notes: {purpose: Notes, schema: {schema: Note}}\n";
    given.file("without.yaml", format!("{without}{notes}"));
    given.run(&["contract", "plan", "without.yaml", "--out", "plan.json"]);
    given.ok(&["contract", "apply", "plan.json", "--acknowledge", "a test"]);
    assert!(given.ok(&["contract", "status"]).contains("set aside until"));
    assert_eq!(given.run(&["kv", "put", BUCKET, KEY, CASE]).code, 11);
    given.ok(&["contract", "restore", "acme.cases@v1", "cases"]);
    given.ok(&["kv", "put", BUCKET, KEY, CASE]);
    given.run(&["contract", "restore", "acme.cases@v1", "cases"]).fails(3, "set aside");
    assert!(given.ok(&["contract", "sweep"]).contains("0 buckets are gone"));
}

#[test]
fn the_code_of_a_contract_is_printed_or_written() {
    let given = given_cases();
    let printed = given.ok(&["contract", "codegen", "mended.yaml"]);
    assert!(printed.contains("pub struct Case"), "{printed}");
    given.ok(&["contract", "codegen", "mended.yaml", "-o", "cases.rs"]);
    assert_eq!(std::fs::read_to_string(given.path().join("cases.rs")).unwrap(), printed);
}

#[test]
fn the_demonstration_tells_its_story() {
    let given = given_nothing();
    let lines = given.json(&["demo", "--cases", "2000"]);
    let event =
        |name: &str| lines.iter().find(|line| line["event"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(event("written")["cases"], 2000);
    assert!(event("stopped")["dangers"].as_u64().unwrap() >= 3);
    assert!(event("meanwhile")["written"].as_u64().unwrap() > 0);
    assert_eq!((&event("done")["current"], &event("done")["lost"]), (&2000.into(), &0.into()));
    let danger = lines.iter().find(|line| line["code"] == "required.added").unwrap();
    assert_eq!((&danger["count"], &danger["of"]), (&2000.into(), &2000.into()));
}

#[test]
fn an_apply_that_was_killed_is_finished_by_the_same_command() {
    for delay in (0..40).step_by(4) {
        let given = given_cases();
        given.run(&["contract", "plan", "mended.yaml", "--out", "plan.json"]);
        let mut apply = given.command(&["contract", "apply", "plan.json"]);
        let mut apply = apply.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(delay));
        // It may have ended by itself.
        let _ = apply.kill();
        let status = apply.wait().unwrap();
        let again = given.ok(&["contract", "apply", "plan.json"]);
        let is_told = again.contains("is already in force");
        assert!(is_told || !status.success(), "{delay}: {again}");
        let shown = given.json(&["contract", "status", "acme.cases@v1"]);
        let authority = &shown[0]["authority"];
        assert_eq!((&authority["version"], &authority["status"]["is"]), (&2.into(), &"current".into()));
        assert_eq!(given.run(&["contract", "plan", "mended.yaml"]).code, 0);
        given.ok(&["kv", "get", BUCKET, KEY, "--typed"]);
    }
}
