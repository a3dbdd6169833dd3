//! The same cause has the same consequence, whatever the command.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use crate::given::{Given, Run, given, given_nothing};
use crate::terminal::Terminal;

/// Stands for bytes that are no UTF-8.
const BAD: &str = "BAD";

/// The arguments, with bytes that are no UTF-8 in place of each `BAD`.
fn arguments(words: &[&str]) -> Vec<OsString> {
    let bad = |word: &&str| match *word {
        BAD => OsStr::from_bytes(b"caf\xe9").to_owned(),
        word => word.into(),
    };
    words.iter().map(bad).collect()
}

fn check_told(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, code, "{words:?}: {}", run.stderr);
    assert!(!run.stderr.is_empty() && !run.stderr.contains("panicked"), "{words:?}: {}", run.stderr);
}

#[test]
fn arguments_that_are_no_utf8_end_with_two() {
    let given = given("put k 1");
    for words in [
        &["kv", "get", "b", BAD][..],
        &["kv", "get", BAD, "k"],
        &["kv", "put", "b", BAD, "1"],
        &["kv", "del", "b", BAD],
        &["kv", "ls", "b", BAD],
        &["kv", "history", "b", BAD],
        &["kv", "watch", "b", BAD],
        &["kv", "bucket", "add", BAD],
        &["kv", "export", BAD],
        &["--json", "kv", "get", "b", BAD],
        &["--store", BAD, "kv", "get", "b", "k"],
        &["consumer", "info", "b", BAD],
        &["status", BAD],
        &["doctor", BAD],
        &["migrate", "--from", BAD, "--to", "file:x"],
        &["contract", "explain-key", "--grammar", "x.{a}", BAD],
        &["contract", "status", BAD],
        &["contract", "new", BAD],
        &["state", "get", "--contract", "c.yaml", "--as", BAD, "drafts", "k"],
        &["completions", BAD],
        &[BAD],
    ] {
        check_told(&given.run(&arguments(words)), 2, words);
    }
    // These say what a contract changes by 2 and 3, and every failure is 1.
    for words in [&["contract", "apply", "p", "--who", BAD][..], &["contract", "plan", "c", "--service", BAD]]
    {
        check_told(&given.run(&arguments(words)), 1, words);
    }
}

#[test]
fn a_variable_that_is_no_utf8_ends_with_two() {
    let given = given("put k 1");
    for words in [&["kv", "get", "b", "k"][..], &["status"], &["--json", "kv", "bucket", "ls"]] {
        let mut command = given.command(words);
        let run: Run =
            command.env("PLEACH_STORE", OsStr::from_bytes(b"file:caf\xe9")).output().unwrap().into();
        check_told(&run, 2, words);
    }
}

#[test]
fn a_path_need_not_be_utf8() {
    let given = given("put k 1");
    let path = given.path().join(OsStr::from_bytes(b"caf\xe9"));
    let ok = |words: &[&str]| {
        let run = given.run(&arguments(words));
        assert_eq!(run.code, 0, "{words:?}: {}", run.stderr);
        assert!(path.exists(), "{words:?}");
    };
    ok(&["--json", "contract", "new", "acme.notes@v1", "--kv", "notes", "-o", BAD]);
    fs::rename(&path, given.path().join("contract.yaml")).unwrap();
    ok(&["--json", "contract", "schema", "-o", BAD]);
    ok(&["--json", "contract", "codegen", "contract.yaml", "-o", BAD]);
    ok(&["--json", "kv", "export", "-o", BAD]);
    ok(&["--json", "kv", "import", BAD]);
    let planned = given.run(&arguments(&["--json", "contract", "plan", "contract.yaml", "-o", BAD]));
    check_changes(&planned);
    ok(&["--json", "contract", "apply", BAD]);
}

fn check_changes(planned: &Run) {
    assert_eq!(planned.code, 2, "{}", planned.stderr);
}

