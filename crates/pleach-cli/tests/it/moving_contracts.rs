//! Contracts that move with their buckets: by `migrate`, and by `export` and `import`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use pleach_nats_testing::Server;
use serde_json::Value;

use crate::given::{Given, Run, given_nothing, given_store, json_lines};

const FILE: &str = "file:./.pleach";
const ID: &str = "acme.shop@v1";

fn shop(length: u64, has_carts: bool) -> String {
    let carts = if has_carts { "carts: {purpose: Carts, schema: {schema: Order}}" } else { "" };
    format!(
        "\
format: pleach.contract.v1
id: {ID}
kind: app
displayName: Shop
description: Orders and settings
schemas:
  Order: {{type: object, properties: {{text: {{type: string, maxLength: {length}}}}}, required: [text]}}
  Any: true
state:
  settings: {{kind: value, schema: {{schema: Any}}}}
resources:
  kv:
    orders: {{purpose: Orders, schema: {{schema: Order}}, history: 3}}
    {carts}
"
    )
}

/// A store with a contract in its second version, a bucket that is set aside, old records, state of a user and a device, a
/// value that breaks the contract, and a bucket that no contract owns.
fn given_shop() -> Given {
    let given = given_nothing();
    given.file("first.yaml", shop(100, true));
    given.file("shop.yaml", shop(10, false));
    apply(&given, "first.yaml");
    given.ok(&["kv", "put", "svc_shop_orders", "a", r#"{"text":"a text that is longer"}"#]);
    given.ok(&["kv", "put", "svc_shop_orders", "a", r#"{"text":"short"}"#]);
    given.ok(&["kv", "put", "svc_shop_carts", "c", r#"{"text":"x"}"#]);
    apply(&given, "shop.yaml");
    for principal in ["user:ann", "device:d1"] {
        let put = ["state", "put", "--as", principal, "--contract", "shop.yaml", "settings", "--value", "7"];
        given.ok(&put);
    }
    given.ok(&["--break-glass", "a repair", "kv", "put", "svc_shop_orders", "broken", "no JSON"]);
    given.ok(&["kv", "bucket", "add", "plain"]);
    given.ok(&["kv", "put", "plain", "k", "v"]);
    given
}

fn apply(given: &Given, contract: &str) {
    given.run(&["contract", "plan", contract, "--out", "plan.json"]);
    given.ok(&["contract", "apply", "plan.json", "--acknowledge", "a test"]);
}

fn migrate(given: &Given, from: &str, to: &str, more: &[&str]) -> Run {
    given.run(&[&["--json", "migrate", "--from", from, "--to", to, "--accept-loss"], more].concat())
}

/// What a store says of the contract and its history. Plans belong to the store they were made for.
fn told(given: &Given, store: &str) -> Vec<Value> {
    let mut lines = given.json(&["--store", store, "contract", "status", ID]);
    lines.iter_mut().for_each(|line| line["plans"] = Value::Null);
    lines.extend(given.json(&["--store", store, "contract", "history", ID]));
    lines
}

/// Checks that a store has the contract, its history and its state as the first has them, and that it is in force.
fn check_moved(given: &Given, store: &str) {
    assert_eq!(told(given, FILE), told(given, store));
    let on = |arguments: &[&str]| given.run(&[&["--store", store], arguments].concat());
    assert_eq!(on(&["contract", "plan", "shop.yaml"]).code, 0, "there is nothing to do");
    let put = |value: &str| on(&["kv", "put", "svc_shop_orders", "new", value]).code;
    assert_eq!((put(r#"{"text":"ok"}"#), put(r#"{"text":"longer than allowed"}"#)), (0, 2));
    assert_ne!(on(&["kv", "put", "svc_shop_carts", "c", r#"{"text":"x"}"#]).code, 0, "it is set aside");
    assert_eq!(on(&["kv", "get", "svc_shop_orders", "broken"]).ok(), "no JSON\n");
    for principal in ["user:ann", "device:d1"] {
        let get = ["--json", "state", "get", "--as", principal, "--contract", "shop.yaml", "settings"];
        assert_eq!(json_lines(&on(&get).ok())[0]["entry"]["value"], 7);
    }
}

#[test]
fn a_store_with_contracts_moves_to_servers_and_back() {
    let server = Server::start();
    let given = given_shop();
    let lines = json_lines(&migrate(&given, FILE, &server.url(), &[]).ok());
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["decisions"]), (&"migrated_contracts".into(), &2.into()), "{last}");
    assert_eq!(last["source_sha256"], last["target_sha256"]);
    migrate(&given, &server.url(), "file:back", &[]).ok();
    check_moved(&given, "file:back");
    check_moved(&given, &server.url());
    migrate(&given, FILE, "file:other", &[]).ok();
    // Once more, it is only compared.
    let again = json_lines(&migrate(&given, FILE, "file:other", &[]).ok());
    assert!(again.iter().any(|line| line["event"] == "contracts" && line["begun"] == "done"));
    check_moved(&given, "file:other");
}

#[test]
fn a_migration_that_is_killed_leaves_no_contract_behind() {
    let server = Server::start();
    let given = given_shop();
    let line = |n: usize| format!("{{\"v\":1,\"bucket\":\"plain\",\"key\":\"k.{n}\",\"value\":\"{n}\"}}\n");
    given.file("dump", (0..3000).map(line).collect::<String>());
    given.ok(&["kv", "import", "dump"]);
    let arguments = ["migrate", "--from", FILE, "--to", &server.url(), "--accept-loss", "--json"];
    for time in [20, 60, 100, 160, 240, 320] {
        let mut child = given.start(&arguments);
        thread::sleep(Duration::from_millis(time));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    given.ok(&arguments);
    check_moved(&given, &server.url());
}

#[test]
fn an_import_of_an_export_restores_contracts_and_state() {
    for history in [&[][..], &["--history"]] {
        let given = given_shop();
        given.ok(&[&["kv", "export", "-o", "dump"], history].concat());
        given.run(&["--store", "file:new", "kv", "import", "dump"]).fails(3, "no store");
        let line = given.ok(&["--store", "file:copy", "kv", "import", "dump", "--create-buckets"]);
        assert!(line.contains("1 contract is in force"), "{line}");
        check_moved(&given, "file:copy");
        // The bucket that was set aside comes back.
        given.ok(&["--store", "file:copy", "contract", "restore", ID, "carts"]);
    }
}

#[test]
fn an_import_refuses_clashes_and_changed_files_before_it_writes_anything() {
    let given = given_shop();
    given.ok(&["kv", "export", "-o", "dump"]);
    let dump = fs::read_to_string(given.path().join("dump")).unwrap();
    let import =
        |store: &str, file: &str| given.run(&["--store", store, "kv", "import", file, "--create-buckets"]);
    // A bucket that is there and no contract owns.
    given.ok(&["--store", "file:taken", "kv", "bucket", "add", "svc_shop_orders"]);
    import("file:taken", "dump").fails(4, "bucket svc_shop_orders is there already");
    // Another version of the contract.
    given.run(&["--store", "file:older", "contract", "plan", "first.yaml", "--out", "plan.json"]);
    given.ok(&["--store", "file:older", "contract", "apply", "plan.json"]);
    import("file:older", "dump").fails(4, "has acme.shop@v1 already");
    let cut: Vec<&str> = dump.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| line).collect();
    given.file("cut", cut.join("\n"));
    import("file:store1", "cut").fails(2, "are not complete");
    given.file("edited", dump.replacen("\"who\":\"", "\"who\":\"x", 1));
    import("file:store2", "edited").fails(2, "are not complete");
    for store in ["file:taken", "file:store1", "file:store2"] {
        let lines = given.json(&["--store", store, "contract", "status"]);
        assert!(lines.iter().all(|line| line["authority"].is_null()), "{lines:?}");
        assert_eq!(given.run(&["--store", store, "kv", "bucket", "info", "plain"]).code, 3);
    }
    // The contracts that are in force already are no clash, and what is imported keeps them.
    let run = import(FILE, "dump");
    assert!(run.code != 0 && run.stderr.contains("bucket svc_shop_carts belongs to"), "{}", run.stderr);
}

#[test]
fn a_part_of_a_contract_moves_only_without_it() {
    let given = given_shop();
    let export = ["kv", "export", "svc_shop_orders"];
    given.run(&export).fails(2, "svc_shop_carts");
    let lines = given.json(&[&export[..], &["--without-contracts"]].concat());
    assert!(lines.iter().all(|line| line["system"].is_null()));
    let run = migrate(&given, FILE, "file:part", &["svc_shop_orders"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("svc_shop_carts") && run.stderr.contains("--without-contracts"));
    assert!(
        !given
            .json(&["--store", "file:part", "kv", "bucket", "ls"])
            .iter()
            .any(|line| line["bucket"].is_string())
    );
    let lines =
        json_lines(&migrate(&given, FILE, "file:part", &["svc_shop_orders", "--without-contracts"]).ok());
    let left = lines.iter().find(|line| line["event"] == "contracts_left").unwrap();
    assert_eq!(left["buckets"]["svc_shop_orders"], ID);
    // No contract owns it there.
    given.ok(&["--store", "file:part", "kv", "put", "svc_shop_orders", "x", "anything"]);
    given.ok(&["kv", "export", "--without-contracts", "-o", "dump"]);
    given.ok(&["--store", "file:plain", "kv", "import", "dump", "--create-buckets"]);
    given.ok(&["--store", "file:plain", "kv", "put", "svc_shop_orders", "x", "anything"]);
    // Entries alone go through the guards of a store whose contracts own the buckets.
    let run = given.run(&["kv", "import", "dump"]);
    assert!(run.code != 0 && run.stderr.contains("bucket svc_shop_carts belongs to"), "{}", run.stderr);
}

#[test]
fn a_contract_that_is_applied_while_a_migration_follows_is_not_missed() {
    let server = Server::start();
    let given = given_store(server.url());
    given.file("shop.yaml", shop(10, false));
    given.file("more.yaml", shop(200, true));
    apply(&given, "shop.yaml");
    given.ok(&["kv", "put", "svc_shop_orders", "a", r#"{"text":"short"}"#]);
    let arguments = ["--json", "migrate", "--from", &server.url(), "--to", "file:new"];
    let mut follow = given.start(&[&arguments[..], &["--follow"]].concat());
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let follows = |line: &str| line.contains("\"phase\":\"follow\"");
    assert!(lines.any(|line| follows(&line.unwrap())), "it follows after a while");
    // A new bucket and a longer text.
    apply(&given, "more.yaml");
    given.ok(&["kv", "put", "svc_shop_carts", "c", r#"{"text":"a text that is longer"}"#]);
    interrupt(&follow);
    // Until it ends.
    lines.for_each(drop);
    assert!(follow.wait().unwrap().success());
    given.ok(&arguments);
    assert_eq!(told(&given, &server.url()), told(&given, "file:new"));
    assert_eq!(given.run(&["--store", "file:new", "contract", "plan", "more.yaml"]).code, 0);
    let value = given.ok(&["--store", "file:new", "kv", "get", "svc_shop_carts", "c"]);
    assert_eq!(value, "{\"text\":\"a text that is longer\"}\n");
}

/// Ctrl-C.
fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn an_import_that_is_killed_goes_on_with_its_contracts() {
    let given = given_shop();
    let line = |n: usize| format!("{{\"v\":1,\"bucket\":\"plain\",\"key\":\"k.{n}\",\"value\":\"{n}\"}}\n");
    given.file("more", (0..20_000).map(line).collect::<String>());
    given.ok(&["kv", "import", "more"]);
    given.ok(&["kv", "export", "-o", "dump"]);
    let first = ["--store", "file:copy", "kv", "import", "dump", "--create-buckets"];
    let mut child = given.start(&first);
    // As soon as there is a state file, there is something to go on with.
    while !given.has("dump.import-state") && child.try_wait().unwrap().is_none() {
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if given.has("dump.import-state") {
        given.ok(&[&first[..], &["--resume"]].concat());
    }
    check_moved(&given, "file:copy");
}
