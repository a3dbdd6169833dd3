//! Help and typical errors, word for word. `PLEACH_GOLDEN=write cargo test -p pleach-cli` writes them anew.

use std::fs;
use std::path::Path;

use crate::contracts::given_contracts;
use crate::given::{Given, given, given_nothing};
use crate::health::given_figures;

#[test]
fn help_is_what_it_was() {
    let given = given("");
    for command in [
        "",
        "kv",
        "kv bucket",
        "kv bucket add",
        "kv bucket ls",
        "kv bucket info",
        "kv bucket edit",
        "kv bucket rm",
        "kv get",
        "kv put",
        "kv create",
        "kv update",
        "kv del",
        "kv purge",
        "kv history",
        "kv revert",
        "kv ls",
        "kv watch",
        "kv compact",
        "kv export",
        "kv import",
        "consumer",
        "consumer ls",
        "consumer info",
        "consumer reset",
        "consumer rm",
        "contract",
        "contract new",
        "contract check",
        "contract digest",
        "contract fmt",
        "contract schema",
        "contract explain-key",
        "state",
        "state get",
        "state put",
        "state delete",
        "state list",
        "state watch",
        "state admin",
        "state admin get",
        "state admin list",
        "state admin delete",
        "state admin find",
        "state admin export",
        "state admin erase",
        "state admin log",
        "status",
        "doctor",
        "verify",
        "clean",
        "rebuild",
        "salvage",
        "migrate",
        "completions",
        "help",
    ] {
        let words: Vec<&str> = command.split_whitespace().collect();
        let by_option = given.ok(&[&words[..], &["--help"]].concat());
        let by_command = given.ok(&[&["help"], &words[..]].concat());
        assert_eq!(by_option, by_command, "{command}");
        assert!(by_option.contains("Examples:"), "the help of `{command}` has no examples");
        check(&format!("help {command}"), &by_option);
    }
    check("help exit-codes", &given.ok(&["help", "exit-codes"]));
    check("help stores", &given.ok(&["help", "stores"]));
}

#[test]
fn errors_are_what_they_were() {
    let given = given("put k 1; put k 2");
    let mut transcript = String::new();
    for command in [
        "kv get b missing",
        "kv get carts k",
        "kv get b a..b",
        "kv create b k 3",
        "kv update b k 3 --revision 2",
        "kv put b k v --ttl 200years",
        "kv bucket add b --ttl 1h",
        "kv bucket rm b",
        "kv bucket edit b",
        "kv get b k --revision 99",
        "kv get",
        "kv gte b k",
        "kv revert b k 1",
        "kv watch b --consumer c --from latest",
        "consumer info b mails",
        "consumer reset b mails --to now",
        "consumer rm b mails",
        "consumer ls carts",
        "kv bucket add c --marker-ttl 0s",
        "kv import missing.ndjson",
        "--store redis://localhost kv get b k",
        "--store ./data kv get b k",
        "--store file:nowhere kv get b k",
        "--store nats://ann:hunter2 kv get b k",
        "--store nats://localhost?colour=red kv get b k",
        "--store nats://localhost status",
        "--store nats://localhost doctor",
        "--store nats://localhost verify",
        "--store nats://localhost rebuild",
        "--store nats://localhost salvage --to ./new",
        "--store nats://localhost clean",
        "--store nats://localhost --creds missing.creds kv get b k",
        "--creds missing.creds kv get b k",
        "--json kv get b missing",
        "--json kv get b a..b",
    ] {
        let run = given.run(&command.split(' ').collect::<Vec<_>>());
        transcript +=
            &format!("$ pleach {command}\n{}{}[exit code {}]\n\n", run.text(), run.stderr, run.code);
    }
    check("errors", &transcript);
}

#[test]
fn keys_are_explained_as_they_were() {
    let given = given_nothing();
    let events = "t.{tenant}.case.{case:ulid}.event.{at:time(3)}.{n:int(3)}";
    let event = "t.acme.case.01ARZ3NDEKTSV4RRFFQ69G5FAV.event.20260705T101530_123Z.-958";
    let mut transcript = String::new();
    for (options, grammar, key) in [
        (&[][..], events, event),
        (&[], "doc.{owner}.{path...}", "doc.ann"),
        (&[], "doc.{owner}.{path...}", "doc.ann.letters.2026-07"),
        (&[], events, "t.acme-corp.case"),
        (&[], events, "t.acme.task.7"),
        (&[], events, "t.acme.case.7"),
        (&[], events, "t.acme.case"),
        (&[], "x.{n:uint(3)}", "x.007.y"),
        (&[], "t*.{tenant}..{tenant:ulid}.{x:string}.a{b}.{n:int(99)}", "t.acme"),
        (&["--json"], events, event),
        (&["--json"], events, "t.acme.case.7"),
        (&["--json"], "x.{a:frob}.{}", "x.y"),
        (&[], "x.{a:frob}", "x.y"),
    ] {
        let run = given.run(&[options, &["contract", "explain-key", "--grammar", grammar, key]].concat());
        let options = options.concat();
        transcript += &format!("$ pleach {options} contract explain-key --grammar '{grammar}' {key}\n")
            .replace("pleach  ", "pleach ");
        transcript += &format!("{}{}[exit code {}]\n\n", run.text(), run.stderr, run.code);
    }
    check("explain-key", &transcript);
    assert!(!given.has(".pleach"), "a key is explained without a store");
}

