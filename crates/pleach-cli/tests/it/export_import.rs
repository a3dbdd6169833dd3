use std::fs;

use serde_json::json;

use crate::given::{Given, content, given, given_nothing};

fn rich() -> Given {
    let given = given(
        "put a 1; put a 2; put c 3; del c; put d x --ttl 1h; put e 1; purge e; put f 1 --header Who=me",
    );
    given.run_with(&[0, 0xff], &["kv", "put", "b", "bin"]).ok();
    given.ok(&["kv", "bucket", "add", "other", "--ttl", "30days", "--meta", "team=web"]);
    given.ok(&["kv", "put", "other", "k", "grün\n"]);
    given
}

#[test]
fn an_export_imported_elsewhere_exports_the_same() {
    for history in [&[][..], &["--history"]] {
        let given = rich();
        given.ok(&[&["kv", "export", "-o", "dump"], history].concat());
        given.ok(&["--store", "file:copy", "kv", "import", "dump", "--create-buckets"]);
        let export = [&["kv", "export"], history].concat();
        let (before, after) =
            (given.json(&export), given.json(&[&["--store", "file:copy"], &export[..]].concat()));
        assert_eq!(content(&before), content(&after));
        assert!(!given.has("dump.import-state") && !given.has("dump.part"));
    }
}

#[test]
fn an_export_has_only_the_buckets_it_was_asked_for() {
    let given = rich();
    let all: Vec<_> = given.json(&["kv", "export"]).iter().map(|line| line["bucket"].clone()).collect();
    assert!(all.contains(&json!("b")) && all.contains(&json!("other")));
    let one = given.json(&["kv", "export", "other"]);
    assert_eq!(one.len(), 2);
    assert_eq!(one[0]["config"]["metadata"], json!({"team": "web"}));
    given.run(&["kv", "export", "nope"]).fails(3, "there is no bucket nope");
}

#[test]
fn whatever_json_prints_can_be_imported() {
    let given = rich();
    let commands: [&[&str]; 5] = [
        &["kv", "bucket", "ls"],
        &["kv", "ls", "b"],
        &["kv", "get", "b", "bin"],
        &["kv", "history", "b", "a"],
        &["kv", "watch", "b", "--from", "latest", "--idle", "50ms"],
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let lines = given.ok(&[&["--json"], command].concat());
        let store = format!("file:copy{number}");
        given.run_with(lines.as_bytes(), &["--store", &store, "kv", "import", "--create-buckets"]).ok();
    }
    assert_eq!(given.ok(&["--store", "file:copy3", "kv", "get", "b", "a"]), "2\n");
}

#[test]
fn records_of_a_key_keep_their_order() {
    let given = given("");
    let lines: String = (0..50)
        .map(|n| format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"k{}\",\"value\":\"{n}\"}}\n", n % 3))
        .collect();
    given.run_with(lines.as_bytes(), &["kv", "import"]).ok();
    for (key, values) in [("k0", ["36", "39", "42", "45", "48"]), ("k1", ["37", "40", "43", "46", "49"])] {
        let history = given.json(&["kv", "history", "b", key]);
        assert_eq!(
            history.iter().map(|record| record["value"].as_str().unwrap()).collect::<Vec<_>>(),
            values
        );
    }
}

#[test]
fn an_entry_that_has_expired_does_not_let_an_older_value_show() {
    let given = given("put k old");
    let lines = "{\"v\":1,\"bucket\":\"b\",\"key\":\"k\",\"value\":\"new\",\"expires\":\"2001-01-01T00:00:00Z\"}\n\
                 {\"v\":1,\"bucket\":\"b\",\"key\":\"fresh\",\"value\":\"x\",\"expires\":\"2901-01-01T00:00:00Z\"}\n";
    let text = given.run_with(lines.as_bytes(), &["kv", "import"]).ok();
    assert_eq!(text, "imported 1 record; 1 had expired\n");
    given.run(&["kv", "get", "b", "k"]).fails(3, "no value");
    assert_eq!(given.json(&["kv", "get", "b", "fresh"])[0]["expires"], "2901-01-01T00:00:00.000000Z");
}

#[test]
fn a_bucket_that_is_missing_is_created_only_on_request() {
    let given = given("");
    let line = "{\"v\":1,\"bucket\":\"new\",\"key\":\"k\",\"value\":\"1\"}\n";
    let run = given.run_with(line.as_bytes(), &["kv", "import"]);
    run.fails(3, "there is no bucket new");
    assert!(run.stderr.contains("help: add --create-buckets"), "{}", run.stderr);
    given.run_with(line.as_bytes(), &["kv", "import", "--create-buckets"]).ok();
    assert_eq!(given.ok(&["kv", "get", "new", "k"]), "1\n");
}

