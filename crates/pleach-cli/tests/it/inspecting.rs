use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::given::{Given, content, given, given_nothing, json_lines};

/// A store whose second put, `b/k.2`, has a damaged value.
fn given_damage() -> (Given, PathBuf, usize) {
    let given = given("put k.1 one; put k.2 two-two-two; put k.3 three; put k.4 four");
    let segment = given.path().join(".pleach/log/00000000000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    let value = bytes.windows(11).position(|window| window == b"two-two-two").unwrap();
    bytes[value] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    (given, segment, value)
}

#[test]
fn a_sound_store_is_verified_in_a_few_lines() {
    let given = given("put k 1; put k 2; del k; put other 3");
    let text = given.ok(&["verify"]);
    for part in
        [" is sound.", "1 segment", "5 records, revisions 1 to 5", "1 bucket, 1 entry", "  index     "]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(given.ok(&["verify", "--quiet"]), "");
    let lines = given.json(&["verify"]);
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["event"], &lines[0]["state"]), (&json!("index"), &json!("absent")));
    let summary = &lines[1];
    assert_eq!(
        (&summary["v"], &summary["event"], &summary["sound"]),
        (&json!(1), &json!("verified"), &json!(true))
    );
    assert_eq!(summary["revisions"], json!({"first": 1, "last": 5}));
}

#[test]
fn damage_is_reported_with_what_is_lost_and_what_to_do() {
    let (given, segment, value) = given_damage();
    let run = given.run(&["verify"]);
    assert_eq!(run.code, 9);
    for part in [
        "is damaged.",
        "Damage 1: a commit is unreadable",
        "revision 3 (1 commit)",
        "bucket    b",
        "keys      k.2",
    ] {
        assert!(run.text().contains(part), "{part:?} is not in {}", run.text());
    }
    assert!(run.text().contains("1 revision is lost to any repair: revision 3."), "{}", run.text());
    assert!(run.stderr.contains("pleach salvage --to PATH"), "{}", run.stderr);

    let run = given.run(&["--json", "verify"]);
    assert_eq!(run.code, 9);
    let lines = json_lines(&run.text());
    let damage = &lines[0];
    assert_eq!(damage["event"], "damage");
    assert!(segment.ends_with(damage["path"].as_str().unwrap().trim_start_matches("./")));
    let (offset, length) = (damage["offset"].as_u64().unwrap(), damage["length"].as_u64().unwrap());
    assert!((offset..offset + length).contains(&(value as u64)), "{damage}");
    assert_eq!(damage["lost"], json!({"first": 3, "last": 3}));
    assert_eq!(damage["keys"], json!([{"key": "k.2", "sound": false}]));
    assert_eq!(lines.last().unwrap()["lost_revisions"], 1);
    assert_eq!(json_lines(&run.stderr)[0]["kind"], "corrupt");
}

#[test]
fn salvage_copies_the_rest_and_says_what_is_missing() {
    let (given, ..) = given_damage();
    let run = given.run(&["--json", "salvage", "--to", "new"]);
    assert_eq!(run.code, 9, "{}", run.stderr);
    let lines = json_lines(&run.text());
    assert_eq!(lines[0]["lost"], json!({"first": 3, "last": 3}));
    let summary: &Value = lines.last().unwrap();
    assert_eq!((&summary["event"], &summary["copied_records"]), (&json!("salvaged"), &json!(4)));
    assert_eq!(given.ok(&["--store", "file:new", "kv", "ls", "b"]), "k.1\nk.3\nk.4\n");
    assert!(given.ok(&["--store", "file:new", "verify"]).contains("is sound."));
    given.run(&["salvage", "--to", "new"]).fails(2, "new is not empty");
}

#[test]
fn salvage_of_a_sound_store_succeeds_with_its_history() {
    let given = given("put k 1; put k 2; del k; put k 3");
    assert!(given.ok(&["salvage", "--to", "new"]).contains("5 commits with 5 records are in new"));
    let exported = |store: &str| content(&given.json(&["--store", store, "kv", "export", "--history"]));
    assert_eq!(exported("file:.pleach"), exported("file:new"));
}

#[test]
fn an_index_is_built_anew_on_demand() {
    let given = given("put k 1");
    assert!(given.ok(&["rebuild"]).contains("up to revision 2"));
    assert!(given.ok(&["verify"]).contains("agrees with the log up to revision 2, 1 key"));
    let old = given.json(&["rebuild"]).remove(0);
    assert_eq!((&old["event"], &old["revision"]), (&json!("rebuilt"), &json!(2)));
    assert!(given.has(old["set_aside"].as_str().unwrap()));
    fs::write(given.path().join(".pleach/index/MANIFEST"), "nonsense").unwrap();
    let run = given.run(&["verify"]);
    assert_eq!(run.code, 9);
    assert!(run.stderr.contains("pleach rebuild"), "{}", run.stderr);
    assert_eq!(given.json(&["rebuild", "--discard-old"])[0]["set_aside"], Value::Null);
    assert!(given.ok(&["verify"]).contains("is sound."));
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "1\n");
}

#[test]
fn what_cannot_be_inspected_is_refused() {
    let given = given_nothing();
    given.run(&["verify"]).fails(3, "there is no store at");
    given.run(&["--store", "mem:", "verify"]).fails(6, "only a store in a directory");
    given.run(&["--store", "file:.", "salvage", "--to", "new"]).fails(2, "is not a Pleach store");
    assert!(!given.has("new") && !given.has("LOCK"));
}

#[test]
fn a_log_is_cleaned_on_demand() {
    let given = given_nothing();
    given.ok(&["kv", "bucket", "add", "b", "--feed-bytes", "0"]);
    let line = |number: usize| {
        let value = format!("{number}-{}", "v".repeat(20_000));
        format!("{}\n", json!({"v": 1, "bucket": "b", "key": format!("k.{}", number % 10), "value": value}))
    };
    let lines: String = (0..500).map(line).collect();
    given.file("lines", &lines);
    given.ok(&["kv", "import", "lines"]);
    let cleaned = given.json(&["clean"]).remove(0);
    assert_eq!(cleaned["event"], json!("cleaned"));
    let bytes = |field: &str| cleaned[field].as_u64().unwrap();
    // The import may have cleaned some of it already.
    assert!(bytes("bytes") <= bytes("bytes_before") && bytes("bytes") < 4_000_000, "{cleaned}");
    assert!(given.ok(&["clean"]).contains("the log of "));
    assert!(given.ok(&["verify"]).contains("is sound."));
    assert!(given.ok(&["kv", "get", "b", "k.3"]).starts_with("493-"));
}