#[test]
fn keys_are_explained_by_a_contract_as_they_were() {
    let given = given_contracts();
    given.file("cases.yaml", include_str!("../../../pleach-contract/testdata/cases.yaml"));
    let case = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let mut transcript = String::new();
    for command in [
        &*format!("contract explain-key --contract cases.yaml t.acme.case.{case}.current"),
        &*format!("contract explain-key --contract cases.yaml t.acme.party_case.{case}.{case}"),
        "contract explain-key --contract cases.yaml --resource cases t.acme.count.open",
        &*format!("--json contract explain-key --contract cases.yaml t.acme.party.{case}"),
        &*format!("contract explain-key --contract cases.yaml t.acme.case.{case}.event.20260705.{case}"),
        "contract explain-key --contract cases.yaml t.acme.parties.7",
        "--json contract explain-key --contract cases.yaml t.acme.party.7",
        "contract explain-key --contract cases.yaml --resource case t.acme.count.open",
        "contract explain-key --contract cases.yaml --resource sessions t.acme.count.open",
        "contract explain-key --contract broken.yaml a",
        "contract explain-key --contract gone.yaml a",
        "contract explain-key a",
        "contract explain-key --contract cases.yaml --grammar a a",
    ] {
        let run = given.run(&command.split(' ').collect::<Vec<_>>());
        transcript +=
            &*format!("$ pleach {command}\n{}{}[exit code {}]\n\n", run.text(), run.stderr, run.code);
    }
    check("explain-key-contract", &transcript);
}

#[test]
fn figures_are_shown_as_they_were() {
    let given = given("put k 1");
    let _lock = given_figures(&given, 4711);
    let place = given.path().canonicalize().unwrap().display().to_string();
    let status = given.ok(&["status"]).replace(&place, "");
    // How long ago they were written grows.
    let (heading, rest) = status.split_once('\n').unwrap();
    let heading = heading.split(" as of ").next().unwrap();
    check("status", &format!("{heading} as of …\n{rest}"));
    check("doctor", &given.run(&["doctor"]).text().replace(&place, ""));
}

#[test]
fn findings_about_contracts_are_what_they_were() {
    let given = given_contracts();
    let mut transcript = String::new();
    for command in [
        "contract check broken.yaml",
        "contract check sound.yaml",
        "contract check spare.yaml",
        "contract check broken.yaml sound.yaml --format junit",
        "contract check broken.yaml --format github",
        "--json contract check sound.yaml",
        "contract digest sound.yaml",
        "contract digest broken.yaml",
        "contract fmt --check sound.yaml",
        "contract check gone.yaml",
        "contract new acme.notes@v1 --kv notes --state drafts=map -o -",
    ] {
        let run = given.run(&command.split(' ').collect::<Vec<_>>());
        transcript +=
            &format!("$ pleach {command}\n{}{}[exit code {}]\n\n", run.text(), run.stderr, run.code);
    }
    check("contract", &transcript);
}

/// Compares `text` with the golden file of this name, or writes that.
fn check(name: &str, text: &str) {
    let file = format!("{}.txt", name.trim().replace(' ', "-"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(&file);
    if std::env::var_os("PLEACH_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::write(&path, text).unwrap();
        return;
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "tests/golden/{file} says\n{golden}\nbut now it is\n{text}\nIf that is right: PLEACH_GOLDEN=write cargo test -p pleach-cli"
    );
}

/// A golden file that no test compares would go stale unseen.
#[test]
fn every_golden_file_is_of_a_command_that_exists() {
    let given = given("");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for entry in fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(command) = name.strip_prefix("help").and_then(|rest| rest.strip_suffix(".txt")) else {
            let others = ["errors", "explain-key", "explain-key-contract", "status", "doctor", "contract"];
            assert!(others.iter().any(|other| name == format!("{other}.txt")), "{name}");
            continue;
        };
        if !["-exit-codes", "-stores"].contains(&command) {
            has_help(&given, command);
        }
    }
}

fn has_help(given: &Given, command: &str) {
    // The one command with a hyphen of its own.
    let command = command.replace("explain-key", "explain_key");
    let words: Vec<String> =
        command.split('-').filter(|word| !word.is_empty()).map(|word| word.replace('_', "-")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    given.ok(&[&["help"], &words[..]].concat());
}