#[test]
fn an_empty_name_of_a_store_is_an_error() {
    let given = given("put k 1");
    for words in [
        &["--store", "", "kv", "get", "b", "k"][..],
        &["--store=", "kv", "bucket", "ls"],
        &["status", ""],
        &["doctor", ""],
        &["migrate", "--from", "", "--to", "file:x"],
        &["migrate", "--from", "file:.pleach", "--to", ""],
    ] {
        check_told(&given.run(words), 2, words);
    }
    let words = ["kv", "get", "b", "k"];
    let run: Run = given.command(&words).env("PLEACH_STORE", "").output().unwrap().into();
    check_told(&run, 2, &words);
    assert!(run.stderr.contains("PLEACH_STORE"), "{}", run.stderr);
}

/// Commands that read, each complete but for the store.
const READERS: [&[&str]; 15] = [
    &["kv", "get", "b", "k"],
    &["kv", "ls", "b"],
    &["kv", "history", "b", "k"],
    &["kv", "watch", "b", "--idle", "1ms"],
    &["kv", "export"],
    &["kv", "bucket", "ls"],
    &["kv", "bucket", "info", "b"],
    &["consumer", "ls", "b"],
    &["status"],
    &["doctor"],
    &["verify"],
    &["contract", "status"],
    &["contract", "history", "acme.notes@v1"],
    &["state", "list", "--contract", "contract.yaml", "--as", "user:ann", "drafts"],
    &["migrate", "--from", "file:.pleach", "--to", "file:copy", "--dry-run"],
];

fn given_contract() -> Given {
    let given = given_nothing();
    given.ok(&["contract", "new", "acme.notes@v1", "--kv", "notes", "--state", "drafts=map"]);
    given
}

#[test]
fn a_missing_store_has_one_code_and_is_not_created() {
    let given = given_contract();
    for reader in READERS {
        check_told(&given.run(reader), 3, reader);
        assert!(!given.has(".pleach") && !given.has("copy"), "{reader:?}");
    }
    // Commands that write, but create no store.
    for writer in [&["kv", "put", "b", "k", "1"][..], &["kv", "del", "b", "k"], &["clean"], &["rebuild"]] {
        check_told(&given.run(writer), 3, writer);
        assert!(!given.has(".pleach"), "{writer:?}");
    }
}

#[test]
fn a_plan_for_a_missing_store_creates_none_and_is_applied_to_a_new_one() {
    let given = given_contract();
    let shown = given.run(&["contract", "plan", "contract.yaml"]);
    assert_eq!(shown.code, 2, "{}", shown.stderr);
    assert!(shown.stderr.contains("no store yet"), "{}", shown.stderr);
    assert_eq!(given.run(&["contract", "plan", "contract.yaml", "--guard"]).code, 1);
    assert_eq!(given.run(&["contract", "plan", "contract.yaml", "--out", "plan.json"]).code, 2);
    assert!(!given.has(".pleach"), "planning changes nothing");

    given.ok(&["contract", "apply", "plan.json"]);
    assert!(given.ok(&["contract", "status"]).contains("acme.notes@v1"));
}

#[test]
fn a_plan_for_a_missing_store_is_not_applied_to_one_that_differs() {
    let given = given_contract();
    assert_eq!(given.run(&["contract", "plan", "contract.yaml", "--out", "plan.json"]).code, 2);
    given.ok(&["kv", "bucket", "add", "svc_notes_notes"]);
    let run = given.run(&["contract", "apply", "plan.json"]);
    check_told(&run, 1, &["contract", "apply"]);
    assert!(given.run(&["contract", "status"]).text().find("acme.notes@v1").is_none());
}

