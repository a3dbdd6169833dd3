use serde_json::{Value, json};

use crate::given::{Given, given_nothing, json_lines};

const NOTES: &str = "\
format: pleach.contract.v1
id: acme.notes@v1
kind: app
displayName: Notes
description: Notes
schemas:
  Draft: {type: object, properties: {title: {type: string}}, required: [title]}
  Any: true
state:
  drafts: {kind: map, schema: {schema: Draft}}
  preferences: {kind: value, schema: {schema: Any}, stateVersion: v1}
";

fn given_notes() -> Given {
    let given = given_nothing();
    given.file("notes.yaml", NOTES);
    let later =
        "{kind: value, schema: {schema: Any}, stateVersion: v2, acceptedVersions: {v1: {schema: Any}}}";
    given.file("later.yaml", NOTES.replace("{kind: value, schema: {schema: Any}, stateVersion: v1}", later));
    accept(&given, "file:./.pleach", "notes.yaml");
    given
}

/// Plans a contract, and applies the plan.
fn accept(given: &Given, store: &str, contract: &str) {
    let run = given.run(&["--store", store, "contract", "plan", contract, "--out", "plan.json"]);
    assert!([0, 2, 3].contains(&run.code), "{}", run.stderr);
    given.ok(&["--store", store, "contract", "apply", "plan.json", "--acknowledge", "a test"]);
}

/// A command on Ann's state: `get drafts a` and so on; JSON in it has no spaces.
fn ann(command: &str) -> Vec<String> {
    as_one("user:ann", "notes.yaml", command)
}

fn as_one(principal: &str, contract: &str, command: &str) -> Vec<String> {
    let (verb, rest) = command.split_once(' ').unwrap();
    let fixed = ["--json", "state", verb, "--as", principal, "--contract", contract];
    fixed.into_iter().chain(rest.split(' ')).map(str::to_owned).collect()
}

fn reply(given: &Given, arguments: &[String], code: i32) -> Value {
    let run = given.run(arguments);
    assert_eq!(run.code, code, "{arguments:?}: {} {}", run.text(), run.stderr);
    json_lines(&run.text()).into_iter().next().unwrap_or_default()
}

#[test]
fn outcomes_have_the_exit_codes_that_the_help_says() {
    let given = given_notes();
    let put = |command: &str, code| reply(&given, &ann(command), code);
    let created = put("put drafts a --create --value {\"title\":\"one\"}", 0);
    let revision = created["entry"]["revision"].as_str().unwrap().to_owned();
    assert_eq!(reply(&given, &ann("get drafts a"), 0), json!({"found": true, "entry": created["entry"]}));
    assert_eq!(put("put drafts a --create --value {\"title\":\"two\"}", 4)["entry"], created["entry"]);
    assert_eq!(
        put(&format!("put drafts b --revision {revision} --value {{\"title\":\"x\"}}"), 3),
        json!({"applied": false, "found": false})
    );
    assert_eq!(
        put(&format!("put drafts a --revision {revision} --value {{\"title\":\"two\"}}"), 0)["applied"],
        json!(true)
    );
    assert_eq!(
        reply(&given, &ann(&format!("delete drafts a --revision {revision}")), 4),
        json!({"deleted": false})
    );
    assert_eq!(reply(&given, &ann("delete drafts a"), 0), json!({"deleted": true}));
    assert_eq!(reply(&given, &ann("delete drafts a"), 3), json!({"deleted": false}));
    assert_eq!(reply(&given, &ann("get drafts a"), 3), json!({"found": false}));
}

#[test]
fn input_against_the_rules_is_refused_and_nothing_is_written() {
    let given = given_notes();
    reply(&given, &ann("put drafts steady --value {\"title\":\"x\"}"), 0);
    for bad in [
        "get missing a",
        "get drafts",
        "get preferences a",
        "put drafts --value {\"title\":\"x\"}",
        "put preferences a --value 1",
        "put drafts a --value {\"title\":1}",
        "put drafts a --value {",
        "put drafts a --value {\"title\":\"x\"} --ttl 0s",
        "put drafts a --value {\"title\":\"x\"} --ttl 11years",
        "list preferences",
        "list drafts --limit 101",
        "watch drafts --from twelve --idle 1ms",
        "watch preferences --prefix below --idle 1ms",
    ] {
        let run = given.run(&ann(bad));
        assert_eq!(run.code, 2, "{bad}: {}", run.stderr);
        assert!(
            run.stderr.contains("\"kind\":\"invalid\"") && run.stderr.contains("help"),
            "{bad}: {}",
            run.stderr
        );
    }
    // A revision that no reply gave is a lost race, and past the end a page is empty.
    reply(&given, &ann("put drafts a --value {\"title\":\"x\"} --revision 12"), 3);
    reply(&given, &ann("put drafts steady --value {\"title\":\"y\"} --revision 12"), 4);
    assert_eq!(reply(&given, &ann("delete drafts steady --revision 12"), 4), json!({"deleted": false}));
    for past in ["list drafts --offset 2", "list drafts --offset 99 --limit 0"] {
        let page = reply(&given, &ann(past), 0);
        assert_eq!(
            (&page["count"], &page["entries"], &page["nextOffset"]),
            (&json!(1), &json!([]), &Value::Null)
        );
    }
    let page = reply(&given, &ann("list drafts"), 0);
    assert_eq!((&page["count"], &page["entries"][0]["key"]), (&json!(1), &json!("steady")));
    for principal in ["ann", "service:billing", "user:"] {
        assert_eq!(given.run(&as_one(principal, "notes.yaml", "get drafts a")).code, 2);
    }
    assert_eq!(given.run(&as_one("user:ann", "missing.yaml", "get drafts a")).code, 3);
}

