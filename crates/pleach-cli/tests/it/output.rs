use std::io::{BufRead as _, BufReader};

use crate::given::{given, given_nothing};

#[test]
fn every_record_has_the_same_shape_in_json() {
    let given = given("");
    let put = given.json(&["kv", "put", "b", "k", "v"]);
    assert_eq!(put, given.json(&["kv", "get", "b", "k"]));
    assert_eq!(put, given.json(&["kv", "ls", "b"]));
    assert_eq!(put, given.json(&["kv", "history", "b", "k"]));
    assert_eq!(put, given.json(&["kv", "watch", "b", "--from", "2", "--count", "1"]));
    assert_eq!(put, given.json(&["kv", "export", "b"])[1..]);
    let fields: Vec<&String> = put[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["bucket", "key", "op", "revision", "time", "v", "value"]);
    let delete = given.json(&["kv", "del", "b", "k"]);
    assert_eq!(delete[..], given.json(&["kv", "history", "b", "k"])[1..], "history keeps five");
}

#[test]
fn quiet_prints_data_but_no_confirmations() {
    let given = given("");
    for arguments in
        [&["-q", "kv", "put", "b", "k", "v"][..], &["--quiet", "--json", "kv", "put", "b", "k", "v"]]
    {
        assert_eq!(given.ok(arguments), "");
    }
    assert_eq!(given.ok(&["-q", "kv", "get", "b", "k"]), "v\n");
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let given = given("");
    let get = ["kv", "get", "b", "k"];
    assert!(!given.run(&get).stderr.contains('\x1b'));
    assert!(
        given.run(&[&["--color", "always"], &get[..]].concat()).stderr.contains("\x1b[1;31merror:\x1b[0m")
    );
    let ls = ["--color", "always", "kv", "bucket", "ls"];
    assert!(given.ok(&ls).contains('\x1b'));
    let never = given
        .command(&["kv", "bucket", "ls", "--color", "never"])
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(!String::from_utf8(never.stdout).unwrap().contains('\x1b'));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let given = given("");
    let lines: String = (0..20_000)
        .map(|n| format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"k.{n}\",\"value\":\"x\"}}\n"))
        .collect();
    given.run_with(lines.as_bytes(), &["kv", "import"]).ok();
    for arguments in [&["kv", "ls", "b"][..], &["--json", "kv", "ls", "b"], &["kv", "export"]] {
        let mut child = given.start(arguments);
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    }
}

#[test]
fn completions_are_made_for_each_shell() {
    let given = given_nothing();
    for (shell, holds) in [("bash", "_pleach"), ("zsh", "#compdef pleach"), ("fish", "complete -c pleach")] {
        let script = given.ok(&["completions", shell]);
        assert!(script.contains(holds) && script.contains("history"), "{shell}");
    }
}

#[test]
fn the_version_is_printed() {
    assert_eq!(given_nothing().ok(&["--version"]), concat!("pleach ", env!("CARGO_PKG_VERSION"), "\n"));
}
