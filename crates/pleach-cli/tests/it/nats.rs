//! Stores on NATS servers, as people and scripts use them. `same.rs` shows that they are used like any other.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pleach_nats_testing::{Server, Settings};
use serde_json::Value;

use crate::given::{Given, given_store, json_lines};

/// A store of its own on the server that all tests share which leave it running.
pub(crate) fn store() -> String {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static STORES: AtomicU32 = AtomicU32::new(0);
    let server = SERVER.get_or_init(Server::start);
    format!("{}/s{}_", server.url(), STORES.fetch_add(1, Ordering::Relaxed))
}

fn given_bucket(url: impl Into<String>) -> Given {
    let given = given_store(url);
    given.ok(&["kv", "bucket", "add", "b", "--history", "5"]);
    given
}

fn server_with(more: &str) -> Server {
    Server::start_with(Settings { more, ..Settings::default() })
}

/// A watch that has begun.
struct Watching {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Watching {
    fn start(given: &Given, arguments: &[&str]) -> Self {
        let watch = [&["--json", "kv", "watch", "b"], arguments].concat();
        let mut child = given.start(&watch);
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the watch has ended");
        serde_json::from_str(&line).unwrap()
    }

    fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success()
        );
    }
}

#[test]
fn what_one_command_writes_another_watches() {
    let given = given_bucket(store());
    let mut watch = Watching::start(&given, &["--from", "latest", "--count", "2"]);
    assert_eq!(watch.next()["event"], "initial_done");
    given.ok(&["kv", "put", "b", "k", "1"]);
    given.ok(&["kv", "del", "b", "k"]);
    assert_eq!((watch.next()["op"].clone(), watch.next()["op"].clone()), ("put".into(), "delete".into()));
    assert!(watch.child.wait().unwrap().success());
}

#[test]
fn values_expire_by_themselves() {
    let given = given_store(store());
    given.ok(&["kv", "bucket", "add", "b"]);
    let mut watch = Watching::start(&given, &["--from", "latest", "--count", "2"]);
    assert_eq!(watch.next()["event"], "initial_done");
    given.ok(&["kv", "put", "b", "k", "1", "--ttl", "1s"]);
    assert_eq!((watch.next()["op"].clone(), watch.next()["op"].clone()), ("put".into(), "expire".into()));
    given.run(&["kv", "get", "b", "k"]).fails(3, "has no value");
}

#[test]
fn ctrl_c_and_a_polite_kill_end_a_watch_cleanly() {
    for signal in ["-INT", "-TERM"] {
        let given = given_bucket(store());
        let mut watch = Watching::start(&given, &["--from", "latest"]);
        assert_eq!(watch.next()["event"], "initial_done");
        watch.signal(signal);
        let ended = watch.child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
    }
}

#[test]
fn a_watch_goes_on_after_its_server_was_killed() {
    let mut server = Server::start();
    let given = given_bucket(server.url());
    let mut watch = Watching::start(&given, &["--from", "latest", "--count", "3"]);
    assert_eq!(watch.next()["event"], "initial_done");
    given.ok(&["kv", "put", "b", "k", "one"]);
    assert_eq!(watch.next()["value"], "one");
    server.kill();
    server.restart();
    given.ok(&["kv", "put", "b", "k", "two"]);
    given.ok(&["kv", "put", "b", "k", "three"]);
    assert_eq!(
        (watch.next()["value"].clone(), watch.next()["value"].clone()),
        ("two".into(), "three".into())
    );
    assert!(watch.child.wait().unwrap().success());
}

#[test]
fn a_watch_that_was_killed_is_resumed_without_a_gap() {
    let given = given_bucket(store());
    for value in ["one", "two", "three", "four"] {
        given.ok(&["kv", "put", "b", "k", value]);
    }
    let mut watch = Watching::start(&given, &["--consumer", "mails"]);
    assert_eq!(watch.next()["value"], "one");
    watch.child.kill().unwrap();
    watch.child.wait().unwrap();
    given.ok(&["kv", "put", "b", "k", "five"]);
    let rest = given.json(&["kv", "watch", "b", "--consumer", "mails", "--idle", "1s"]);
    let values: Vec<_> = rest.iter().map(|change| change["value"].as_str().unwrap()).collect();
    // What was printed or acknowledged when the kill came cannot be known, but nothing after it is missing.
    assert!(["one", "two", "three", "four", "five"].ends_with(&values) && !values.is_empty(), "{values:?}");
    let from = given.json(&["kv", "get", "b", "k", "--reads", "leader"])[0]["revision"].to_string();
    let resumed = given.json(&["kv", "watch", "b", "--from", &from, "--count", "1"]);
    assert_eq!(resumed[0]["value"], "five");
}

#[test]
fn servers_that_are_away_or_have_no_jetstream_are_told_apart() {
    let given = given_store("nats://127.0.0.1:1");
    let run = given.run(&["kv", "bucket", "ls"]);
    run.fails(7, "the server cannot be reached: nats://127.0.0.1:1");
    assert!(run.stderr.contains("help: see that the servers run"), "{}", run.stderr);
    let server = Server::start_with(Settings { jetstream: None, ..Settings::default() });
    let given = given_store(server.url());
    let run = given.run(&["kv", "bucket", "ls"]);
    run.fails(6, "this engine has no JetStream");
    assert!(run.stderr.contains("help: turn JetStream on"), "{}", run.stderr);
    let trusting = given_store(format!("{}?root=missing.pem", server.url()));
    trusting.run(&["kv", "bucket", "ls"]).fails(3, "no file of root certificates at missing.pem");
    let run = given.run(&["--json", "kv", "bucket", "ls"]);
    assert_eq!(json_lines(&run.stderr)[0]["kind"], "unsupported");
}

