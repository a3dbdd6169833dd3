use std::io::{BufRead as _, BufReader};
use std::process::Command;

use crate::given::{given, json_lines};

#[test]
fn a_watch_from_the_latest_values_marks_where_they_end() {
    let given = given("put a 1; put a 2; put c 3; put gone x; del gone");
    let seen = given.json(&["kv", "watch", "b", "--from", "latest", "--idle", "50ms"]);
    assert_eq!(seen.len(), 3);
    let values: Vec<_> = seen[..2].iter().map(|event| event["value"].as_str().unwrap()).collect();
    assert!(values.contains(&"2") && values.contains(&"3"), "{values:?}");
    assert_eq!((seen[2]["event"].as_str(), seen[2]["bucket"].as_str()), (Some("initial_done"), Some("b")));
}

#[test]
fn a_watch_with_history_delivers_every_kept_record() {
    let given = given("put a 1; put a 2; del a");
    let seen = given.json(&["kv", "watch", "b", "--from", "history", "--idle", "50ms"]);
    let ops: Vec<_> = seen.iter().map(|event| event["op"].as_str()).collect();
    assert_eq!(ops, [Some("put"), Some("put"), Some("delete"), None]);
}

#[test]
fn a_watch_from_a_revision_ends_after_a_count() {
    let given = given("put a 1; put c 2; put a 3; put c 4");
    let seen = given.json(&["kv", "watch", "b", "a", "--from", "3", "--count", "1"]);
    assert_eq!((seen.len(), seen[0]["value"].as_str()), (1, Some("3")));
    let text = given.ok(&["kv", "watch", "b", "--from", "2", "--count", "2"]);
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().next().unwrap().ends_with("put     a  1"), "{text}");
}

#[test]
fn a_watch_takes_several_filters() {
    let given = given("put a.1 x; put c.1 x; put d.1 x");
    let seen = given.json(&["kv", "watch", "b", "a.*", "d.>", "--from", "2", "--count", "2"]);
    let keys: Vec<_> = seen.iter().map(|event| event["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["a.1", "d.1"]);
}

#[test]
fn an_idle_watch_ends_by_itself() {
    assert_eq!(given("put a 1").ok(&["kv", "watch", "b", "--idle", "20ms"]), "");
}

#[test]
fn a_watch_from_the_future_is_refused() {
    given("put a 1").run(&["kv", "watch", "b", "--from", "99"]).fails(2, "in the future");
}

#[test]
fn records_of_a_batch_say_so() {
    let given = given("");
    let lines = "{\"v\":1,\"bucket\":\"b\",\"key\":\"x\",\"value\":\"1\"}\n{\"v\":1,\"bucket\":\"b\",\"key\":\"y\",\"value\":\"2\"}\n";
    given.run_with(lines.as_bytes(), &["kv", "import"]).ok();
    let seen = given.json(&["kv", "watch", "b", "--from", "2", "--count", "2"]);
    let parts: Vec<_> = seen.iter().map(|event| event["batch"].clone()).collect();
    assert_eq!(
        parts,
        [serde_json::json!({"index": 0, "size": 2}), serde_json::json!({"index": 1, "size": 2})]
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_a_polite_kill_end_a_watch_cleanly() {
    for signal in ["-INT", "-TERM"] {
        a_watch_ends_cleanly_by(signal);
    }
}

#[cfg(unix)]
fn a_watch_ends_cleanly_by(signal: &str) {
    let given = given("put a 1");
    let mut child = given.start(&["--json", "kv", "watch", "b", "--from", "latest"]);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = String::new();
    // The mark says that the watch has begun, so that the signal cannot come too early.
    while !lines.contains("initial_done") {
        assert_ne!(output.read_line(&mut lines).unwrap(), 0, "{lines}");
    }
    assert_eq!(json_lines(&lines).len(), 2);
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(given.ok(&["kv", "get", "b", "a"]), "1\n", "the store is free again");
}
