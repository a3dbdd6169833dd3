use std::fs;

use crate::given::{given, given_nothing};

#[test]
fn a_value_given_as_an_argument_is_printed_with_a_newline() {
    let given = given("");
    assert_eq!(given.ok(&["kv", "put", "b", "k", "3 apples"]), "b/k is at revision 2\n");
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "3 apples\n");
}

#[test]
fn a_value_comes_from_stdin_byte_for_byte() {
    let given = given("");
    let bytes: Vec<u8> = (0..=255).chain(*b"\n").collect();
    for arguments in [&["kv", "put", "b", "k"][..], &["kv", "put", "b", "k", "-"]] {
        given.run_with(&bytes, arguments).ok();
        assert_eq!(given.run(&["kv", "get", "b", "k", "--raw"]).stdout, bytes);
        given.ok(&["kv", "purge", "b", "k"]);
    }
}

#[test]
fn a_value_comes_from_a_file() {
    let given = given("");
    given.file("v", [0, 159, 146, 150]);
    given.ok(&["kv", "put", "b", "k", "--file", "v"]);
    assert_eq!(given.run(&["kv", "get", "b", "k", "--raw"]).stdout, [0, 159, 146, 150]);
    given.run(&["kv", "put", "b", "k", "--file", "gone"]).fails(3, "cannot read the value from gone");
    given.run(&["kv", "put", "b", "k", "x", "--file", "v"]).fails(2, "cannot be used with");
}

#[test]
fn an_empty_value_is_a_value() {
    let given = given("");
    given.ok(&["kv", "put", "b", "k", ""]);
    assert_eq!(given.run(&["kv", "get", "b", "k", "--raw"]).ok(), "");
}