/// Exit codes, what they are for, and commands that meet it in a store with the bucket `b`.
const CAUSES: &[(i32, &str, &[&[&str]])] = &[
    (
        3,
        "a bucket is missing",
        &[
            &["kv", "get", "gone", "k"],
            &["kv", "put", "gone", "k", "1"],
            &["kv", "ls", "gone"],
            &["kv", "watch", "gone"],
            &["kv", "export", "gone"],
            &["kv", "bucket", "info", "gone"],
            &["kv", "bucket", "edit", "gone", "--history", "2"],
            &["kv", "bucket", "rm", "gone", "--yes"],
            &["consumer", "ls", "gone"],
            &["migrate", "--from", "file:.pleach", "--to", "file:x", "gone"],
        ],
    ),
    (
        2,
        "a key cannot be",
        &[
            &["kv", "get", "b", "a..b"],
            &["kv", "put", "b", "a..b", "1"],
            &["kv", "del", "b", "a..b"],
            &["kv", "history", "b", "a..b"],
            &["kv", "revert", "b", "a..b", "1"],
        ],
    ),
    (
        2,
        "a URL cannot be",
        &[
            &["--store", "nowhere", "kv", "bucket", "ls"],
            &["status", "nowhere"],
            &["doctor", "nowhere"],
            &["migrate", "--from", "nowhere", "--to", "file:x"],
            &["--store", "nowhere", "contract", "status"],
        ],
    ),
    (
        2,
        "a contract cannot be read",
        &[
            &["contract", "check", "bad.yaml"],
            &["contract", "codegen", "bad.yaml"],
            &["contract", "digest", "bad.yaml"],
            &["contract", "fmt", "bad.yaml"],
            &["state", "list", "--contract", "bad.yaml", "--as", "user:ann", "drafts"],
        ],
    ),
    (
        3,
        "a file to read is missing",
        &[
            &["contract", "check", "gone.yaml"],
            &["contract", "codegen", "gone.yaml"],
            &["contract", "digest", "gone.yaml"],
            &["contract", "fmt", "gone.yaml"],
            &["state", "list", "--contract", "gone.yaml", "--as", "user:ann", "drafts"],
            &["kv", "import", "gone"],
            &["kv", "put", "b", "k", "--file", "gone"],
        ],
    ),
    (
        6,
        "a kind of store is unknown",
        &[
            &["--store", "ftp://x", "kv", "bucket", "ls"],
            &["status", "ftp://x"],
            &["migrate", "--from", "ftp://x", "--to", "file:x"],
            &["--store", "ftp://x", "contract", "status"],
        ],
    ),
    (
        7,
        "nobody answers",
        &[
            &["--store", "nats://127.0.0.1:1?patience=1", "kv", "bucket", "ls"],
            &["--store", "nats://127.0.0.1:1?patience=1", "contract", "status"],
            &["migrate", "--from", "nats://127.0.0.1:1?patience=1", "--to", "file:x"],
        ],
    ),
];

#[test]
fn each_cause_has_one_code() {
    let given = given("put k 1");
    given.file("bad.yaml", "format: [");
    for (code, cause, commands) in CAUSES {
        for command in *commands {
            let run = given.run(command);
            assert_eq!(run.code, *code, "{cause}, {command:?}: {}", run.stderr);
        }
    }
}

#[test]
fn who_acts_is_the_user_of_the_process() {
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    for said in [None, Some("mallory"), Some("")] {
        let given = given_contract();
        assert_eq!(given.run(&["contract", "plan", "contract.yaml", "--out", "plan.json"]).code, 2);
        let mut apply = given.command(&["contract", "apply", "plan.json"]);
        match said {
            Some(name) => apply.env("USER", name).env("LOGNAME", name),
            None => apply.env_remove("USER").env_remove("LOGNAME"),
        };
        assert!(apply.status().unwrap().success());
        let history = given.json(&["contract", "history", "acme.notes@v1"]);
        assert!(
            history.iter().any(|line| line.to_string().contains(&format!("\"{}\"", user.trim()))),
            "{history:?}"
        );
    }
}

#[test]
fn a_value_on_a_terminal_controls_nothing_and_in_a_pipe_is_as_it_is() {
    let given = given("");
    let value = "two\nlines\x1b[2J\x07\u{202e}";
    given.run_with(value.as_bytes(), &["kv", "put", "b", "k", "-"]).ok();
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), format!("{value}\n"));
    let shown = Terminal::open().shows(given.command(&["kv", "get", "b", "k"]));
    assert_eq!(shown.replace('\r', ""), "two\nlines\\u{1b}[2J\\u{7}\\u{202e}\n");
    let raw = Terminal::open().shows(given.command(&["kv", "get", "b", "k", "--raw"]));
    assert!(raw.contains("\x1b[2J"), "{raw:?}");
}