#[test]
fn a_bucket_that_is_there_stays_as_it_is() {
    let given = given("");
    let line = "{\"v\":1,\"bucket\":\"b\",\"config\":{\"history\":2}}\n";
    given.run_with(line.as_bytes(), &["kv", "import", "--create-buckets"]).ok();
    assert_eq!(given.json(&["kv", "bucket", "info", "b"])[0]["config"]["history"], 5);
}

#[test]
fn a_bad_line_stops_the_import_and_it_goes_on_once_that_is_corrected() {
    let given = given("");
    let line = |n: usize| format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"k{n}\",\"value\":\"{n}\"}}\n");
    given.file("dump", [line(1), line(2), "{\"v\":1,\n".into(), line(4)].concat());
    let run = given.run(&["kv", "import", "dump"]);
    run.fails(2, "error: line 3 cannot be imported");
    assert!(run.stderr.contains("help: correct that line, and go on with --resume"), "{}", run.stderr);
    assert_eq!(given.ok(&["kv", "ls", "b"]), "k1\nk2\n");

    given.run(&["kv", "import", "dump"]).fails(4, "was interrupted");
    given.file("dump", [line(1), line(2), line(3), line(4)].concat());
    let run = given.run(&["kv", "import", "dump", "--resume"]);
    assert_eq!(
        (run.text().as_str(), run.stderr.as_str()),
        ("imported 4 records\n", "note: went on at line 3\n")
    );
    assert_eq!(given.ok(&["kv", "ls", "b"]), "k1\nk2\nk3\nk4\n");
    assert_eq!(given.json(&["kv", "history", "b", "k1"]).len(), 1, "no line was applied twice");
    assert!(!given.has("dump.import-state"));
}

#[test]
fn an_import_goes_on_only_with_the_same_input_and_store() {
    let given = given("");
    let good = "{\"v\":1,\"bucket\":\"b\",\"key\":\"k\",\"value\":\"1\"}\n";
    given.file("dump", [good, "bad\n"].concat());
    given.run(&["kv", "import", "dump"]).fails(2, "line 2");
    given.ok(&["--store", "file:other", "kv", "bucket", "add", "b"]);
    given.run(&["--store", "file:other", "kv", "import", "dump", "--resume"]).fails(2, "went into");
    given.file("dump", good.replace('1', "2"));
    given.run(&["kv", "import", "dump", "--resume"]).fails(2, "not the input of the import");
    fs::remove_file(given.path().join("dump.import-state")).unwrap();
    given.file("dump", good);
    given.ok(&["kv", "import", "dump", "--resume"]);
}

#[test]
fn a_line_that_the_bucket_refuses_can_be_corrected() {
    let given = given("");
    given.ok(&["kv", "bucket", "edit", "b", "--value-max", "3B"]);
    given.file("dump", "{\"v\":1,\"bucket\":\"b\",\"key\":\"k\",\"value\":\"too long\"}\n");
    given.run(&["kv", "import", "dump"]).fails(2, "larger than the bucket's limit");
    given.file("dump", "{\"v\":1,\"bucket\":\"b\",\"key\":\"k\",\"value\":\"ok\"}\n");
    given.ok(&["kv", "import", "dump", "--resume"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "ok\n");
}

#[test]
fn an_import_needs_an_input_and_a_place_to_remember() {
    let given = given_nothing();
    given.run(&["kv", "import", "gone"]).fails(3, "cannot read gone");
    given.ok(&["kv", "bucket", "add", "b"]);
    given.run(&["kv", "import", "--resume"]).fails(2, "--state");
    given.file("dump.import-state", "my diary");
    given.file("dump", "");
    given.run(&["kv", "import", "dump", "--resume"]).fails(2, "cannot read the state");
}

#[test]
fn an_import_that_never_began_can_simply_be_repeated() {
    let given = given("");
    let line = |bucket: &str| format!("{{\"v\":1,\"bucket\":\"{bucket}\",\"key\":\"k\",\"value\":\"1\"}}\n");
    given.file("dump", "nonsense\n");
    given.run(&["kv", "import", "dump"]).fails(2, "error: line 1 cannot be imported");
    given.file("dump", line("missing"));
    given.run(&["kv", "import", "dump"]).fails(3, "error: line 1 cannot be imported");
    assert!(!given.has("dump.import-state"));
    given.file("dump", line("b"));
    given.run(&["kv", "import", "dump"]).ok();
}

#[test]
fn a_bucket_named_twice_is_exported_once() {
    assert_eq!(given("put k 1").json(&["kv", "export", "b", "b"]).len(), 2);
}

#[test]
fn an_export_that_fails_leaves_no_half_file() {
    let given = given("put k 1");
    fs::create_dir(given.path().join("dump")).unwrap();
    given.run(&["kv", "export", "-o", "dump"]).fails(2, "cannot write to dump");
    assert!(!given.has("dump.part"));
}
