use crate::given::{given, given_nothing, json_lines};

#[test]
fn wrong_arguments_end_with_code_two() {
    let given = given("");
    for (arguments, says) in [
        (&["kv", "put"][..], "<BUCKET>"),
        (&["kv", "frobnicate"], "unrecognized subcommand"),
        (&["kv", "get", "b"], "<KEY>"),
        (&["kv", "get", "b", "k", "--frob"], "unexpected argument"),
        (&["kv", "get", "b", "k..k"], "empty token"),
        (&["kv", "get", "b", "_kv.x"], "reserved"),
        (&["kv", "get", "b!", "k"], "not allowed"),
        (&["kv", "get", "b", "k", "--revision", "x"], "a revision is a whole number"),
        (&["kv", "get", "b", "k", "--raw", "--json"], "leave one of them out"),
        (&["--json", "kv", "get", "b", "k", "--raw"], "leave one of them out"),
        (&["kv", "revert", "b", "k", "x"], "a revision is a whole number"),
        (&["kv", "put", "b", "k", "v", "--ttl", "soon"], "a time is a number and a unit"),
        (&["kv", "bucket", "add", "c", "--ttl", "soon"], "a time is a number and a unit"),
        (&["kv", "bucket", "add", "c", "--history", "0"], "expected a number from 1 to 64"),
        (&["kv", "bucket", "add", "c", "--history", "65"], "expected a number from 1 to 64"),
        (&["kv", "compact", "b", "k", "--keep", "0"], "expected a number from 1 to 64"),
        (&["kv", "watch", "b", "--count", "0"], "expected a whole number from 1 on"),
        (&["kv", "put", "b", "k", "--file", "."], "name a file that can be read"),
        (&["kv", "import", "."], "name a file that `pleach kv export` wrote"),
        (&["kv", "watch", "b", "--from", "yesterday"], "now, latest, history, oldest or a revision"),
        (&["kv", "watch", "b", "--consumer", "no name"], "not allowed"),
        (&["kv", "watch", "b", "--consumer", "c", "--from", "latest"], "a place among changes"),
        (&["consumer", "reset", "b", "c"], "--to"),
        (&["consumer", "reset", "b", "c", "--to", "yesterday"], "expected oldest, now or a revision"),
        (&["consumer", "info", "b"], "<NAME>"),
        (&["kv", "bucket", "add", "c", "--marker-ttl", "soon"], "a time is a number and a unit"),
        (&["kv", "bucket", "add", "c", "--marker-ttl", "0s"], "marker_ttl"),
        (&["kv", "bucket", "add", "c", "--feed-bytes", "many"], "no unit of size"),
        (&["kv", "compact", "b", "k"], "--keep"),
        (&["contract", "explain-key", "x"], "--grammar"),
        (&["contract", "explain-key", "--grammar", "x.{a}"], "<KEY>"),
        (&["contract", "explain-key", "--grammar", "x.{a:frob}", "x.y"], "there is no type"),
        (&["completions", "cobol"], "invalid value"),
    ] {
        given.run(arguments).fails(2, says);
    }
}

#[test]
fn no_command_at_all_shows_the_help() {
    let given = given_nothing();
    given.run::<&str>(&[]).fails(2, "Usage: pleach");
    given.run(&["kv"]).fails(2, "Usage: pleach kv");
    given.run(&["kv", "bucket"]).fails(2, "Usage: pleach kv bucket");
}

#[test]
fn a_missing_bucket_is_told_with_the_command_that_creates_it() {
    let run = given("").run(&["kv", "get", "carts", "k"]);
    assert_eq!(
        run.stderr,
        "error: there is no bucket carts\nhelp: create it with `pleach kv bucket add carts`, or list what there is \
         with `pleach kv bucket ls`\n"
    );
    assert_eq!(run.code, 3);
}

#[test]
fn errors_in_json_mode_are_one_object_on_stderr() {
    let given = given("put k 1");
    for (arguments, code, kind) in [
        (&["--json", "kv", "get", "b", "nope"][..], 3, "not_found"),
        (&["--json", "kv", "create", "b", "k", "2"], 4, "conflict"),
        (&["kv", "get", "b", "k..k", "--json"], 2, "invalid"),
        (&["--json", "kv", "put"], 2, "invalid"),
        (&["--json", "--store", "redis://x", "kv", "get", "b", "k"], 6, "unsupported"),
        (&["--json", "help", "nope"], 2, "invalid"),
    ] {
        let run = given.run(arguments);
        assert_eq!((run.code, run.text().as_str()), (code, ""), "{arguments:?}");
        let objects = json_lines(&run.stderr);
        assert_eq!(objects.len(), 1, "{}", run.stderr);
        assert_eq!(objects[0]["kind"], kind);
        for field in ["message", "help"] {
            assert!(
                objects[0][field].as_str().is_some_and(|text| !text.is_empty()),
                "{field} of {}",
                run.stderr
            );
        }
    }
}

#[test]
fn a_store_url_that_names_no_store_is_refused() {
    let given = given("");
    given.run(&["--store", "redis://localhost", "kv", "bucket", "ls"]).fails(6, "redis");
    given.run(&["--store", "./data", "kv", "bucket", "ls"]).fails(2, "has no scheme");
    given.file("plain", "no store");
    let run = given.run(&["--store", "file:plain", "kv", "bucket", "add", "b"]);
    assert!((1..=9).contains(&run.code) && run.stderr.contains("plain"), "{run:?}");
}

#[test]
fn the_store_is_named_by_option_or_environment() {
    let given = given("put k here");
    given.ok(&["--store", "file:other", "kv", "bucket", "add", "b"]);
    given.ok(&["kv", "put", "b", "k", "there", "--store", "file:other"]);
    let get = ["kv", "get", "b", "k"];
    let by_environment = given.command(&get).env("PLEACH_STORE", "file:other").output().unwrap();
    assert_eq!(by_environment.stdout, b"there\n");
    assert_eq!(given.ok(&get), "here\n");
    given.run(&[&["--store", "mem:"], &get[..]].concat()).fails(3, "no bucket b");
}

#[test]
fn bytes_that_are_not_a_store_are_left_alone() {
    let given = given_nothing();
    std::fs::create_dir(given.path().join("photos")).unwrap();
    given.file("photos/cat.jpg", "meow");
    let run = given.run(&["--store", "file:photos", "kv", "bucket", "add", "b"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("is not a Pleach store"), "{}", run.stderr);
    assert_eq!(std::fs::read_dir(given.path().join("photos")).unwrap().count(), 1);
}

#[test]
fn a_missing_store_is_told_with_the_command_that_creates_that_very_store() {
    let given = given_nothing();
    given
        .run(&["--store", "file:./data", "kv", "bucket", "ls"])
        .fails(3, "`pleach --store file:./data kv bucket add BUCKET`");
    let run = given.command(&["kv", "bucket", "ls"]).env_remove("PLEACH_STORE").output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("`pleach kv bucket add BUCKET`"), "{said}");
}

#[test]
fn a_configuration_that_no_engine_takes_leaves_no_store_behind() {
    let given = given_nothing();
    for (option, value) in [("--value-max", "0"), ("--value-max", "65MiB"), ("--ttl", "200years")] {
        let run = given.run(&["--store", "file:new", "kv", "bucket", "add", "b", option, value]);
        run.fails(2, "help: ");
        assert!(!given.has("new"), "{option} {value}");
    }
}