#[test]
fn what_is_too_long_or_forgotten_is_told_by_name() {
    let given = given_notes();
    given.file("forgotten.yaml", NOTES.replace("stateVersion: v1", "stateVersion: v2"));
    let kept = reply(&given, &ann("put preferences --value \"dark\""), 0);
    let refused = |arguments: &[String], message: &str| {
        let run = given.run(arguments);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(message), "{}", run.stderr);
    };
    let key = "k".repeat(513);
    refused(&ann(&format!("put drafts {key} --value {{\"title\":\"x\"}}")), "the key has 513 bytes");
    refused(&ann(&format!("list drafts --prefix {key}")), "the prefix has 513 bytes");
    refused(&ann(&format!("watch drafts --prefix {key}")), "the prefix has 513 bytes");
    let value = format!("\"{}\"", "x".repeat(65_535));
    refused(&ann(&format!("put preferences --value {value}")), "65537 bytes of compact JSON");
    accept(&given, "file:./.pleach", "forgotten.yaml");
    for verb in ["get preferences", "put preferences --create --value 1"] {
        let run = given.run(&as_one("user:ann", "forgotten.yaml", verb));
        assert_eq!(run.code, 9, "{}", run.stderr);
        assert!(run.stderr.contains("/stateVersion: \\\"v1\\\" is none of v2"), "{}", run.stderr);
    }
    let admin = ["--json", "state", "admin", "get", "--who", "olga", "--why", "a test", "--of", "user:ann"];
    let stored = given.ok(&[&admin[..], &["--contract-id", "acme.notes@v1", "preferences"]].concat());
    assert_eq!(json_lines(&stored)[0]["revision"], kept["entry"]["revision"], "nothing was written");
    // A put that expects nothing replaces it.
    reply(&given, &as_one("user:ann", "forgotten.yaml", "put preferences --value 1"), 0);
}

#[test]
fn principals_see_their_own_and_pages_tell_the_rest() {
    let given = given_notes();
    for principal in ["user:ann", "device:ann"] {
        for key in ["in/a", "in/b", "inn"] {
            reply(
                &given,
                &as_one(
                    principal,
                    "notes.yaml",
                    &format!("put drafts {key} --value {{\"title\":\"{principal}\"}}"),
                ),
                0,
            );
        }
    }
    let page = reply(&given, &ann("list drafts --prefix in --limit 1"), 0);
    assert_eq!(
        (&page["count"], &page["nextOffset"], &page["entries"][0]["key"]),
        (&json!(2), &json!(1), &json!("a"))
    );
    assert_eq!(page["entries"][0]["value"]["title"], json!("user:ann"));
    let run = given.run(&ann("watch drafts --prefix in --from latest --idle 10ms"));
    let events: Vec<Value> = json_lines(&run.text());
    let told: Vec<_> =
        events.iter().map(|event| (event["event"].as_str().unwrap(), event["key"].as_str())).collect();
    assert_eq!(told, [("put", Some("a")), ("put", Some("b")), ("ready", None)]);
}

#[test]
fn an_older_version_is_shown_and_asks_for_migration() {
    let given = given_notes();
    let old = reply(&given, &ann("put preferences --value {\"theme\":\"dark\"}"), 0);
    accept(&given, "file:./.pleach", "later.yaml");
    let seen = reply(&given, &as_one("user:ann", "later.yaml", "get preferences"), 4);
    assert_eq!((&seen["migrationRequired"], &seen["entry"]), (&json!(true), &old["entry"]));
    let revision = old["entry"]["revision"].as_str().unwrap();
    reply(
        &given,
        &as_one("user:ann", "later.yaml", &format!("put preferences --revision {revision} --value {{}}")),
        0,
    );
    reply(&given, &as_one("user:ann", "later.yaml", "get preferences"), 0);
}

