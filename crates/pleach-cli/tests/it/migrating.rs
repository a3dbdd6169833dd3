//! Buckets that are moved between directories and real NATS servers.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pleach::{BucketConfig, Headers, PutOptions, Store};
use pleach_nats_testing::{Server, Settings};
use serde_json::Value;

use crate::given::{Given, Run, content, given, given_nothing, json_lines};

const FILE: &str = "file:./.pleach";

/// Migrates everything and accepts what is lost.
fn migrate(given: &Given, from: &str, to: &str, more: &[&str]) -> Run {
    given.run(&[&["--json", "migrate", "--from", from, "--to", to, "--accept-loss"], more].concat())
}

/// The last line of what a migration that succeeded printed.
fn last_line(run: Run) -> Value {
    json_lines(&run.ok()).pop().unwrap()
}

/// Every record of a store in a directory, without what is new in every store and the marker that a migration leaves.
fn records(given: &Given, store: &str) -> Vec<Value> {
    let lines = given.json(&["--store", store, "kv", "export", "--history"]);
    let is_record = |line: &Value| line["key"].is_string() && line["key"] != "_kv.migration";
    content(&lines.into_iter().filter(is_record).collect::<Vec<_>>())
}

/// Checks that two stores have the same records; there may be too many to show.
fn check_same(given: &Given, one: &str, other: &str) {
    let (one, other) = (records(given, one), records(given, other));
    let different = one.iter().zip(&other).find(|(one, other)| one != other);
    assert_eq!((different, one.len()), (None, other.len()));
}

fn check_migrated(line: &Value, keys: u64) {
    assert_eq!((&line["event"], &line["keys"]), (&"migrated".into(), &keys.into()), "{line}");
    assert_eq!(line["source_sha256"], line["target_sha256"]);
}

/// Writes many keys, each several times.
fn fill(given: &Given, keys: usize, times: usize) {
    let line =
        |n: usize| format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"k.{:05}\",\"value\":\"{n}\"}}\n", n % keys);
    given.file("dump", (0..keys * times).map(line).collect::<String>());
    given.ok(&["kv", "import", "dump"]);
}