/// Nothing that a command prints in any form shows a secret.
fn check_hidden(secret: &str, given: &Given, arguments: &[&str], environment: &[(&str, &str)]) -> i32 {
    let mut code = 0;
    for form in [&[][..], &["--json"]] {
        let arguments = [form, arguments].concat();
        let run = given.command(&arguments).envs(environment.iter().copied()).output().unwrap();
        let printed = [run.stdout, run.stderr].concat();
        let printed = String::from_utf8(printed).unwrap();
        assert!(!printed.contains(secret), "{printed}");
        assert!(!printed.is_empty(), "nothing is said of {arguments:?}");
        code = run.status.code().unwrap();
    }
    code
}

#[test]
fn who_you_are_is_said_in_many_ways_and_never_shown() {
    let server = server_with("authorization { user: ann, password: hunter2 }");
    let address = server.url().replace("nats://", "");
    let right = given_store(format!("nats://ann:hunter2@{address}"));
    let wrong = given_store(format!("nats://ann:hunter3@{address}"));
    let nobody = given_store(server.url());
    let (add, ls) = (["kv", "bucket", "add", "b"], ["kv", "bucket", "ls"]);
    right.ok(&add);
    assert_eq!(check_hidden("hunter2", &right, &ls, &[]), 0);
    assert_eq!(check_hidden("hunter3", &wrong, &ls, &[]), 11);
    let by_variables = [("PLEACH_NATS_USER", "ann"), ("PLEACH_NATS_PASSWORD", "hunter2")];
    assert_eq!(check_hidden("hunter2", &nobody, &ls, &by_variables), 0);
    assert_eq!(check_hidden("hunter2", &nobody, &ls, &by_variables[1..]), 2);
    assert_eq!(check_hidden("hunter2", &wrong, &ls, &by_variables), 11);
    assert_eq!(check_hidden("hunter3", &nobody, &ls, &[("PLEACH_NATS_TOKEN", "hunter3")]), 11);
    assert_eq!(check_hidden("hunter3", &nobody, &ls, &[("PLEACH_NATS_NKEY", "hunter3")]), 11);
    assert_eq!(check_hidden("hunter2", &right, &["verify"], &[]), 6);
    let away = given_store("nats://ann:hunter2@127.0.0.1:1");
    assert_eq!(check_hidden("hunter2", &away, &ls, &[]), 7);
    let creds = nobody.file("ann.creds", "hunter3");
    let creds = ["--creds", creds.to_str().unwrap(), "kv", "bucket", "ls"];
    assert_eq!(check_hidden("hunter3", &nobody, &creds, &[]), 2);
    // What an import leaves for its next run names the store.
    right.file("lines", "{\"v\":1,\"bucket\":\"b\",\"key\":\"k\",\"value\":\"1\"}\n{\"v\":1,\"bucket\":\"c\",\"key\":\"k\",\"value\":\"1\"}\n");
    right.run(&["kv", "import", "lines", "--state", "state"]).fails(3, "--create-buckets");
    let state = std::fs::read_to_string(right.path().join("state")).unwrap();
    assert!(state.contains(&address) && !state.contains("hunter2"), "{state}");
}

#[test]
fn what_is_not_permitted_is_told_with_what_the_server_said() {
    let server = server_with(
        "authorization { users: [{ user: all, password: a }, \
         { user: reader, password: r, permissions: { publish: { deny: \"$KV.b.>\" } } }] }",
    );
    let address = server.url().replace("nats://", "");
    given_bucket(format!("nats://all:a@{address}")).ok(&["kv", "put", "b", "k", "1"]);
    let reader = given_store(format!("nats://reader:r@{address}?timeout=1"));
    reader.run(&["kv", "put", "b", "k", "2"]).fails(11, "not permitted");
    assert_eq!(reader.ok(&["kv", "get", "b", "k"]), "1\n");
}

#[test]
fn what_a_bucket_on_nats_cannot_have_is_refused_before_it_is_written() {
    let given = given_bucket(store());
    given.run(&["kv", "bucket", "add", "c", "--durability", "synced"]).fails(6, "synced");
    given.run(&["kv", "put", "b", "k", "1", "--ttl", "5s"]).fails(6, "docs/engines.md");
    assert_eq!(given.ok(&["kv", "bucket", "ls"]).lines().count(), 2, "a heading and one bucket");
    // A bucket of a file that was synced is not made into another one in silence.
    let line = "{\"v\":1,\"bucket\":\"c\",\"config\":{\"value_bytes_max\":9,\"durability\":\"synced\"}}\n";
    let run = given.run_with(line.as_bytes(), &["kv", "import", "--create-buckets"]);
    run.fails(6, "`pleach kv bucket add c`");
}

#[test]
fn stores_of_one_account_are_kept_apart_by_their_namespace() {
    let (one, other) = (given_bucket(store()), given_store(store()));
    one.ok(&["kv", "put", "b", "k", "1"]);
    other.run(&["kv", "get", "b", "k"]).fails(3, "there is no bucket b");
}