#[test]
fn administrators_find_export_and_erase_and_leave_a_record() {
    let given = given_notes();
    for key in ["a", "b"] {
        reply(&given, &ann(&format!("put drafts {key} --value {{\"title\":\"x\"}}")), 0);
    }
    reply(&given, &as_one("user:bob", "notes.yaml", "put drafts a --value {\"title\":\"y\"}"), 0);
    let admin = |verb: &str, rest: &[&str]| {
        let fixed =
            ["--json", "state", "admin", verb, "--who", "olga", "--why", "ticket 7", "--of", "user:ann"];
        given.ok(&[&fixed[..], rest].concat())
    };
    assert_eq!(
        json_lines(&admin("find", &[])),
        [json!({"contract": "acme.notes@v1", "store": "drafts", "entries": 2})]
    );
    let lines = json_lines(&admin("export", &[]));
    assert_eq!(lines.iter().map(|line| line["key"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    let entry = json_lines(&admin("get", &["--contract-id", "acme.notes@v1", "drafts", "a"]));
    assert_eq!(entry[0]["value"], json!({"title": "x"}));
    admin("delete", &["--contract-id", "acme.notes@v1", "drafts", "a"]);
    assert_eq!(json_lines(&admin("erase", &[])), [json!({"event": "state_erased", "entries": 1})]);
    reply(&given, &ann("get drafts b"), 3);
    reply(&given, &as_one("user:bob", "notes.yaml", "get drafts a"), 0);
    let log = json_lines(&given.ok(&["--json", "state", "admin", "log"]));
    let acts: Vec<_> = log.iter().map(|record| record["act"].as_str().unwrap()).collect();
    assert_eq!(acts, ["erase", "delete", "get", "export", "find"]);
    assert!(log.iter().all(|record| record["who"] == "olga" && record["why"] == "ticket 7"));
    let nameless = given.run(&["state", "admin", "find", "--who", "", "--why", "x", "--of", "user:ann"]);
    assert_eq!(nameless.code, 2);
}

#[test]
fn state_is_for_sessions_and_copies_and_not_for_hands() {
    let given = given_notes();
    reply(&given, &ann("put drafts a --value {\"title\":\"one\"}"), 0);
    let key = given.ok(&["--break-glass", "a look", "kv", "ls", "pleach_state"]).trim().to_owned();
    for refused in [
        vec!["kv", "put", "pleach_state", &key, "{}"],
        vec!["kv", "del", "pleach_state", &key],
        vec!["kv", "bucket", "rm", "pleach_state", "--yes"],
        vec!["kv", "get", "pleach_state", &key],
        vec!["kv", "ls", "pleach_state"],
        vec!["kv", "history", "pleach_state", &key],
        vec!["kv", "watch", "pleach_state", "--idle", "1ms"],
        vec!["kv", "export", "pleach_state"],
        vec!["kv", "get", "pleach_state_log", "act"],
    ] {
        given.run(&refused).fails(11, "kept by the store itself");
        given.run(&refused).fails(11, "pleach state admin");
    }
    assert!(given.ok(&["kv", "bucket", "ls"]).contains("pleach_state"));
    reply(&given, &ann("get drafts a"), 0);
    // A copy of the whole bucket is as good as the first.
    given.ok(&["kv", "export", "-o", "all.ndjson"]);
    given.ok(&["--store", "file:./copy", "kv", "import", "--create-buckets", "all.ndjson"]);
    given.ok(&["migrate", "--from", "file:./copy", "--to", "file:./moved"]);
    for store in ["file:./copy", "file:./moved"] {
        accept(&given, store, "notes.yaml");
        let mut arguments = ann("get drafts a");
        arguments.splice(0..0, ["--store".to_owned(), store.to_owned()]);
        assert_eq!(reply(&given, &arguments, 0)["entry"]["value"], json!({"title": "one"}), "{store}");
    }
    // In an emergency, on record.
    given.ok(&["--break-glass", "a repair", "kv", "put", "pleach_state", &key, "{}"]);
    given.run(&["kv", "put", "pleach_system", "store", "{}"]).fails(11, "pleach contract");
    let glass = given.ok(&["kv", "ls", "pleach_system", "glass.>"]);
    let last = glass.lines().last().unwrap();
    let record = given.ok(&["kv", "get", "pleach_system", last.trim()]);
    assert!(record.contains("pleach_state") && record.contains("a repair"), "{record}");
}

#[test]
fn a_contract_is_planned_and_applied_before_anything_is_put() {
    let given = given_nothing();
    given.file("notes.yaml", NOTES);
    given.file("next.yaml", NOTES.replace("title: {type: string}", "title: {type: string, maxLength: 3}"));
    let put = ann("put drafts a --value {\"title\":\"Dear\"}");
    given.run(&put).fails(3, "there is no store");
    given.ok(&["kv", "bucket", "add", "carts"]);
    given.run(&put).fails(3, "pleach contract plan FILE");
    accept(&given, "file:./.pleach", "notes.yaml");
    reply(&given, &put, 0);
    reply(&given, &as_one("user:ann", "next.yaml", "get drafts a"), 2);
    accept(&given, "file:./.pleach", "next.yaml");
    // The program of the old contract goes on with what the new one allows.
    given.run(&put).fails(2, "contract in force");
    reply(&given, &ann("put drafts a --value {\"title\":\"x\"}"), 0);
}