#[test]
fn a_store_moves_to_servers_and_back_with_all_it_has() {
    let server = Server::start();
    let given = given("put a 1; put a 2; del a; put a 3; put x.y 1; del x.y; put z 1; purge z; put e 9");
    let run = given.run(&["kv", "put", "b", "h", "1", "--header", "Trace=7"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let there = last_line(migrate(&given, FILE, &server.url(), &[]));
    check_migrated(&there, 3);
    let back = last_line(migrate(&given, &server.url(), "file:back", &["b"]));
    check_migrated(&back, 3);
    assert_eq!(there["target_sha256"], back["source_sha256"]);
    check_same(&given, FILE, "file:back");
    // Once more, it is only compared.
    let again = migrate(&given, FILE, &server.url(), &[]).ok();
    assert_eq!(json_lines(&again)[0]["begun"], "done");
    check_migrated(json_lines(&again).last().unwrap(), 3);
}

#[test]
fn a_store_moves_to_another_directory_under_another_name() {
    let given = given("put a 1; put a 2; put c 1");
    let moved = last_line(migrate(&given, FILE, "file:other", &["b=d"]));
    check_migrated(&moved, 2);
    assert_eq!(given.ok(&["--store", "file:other", "kv", "get", "d", "a"]), "2\n");
    // Also within one store.
    check_migrated(&last_line(migrate(&given, FILE, FILE, &["b=e"])), 2);
    assert_eq!(given.ok(&["kv", "get", "e", "c"]), "1\n");
}

#[test]
fn what_is_lost_is_said_first_and_refused() {
    let server = Server::start();
    let given = given("put a 1");
    let arguments = ["migrate", "--from", FILE, "--to", &server.url()];
    for more in [&["--dry-run"][..], &[]] {
        let run = given.run(&[&arguments[..], more].concat());
        assert_eq!(run.code, 6, "{}", run.stderr);
        assert!(run.text().contains("lost: commits there are acknowledged before"), "{}", run.text());
        assert!(run.text().contains("note: every record gets a new revision"), "{}", run.text());
        assert!(run.stderr.contains("--accept-loss"), "{}", run.stderr);
    }
    // Nothing was made, so a dry run of the way back finds nothing.
    let back = ["migrate", "--from", &server.url(), "--to", "file:new", "--dry-run"];
    assert_eq!(given.run(&back).code, 3);
    assert!(!given.has("new"));
}

/// Kills a migration a while after it was started; says whether it was still running.
fn killed_after(given: &Given, arguments: &[&str], time: Duration) -> bool {
    let mut child = given.start(arguments);
    thread::sleep(time);
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    was_running
}

#[test]
fn a_migration_that_is_killed_again_and_again_copies_every_record_once() {
    const KEYS: usize = 3000;
    let server = Server::start();
    let given = given("");
    fill(&given, KEYS, 3);
    let arguments = ["migrate", "--from", FILE, "--to", &server.url(), "--accept-loss", "--json"];
    let mut kills = 0;
    let begun =
        || json_lines(&given.run(&[&arguments[..], &["--dry-run"]].concat()).text())[0]["begun"].clone();
    // On a busy machine it takes longer until one has begun.
    for attempt in 0..200 {
        kills += u32::from(killed_after(&given, &arguments, Duration::from_millis(60 * attempt)));
        if attempt >= 7 && begun() != "no" {
            break;
        }
    }
    assert!(kills > 0, "it was too quick to be killed");
    let lines = json_lines(&given.ok(&arguments));
    assert_ne!(lines[0]["begun"], "no", "no process has begun before it was killed");
    check_migrated(lines.last().unwrap(), KEYS as u64);
    if lines[0]["begun"] == "yes" {
        assert_eq!(lines.last().unwrap()["written"], (KEYS * 3) as u64, "every record once");
    }
    check_migrated(&last_line(migrate(&given, &server.url(), "file:back", &[])), KEYS as u64);
    check_same(&given, FILE, "file:back");
}

fn connect(server: &Server) -> Store {
    pollster::block_on(Store::connect(server.url())).unwrap()
}

/// Writes until told to stop; returns how often it did.
fn write_until(store: &Store, stop: &AtomicBool) -> u64 {
    let bucket = pollster::block_on(store.bucket("b")).unwrap();
    let mut n = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let key = format!("w.{}", n * 7 % 90);
        pollster::block_on(async {
            match n % 13 {
                0 => drop(bucket.delete(key.as_str()).await.unwrap()),
                1 => {
                    let batch = bucket.batch().put("pair.one", n.to_string()).put("pair.two", n.to_string());
                    batch.commit().await.unwrap();
                }
                _ => drop(bucket.put(key.as_str(), n.to_string()).await.unwrap()),
            }
        });
        n += 1;
    }
    n
}

/// Starts a migration that follows its source, interrupts it once it has told that it follows every bucket, and returns what
/// it printed.
fn follow_for_a_while(given: &Given, arguments: &[&str]) -> Vec<Value> {
    let mut following = given.start(&[arguments, &["--follow"]].concat());
    let mut output = BufReader::new(following.stdout.take().unwrap());
    let (mut lines, mut is_interrupted) = (Vec::new(), false);
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).unwrap() == 0 {
            break;
        }
        let line: Value = serde_json::from_str(&line).unwrap();
        let follows = |bucket: &Value| bucket["phase"] == "follow";
        let is_told = line["event"] == "progress" && line["buckets"].as_array().unwrap().iter().all(follows);
        lines.push(line);
        if is_told && !is_interrupted {
            is_interrupted = true;
            interrupt(&following);
        }
    }
    let run = Run::from(following.wait_with_output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    lines
}