#[test]
fn a_negative_number_is_a_value() {
    let given = given("");
    given.ok(&["kv", "put", "b", "k", "-5"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "-5\n");
}

#[test]
fn a_binary_value_is_base64_in_json() {
    let given = given("");
    given.run_with(&[0xff, 0x00], &["kv", "put", "b", "k"]).ok();
    let entry = &given.json(&["kv", "get", "b", "k"])[0];
    assert_eq!(entry["value_base64"], "/wA=");
    assert!(entry.get("value").is_none());
}

#[test]
fn create_takes_only_a_key_without_a_value() {
    let given = given("create k 1");
    given
        .run(&["kv", "create", "b", "k", "2"])
        .fails(4, "conflict on b/k: expected no value, found revision 2");
    given.ok(&["kv", "del", "b", "k"]);
    given.ok(&["kv", "create", "b", "k", "3"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "3\n");
}

#[test]
fn update_takes_only_the_revision_that_was_seen() {
    let given = given("put k 1; put k 2");
    given
        .run(&["kv", "update", "b", "k", "x", "--revision", "2"])
        .fails(4, "expected revision 2, found revision 3");
    given.ok(&["kv", "update", "b", "k", "x", "--revision", "3"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "x\n");
    given.run(&["kv", "update", "b", "k", "x"]).fails(2, "--revision");
}

#[test]
fn del_and_purge_keep_to_the_revision_they_are_given() {
    let given = given("put k 1; put k 2");
    for command in ["del", "purge"] {
        given.run(&["kv", command, "b", "k", "--revision", "2"]).fails(4, "conflict");
    }
    given.ok(&["kv", "del", "b", "k", "--revision", "3"]);
    assert_eq!(given.json(&["kv", "history", "b", "k"]).len(), 3);
    given.ok(&["kv", "purge", "b", "k", "--revision", "4"]);
    let history = given.json(&["kv", "history", "b", "k"]);
    assert_eq!((history.len(), history[0]["op"].as_str()), (1, Some("purge")));
}

#[test]
fn a_value_with_a_ttl_says_when_it_is_gone_and_goes() {
    let given = given("");
    let put = &given.json(&["kv", "put", "b", "k", "v", "--ttl", "30s"])[0];
    let read = &given.json(&["kv", "get", "b", "k"])[0];
    assert!(put["expires"].as_str() > put["time"].as_str());
    assert_eq!(put, read);
    given.ok(&["kv", "put", "b", "k", "v", "--ttl", "1ms"]);
    given.run(&["kv", "get", "b", "k"]).fails(3, "b/k has no value");
    given.run(&["kv", "put", "b", "k", "v", "--ttl", "101years"]).fails(2, "TTL");
    given.run(&["kv", "put", "b", "k", "v", "--ttl", "soon"]).fails(2, "--ttl");
}

#[test]
fn headers_travel_with_a_value() {
    let given = given("");
    given.ok(&["kv", "put", "b", "k", "v", "--header", "Trace-Id=7", "--header", "Who=me=you"]);
    let entry = &given.json(&["kv", "get", "b", "k"])[0];
    assert_eq!(entry["headers"], serde_json::json!({"Trace-Id": "7", "Who": "me=you"}));
    given.run(&["kv", "put", "b", "k", "v", "--header", "Trace"]).fails(2, "NAME=VALUE");
    given.run(&["kv", "put", "b", "k", "v", "--header", "a b=c"]).fails(2, "header name");
}

#[test]
fn get_reads_the_past() {
    let given = given("put k 1; put k 2; del k");
    assert_eq!(given.ok(&["kv", "get", "b", "k", "--revision", "2"]), "1\n");
    given.run(&["kv", "get", "b", "k"]).fails(3, "b/k has no value");
    given.run(&["kv", "get", "b", "k", "--revision", "4"]).fails(3, "no value as of revision 4");
    given.run(&["kv", "get", "b", "k", "--revision", "99"]).fails(2, "in the future");
}

#[test]
fn what_is_no_longer_kept_is_said_to_be_compacted() {
    let given = given("put k 1; put k 2; compact k --keep 1");
    given.run(&["kv", "get", "b", "k", "--revision", "2"]).fails(5, "no longer kept");
    given.run(&["kv", "revert", "b", "k", "2"]).fails(5, "keeps no record as old as revision 2");
}

#[test]
fn history_shows_values_and_markers_oldest_first() {
    let given = given("put k 1; put k 2; del k");
    let history = given.json(&["kv", "history", "b", "k"]);
    let seen: Vec<_> =
        history.iter().map(|record| (record["op"].as_str(), record["value"].as_str())).collect();
    assert_eq!(seen, [(Some("put"), Some("1")), (Some("put"), Some("2")), (Some("delete"), None)]);
    let text = given.ok(&["kv", "history", "b", "k"]);
    assert!(text.starts_with("REVISION  TIME"), "{text}");
    assert_eq!(text.lines().count(), 4);
    given.run(&["kv", "history", "b", "other"]).fails(3, "has no history");
}

#[test]
fn revert_puts_an_older_value_again() {
    let given = given("put k 1; put k 2; del k");
    given.ok(&["kv", "revert", "b", "k", "2"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "1\n");
    given.run(&["kv", "revert", "b", "k", "4"]).fails(2, "is a delete without a value");
    given.run(&["kv", "revert", "b", "k", "99"]).fails(3, "no record with revision 99");
}

#[test]
fn revert_works_on_a_value_that_has_expired() {
    let given = given("put k 1; put k 2 --ttl 1ms");
    given.run(&["kv", "get", "b", "k"]).fails(3, "no value");
    given.ok(&["kv", "revert", "b", "k", "2"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "1\n");
}

#[test]
fn a_store_is_made_by_its_first_bucket_and_by_nothing_else() {
    let given = given_nothing();
    for arguments in [
        &["kv", "get", "b", "k"][..],
        &["kv", "put", "b", "k", "v"],
        &["kv", "bucket", "ls"],
        &["kv", "ls", "b"],
        &["kv", "export"],
    ] {
        given.run(arguments).fails(3, "there is no store at ./.pleach");
    }
    assert_eq!(fs::read_dir(given.path()).unwrap().count(), 0);
    given.ok(&["kv", "bucket", "add", "b"]);
    assert!(given.has(".pleach"));
}
