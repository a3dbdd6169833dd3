//! `pleach status` and `pleach doctor`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use crate::given::{Given, given, given_nothing, json_lines};

/// A program that has the store open, and has said how it is doing.
fn holder(given: &Given) -> Child {
    let mut holder = given.start(&["--json", "kv", "watch", "b", "--from", "latest"]);
    let mut output = BufReader::new(holder.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    let pid = format!("\"id\":{}", holder.id());
    let written = || fs::read_to_string(given.path().join(".pleach/status.json")).unwrap_or_default();
    while !written().contains(&pid) {
        assert!(holder.try_wait().unwrap().is_none(), "it has ended and said nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    holder
}

fn end(mut holder: Child) {
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn a_store_that_a_program_has_open_is_shown_from_outside() {
    let given = given("put k 1; put k 2");
    let holder = holder(&given);
    let pid = holder.id();

    let text = given.ok(&["status"]);
    assert!(text.contains(&format!("is open in process {pid} (pleach), for ")), "{text}");
    assert!(text.contains("revision   3\n") && text.contains("BUCKET"), "{text}");

    let seen = &given.json(&["status", "file:.pleach"])[0];
    assert_eq!((seen["v"].as_u64(), seen["state"].as_str()), (Some(1), Some("open")));
    assert_eq!(seen["status"]["process"]["id"], pid);
    assert_eq!(seen["status"]["buckets"][0]["name"], "b");
    assert!(seen["age"].as_f64().unwrap() < 60.0);

    let lines = given.ok(&["status", "--watch", "100ms", "--count", "2"]);
    assert_eq!(lines.lines().filter(|line| line.contains("  open  revision 3  ")).count(), 2, "{lines}");
    let objects = given.json(&["status", "--watch", "100ms", "--count", "2"]);
    assert_eq!(objects.iter().filter(|object| object["state"] == "open").count(), 2);

    let findings = given.run(&["--json", "doctor"]);
    let findings = json_lines(&findings.text());
    assert_eq!(findings.last().unwrap()["event"], "examined");
    end(holder);

    // Killed, it has left its figures; the store tells its size itself.
    let text = given.ok(&["status"]);
    assert!(text.contains("is not open.\nProcess ") && text.contains(" was last heard of "), "{text}");
    let seen = &given.json(&["status"])[0];
    assert_eq!((seen["state"].as_str(), seen["status"]["revision"].as_u64()), (Some("closed"), Some(3)));
    assert_eq!(seen["holder"], Value::Null);
}

#[test]
fn a_store_that_nobody_has_used_for_long_tells_how_large_it_is() {
    let given = given("put k 1");
    // A command that took more than a second has left figures.
    let forget = || {
        let _ = fs::remove_file(given.path().join(".pleach/status.json"));
    };
    forget();
    let text = given.ok(&["status"]);
    assert!(text.contains("is not open, and nobody has left figures of its use.\n"), "{text}");
    assert!(text.contains("1 segment, garbage .......... 0 %"), "{text}");
    forget();
    let seen = &given.json(&["status"])[0];
    assert_eq!((&seen["age"], seen["status"]["bucket_count"].as_u64()), (&Value::Null, Some(1)));

    forget();
    let run = given.run(&["status", "--watch", "100ms", "--count", "1"]);
    assert!(run.text().contains("nobody has left figures"), "{run:?}");
}

#[test]
fn figures_that_cannot_be_read_are_as_if_there_were_none() {
    let given = given("put k 1");
    for damaged in ["", "{", "{\"v\":1}", "{\"v\":9,\"status\":{}}", "\u{0}"] {
        fs::write(given.path().join(".pleach/status.json"), damaged).unwrap();
        let text = given.ok(&["status"]);
        assert!(text.contains("nobody has left figures"), "{damaged:?}: {text}");
    }
}

#[test]
fn a_healthy_store_is_well() {
    let given = given("put k 1");
    let findings = json_lines(&given.run(&["--json", "doctor"]).text());
    // How full the disk of this machine is, is not the store's fault.
    let own: Vec<_> = findings.iter().filter(|one| one["rule"] != "disk_nearly_full").collect();
    assert_eq!(own.len(), 1, "{findings:?}");
    if findings.len() == 1 {
        assert!(given.ok(&["doctor"]).ends_with("/.pleach is well.\n"));
        assert_eq!(given.ok(&["--quiet", "doctor"]), "");
    }
}

#[test]
fn the_doctor_says_what_why_and_what_next_and_ends_with_an_exit_code() {
    let given = given("put k 1");
    given.ok(&["kv", "bucket", "add", "quick", "--durability", "buffered"]);
    let notes = given.run(&["doctor"]);
    assert!(notes.text().contains("note: a power cut may lose the last second"), "{notes:?}");
    let _lock = given_figures(&given, 4711);
    let run = given.run(&["doctor"]);
    assert_eq!(run.code, 7, "{run:?}");
    assert!(
        run.text()
            .starts_with("problem: the store takes no more writes: its log could not be synced\n  why   ")
    );
    assert!(run.stderr.contains("error: 3 things should be looked after\n"), "{}", run.stderr);
    let findings = json_lines(&given.run(&["--json", "doctor"]).text());
    let rules: Vec<_> = findings.iter().filter_map(|finding| finding["rule"].as_str()).collect();
    assert_eq!(rules, ["read_only", "consumer_lost", "stalled_by_merges", "hot_get_key", "buffered"]);
}

#[test]
fn a_holder_that_has_not_said_anything_yet_is_named() {
    let given = given("put k 1");
    let _lock = given_figures(&given, 4711);
    fs::write(given.path().join(".pleach/LOCK"), "process 17 (other)\n").unwrap();
    given.run(&["status"]).fails(7, "process 17 (other), which has not said yet how it is doing");
    given.run(&["doctor"]).fails(7, "help: try again in a second");
}

#[test]
fn only_a_store_in_a_directory_has_a_status() {
    let given = given_nothing();
    given.run(&["--store", "mem:", "status"]).fails(6, "only a store in a directory");
    given.run(&["status", "file:nowhere"]).fails(3, "there is no store at nowhere");
    given.run(&["doctor", "nowhere"]).fails(2, "has no scheme");
    given.run(&["status", "--count", "3"]).fails(2, "--watch");
    assert!(!given.has("nowhere"));
}

/// Locks the store as process `pid` would, and leaves figures of it. It is locked until what is returned is dropped.
pub(crate) fn given_figures(given: &Given, pid: u32) -> File {
    let store = given.path().join(".pleach");
    fs::write(store.join("LOCK"), format!("process {pid} (shop)\n")).unwrap();
    let lock = File::options().read(true).write(true).open(store.join("LOCK")).unwrap();
    lock.lock().unwrap();
    fs::write(store.join("status.json"), include_str!("figures.json")).unwrap();
    lock
}