/// Asks a process to stop, as Ctrl-C does.
fn interrupt(child: &Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn writers_go_on_until_the_cut_over_and_nothing_is_lost() {
    let server = Server::start();
    let store = connect(&server);
    let given = given_nothing();
    let config = BucketConfig { history: 3.try_into().unwrap(), ..BucketConfig::plain(store.capabilities()) };
    let bucket = pollster::block_on(store.create_bucket_with("b", config)).unwrap();
    for n in 0..500 {
        pollster::block_on(bucket.put(format!("w.{}", n % 100).as_str(), "old")).unwrap();
    }
    let stop = AtomicBool::new(false);
    let arguments = ["migrate", "--from", &server.url(), "--to", "file:copy", "--json"];
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&store, &stop));
        for _ in 0..2 {
            let lines = follow_for_a_while(&given, &arguments);
            assert_eq!(lines.last().unwrap()["event"], "stopped");
            assert!(lines.iter().any(|line| line["event"] == "progress" && line["lag"].is_u64()));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0, "nothing was written meanwhile");
    });
    let live = pollster::block_on(bucket.status()).unwrap().entries;
    check_migrated(&last_line(given.run(&arguments)), live);
}

#[test]
fn values_keep_their_time_on_servers() {
    let server = Server::start();
    let given = given("put k 1; put k 2 --ttl 1h");
    let refused = migrate(&given, FILE, &server.url(), &[]);
    assert_eq!(refused.code, 6, "{}", refused.stderr);
    assert!(refused.stderr.contains("b/k has an expiry of its own"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--history 1"), "{}", refused.stderr);
    check_migrated(&last_line(migrate(&given, FILE, &server.url(), &["--history", "1"])), 1);
    check_migrated(&last_line(migrate(&given, &server.url(), "file:back", &[])), 1);
    let expires = |store: &str| -> humantime::Timestamp {
        let entry = given.json(&["--store", store, "kv", "get", "b", "k"]);
        entry[0]["expires"].as_str().unwrap().parse().unwrap()
    };
    let (one, other) = (*expires(FILE), *expires("file:back"));
    let apart = one.duration_since(other).or_else(|_| other.duration_since(one)).unwrap();
    assert!(apart <= Duration::from_secs(3), "{apart:?}");
}

#[test]
fn a_bucket_with_history_and_a_ttl_moves_to_servers_with_what_that_means_said() {
    let server = Server::start();
    let given = given_nothing();
    given.ok(&["kv", "bucket", "add", "b", "--history", "3", "--ttl", "1h"]);
    for value in ["1", "2"] {
        given.ok(&["kv", "put", "b", "k", value]);
    }
    let lines = json_lines(&migrate(&given, FILE, &server.url(), &[]).ok());
    let losses = lines[0]["losses"].as_array().unwrap();
    assert!(losses.iter().any(|loss| loss["what"] == "remaining_ttl"), "{losses:?}");
    check_migrated(lines.last().unwrap(), 1);
    assert_eq!(given.json(&["--store", &server.url(), "kv", "history", "b", "k"]).len(), 2);
}

#[test]
fn values_of_the_largest_size_move_and_larger_ones_are_named() {
    let server = Server::start_with(Settings { more: "max_payload: 262144", ..Settings::default() });
    let given = given_nothing();
    let limit = connect(&server).capabilities().value_bytes_max as usize;
    pollster::block_on(async {
        let store = Store::open(given.path().join(".pleach")).await.unwrap();
        let bucket = store.create_bucket("b").await.unwrap();
        let mut headers = Headers::new();
        headers.set("H", &"h".repeat(pleach::HEADERS_BYTES_MAX - 1)).unwrap();
        let options = PutOptions { headers, ..PutOptions::default() };
        bucket.put_with("x".repeat(1000).as_str(), vec![7; limit], options).await.unwrap();
        store.close().await.unwrap();
    });
    check_migrated(&last_line(migrate(&given, FILE, &server.url(), &[])), 1);
    given.file("large", vec![b'x'; limit + 1]);
    given.ok(&["kv", "bucket", "add", "c"]);
    given.ok(&["kv", "put", "c", "fine", "1"]);
    let large = std::fs::read_to_string(given.path().join("large")).unwrap();
    assert_eq!(given.run_with(large.as_bytes(), &["kv", "put", "c", "too.large", "-"]).code, 0);
    let run = migrate(&given, FILE, &server.url(), &["c"]);
    assert_eq!(run.code, 6, "{}", run.stderr);
    assert!(run.stderr.contains("c/too.large has"), "{}", run.stderr);
}

#[test]
fn servers_that_cannot_take_it_are_told_by_what_is_wrong() {
    let users = "authorization { users: [ { user: ann, password: secret, permissions: \
                 { publish: { deny: [\"$JS.API.STREAM.CREATE.>\"] } } } ] }";
    let server = Server::start_with(Settings { more: users, ..Settings::default() });
    let given = given("put a 1");
    let url = server.url().replace("nats://", "nats://ann:secret@");
    let run = migrate(&given, FILE, &url, &[]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("not permitted"), "{}", run.stderr);
    assert!(!run.stderr.contains("secret"), "{}", run.stderr);

    let small =
        Server::start_with(Settings { jetstream: Some("max_file_store: 100000"), ..Settings::default() });
    fill(&given, 2000, 1);
    let url = format!("{}?patience=20", small.url());
    let run = migrate(&given, FILE, &url, &[]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("insufficient resources"), "{}", run.stderr);

    let gone = migrate(&given, FILE, "nats://127.0.0.1:1?patience=1", &[]);
    assert_eq!(gone.code, 7, "{}", gone.stderr);
    given.run(&["migrate", "--from", "file:nowhere", "--to", "file:new"]).fails(3, "there is no store");
    given.run(&["migrate", "--from", "mem:", "--to", "file:new"]).fails(6, "in memory");
    assert!(!given.has("new"));
}

#[test]
fn changes_that_the_source_has_dropped_are_missed_and_said() {
    let given = given_nothing();
    given.ok(&["kv", "bucket", "add", "b", "--feed-time", "1s", "--feed-bytes", "1"]);
    given.ok(&["kv", "put", "b", "k", "1"]);
    let arguments = ["--json", "migrate", "--from", FILE, "--to", "file:copy"];
    let stopped = follow_for_a_while(&given, &arguments).pop().unwrap();
    assert_eq!((&stopped["event"], &stopped["following"]), (&"stopped".into(), &1.into()));
    let line = |n: usize| {
        let value = "x".repeat(300);
        format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"k.{}\",\"value\":\"{value}\"}}\n", n % 300)
    };
    given.file("dump", (0..30_000).map(line).collect::<String>());
    given.ok(&["kv", "import", "dump"]);
    // The feed keeps a second.
    thread::sleep(Duration::from_millis(1200));
    given.ok(&["clean"]);
    let run = given.run(&arguments);
    assert_eq!(run.code, 5, "{}", run.stderr);
    assert!(run.stderr.contains("no longer kept") && run.stderr.contains("--feed-time"), "{}", run.stderr);
}

#[test]
fn a_bucket_that_is_there_already_is_left_alone() {
    let given = given("put a 1");
    given.ok(&["--store", "file:other", "kv", "bucket", "add", "b"]);
    given.ok(&["--store", "file:other", "kv", "put", "b", "a", "mine"]);
    let run = migrate(&given, FILE, "file:other", &[]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert!(run.stderr.contains("BUCKET=NAME"), "{}", run.stderr);
    assert_eq!(given.ok(&["--store", "file:other", "kv", "get", "b", "a"]), "mine\n");
}
