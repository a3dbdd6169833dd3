//! Where `-o FILE` leads, for every command that has it.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;

use crate::given::{Given, given};

/// A store with an entry, and a contract.
fn given_all() -> Given {
    let given = given("put k 1");
    given.ok(&["contract", "new", "acme.notes@v1", "--kv", "notes", "-o", "contract.yaml"]);
    given
}

/// Every command that writes to a file, without its name, and the code that it ends with if it was done.
const WRITERS: [(&[&str], i32); 5] = [
    (&["kv", "export", "-o"], 0),
    (&["contract", "schema", "-o"], 0),
    (&["contract", "codegen", "contract.yaml", "-o"], 0),
    (&["contract", "new", "acme.more@v1", "--kv", "more", "--force", "-o"], 0),
    (&["contract", "plan", "contract.yaml", "-o"], 2),
];

/// Whether a command says what a contract changes by its exit code, so that every failure is 1.
fn failure(writer: &[&str], code: i32) -> i32 {
    if writer.contains(&"plan") { 1 } else { code }
}

fn to<'a>(writer: &[&'a str], path: &'a str) -> Vec<&'a str> {
    [writer, &[path]].concat()
}

/// The files in the directory, without the store.
fn files(given: &Given) -> Vec<String> {
    let names = fs::read_dir(given.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != ".pleach");
    names.sort();
    names
}

#[test]
fn a_planted_link_is_not_followed() {
    for (writer, done) in WRITERS {
        let given = given_all();
        let victim = given.file("victim", "mine");
        for planted in ["x.part", "x.new", "x.tmp", ".x.part"] {
            symlink(&victim, given.path().join(planted)).unwrap();
        }
        assert_eq!(given.run(&to(writer, "x")).code, done, "{writer:?}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{writer:?}");
        assert!(fs::metadata(given.path().join("x")).unwrap().len() > 0);
        assert_eq!(files(&given), [".x.part", "contract.yaml", "victim", "x", "x.new", "x.part", "x.tmp"]);
    }
}

#[test]
fn a_full_device_is_an_error_and_stays_a_device() {
    let given = given_all();
    for (writer, _) in WRITERS {
        let run = given.run(&to(writer, "/dev/full"));
        assert_eq!(run.code, failure(writer, 7), "{writer:?}: {}", run.stderr);
        assert!(run.stderr.contains("cannot write to /dev/full"), "{}", run.stderr);
        assert!(run.stderr.contains("No space left"), "{}", run.stderr);
        assert!(fs::symlink_metadata("/dev/full").unwrap().file_type().is_char_device(), "{writer:?}");
    }
    for (writer, done) in WRITERS {
        assert_eq!(given.run(&to(writer, "/dev/null")).code, done, "{writer:?}");
        assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device(), "{writer:?}");
    }
}

#[test]
fn a_pipe_is_written_in_place() {
    for (writer, done) in WRITERS {
        let given = given_all();
        let pipe = given.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let written = std::thread::scope(|scope| {
            let reader = scope.spawn(|| fs::read(&pipe).unwrap());
            let run = given.run(&to(writer, "pipe"));
            assert_eq!(run.code, done, "{writer:?}: {}", run.stderr);
            reader.join().unwrap()
        });
        assert!(!written.is_empty(), "{writer:?}");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    }
    // What the shell makes of `>(…)` and of a redirected stdout.
    let given = given_all();
    assert!(given.ok(&["contract", "schema", "-o", "/dev/stdout"]).contains("\"$schema\""));
}

#[test]
fn what_is_no_file_is_refused() {
    let given = given_all();
    fs::create_dir(given.path().join("directory")).unwrap();
    symlink("nowhere", given.path().join("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(given.path().join("socket")).unwrap();
    let before = files(&given);
    for (writer, _) in WRITERS {
        for (path, says) in [
            ("directory", "it is a directory"),
            ("socket", "it is a socket"),
            ("dangling", "it is a link that leads nowhere"),
            ("missing/x", "cannot write to missing/x"),
            ("contract.yaml/x", "cannot write to contract.yaml/x"),
            ("..", "it is a directory"),
        ] {
            let run = given.run(&to(writer, path));
            assert_eq!(run.code, failure(writer, 2), "{writer:?} {path}: {}", run.stderr);
            assert!(run.stderr.contains(says), "{writer:?} {path}: {}", run.stderr);
        }
    }
    assert_eq!(files(&given), before, "nothing was created");
}

#[test]
fn a_replaced_file_keeps_its_mode_and_owner_and_a_link_stays() {
    for (writer, done) in WRITERS {
        let given = given_all();
        let path = given.file("x", "old");
        let owner = fs::metadata(&path).unwrap();
        for mode in [0o600, 0o640, 0o664, 0o755] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(given.run(&to(writer, "x")).code, done, "{writer:?}");
            let now = fs::metadata(&path).unwrap();
            assert_eq!(now.mode() & 0o7777, mode, "{writer:?}");
            assert_eq!((now.uid(), now.gid()), (owner.uid(), owner.gid()));
        }
        assert_ne!(fs::read_to_string(&path).unwrap(), "old");

        given.file("x", "old");
        symlink("x", given.path().join("link")).unwrap();
        assert_eq!(given.run(&to(writer, "link")).code, done, "{writer:?}");
        assert_eq!(fs::read_link(given.path().join("link")).unwrap().to_str(), Some("x"));
        assert_ne!(fs::read_to_string(&path).unwrap(), "old", "{writer:?}: the file behind the link is new");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_and_the_old_file_stays() {
    let given = given_all();
    let directory = given.path().join("locked");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("x"), "old").unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    // To the superuser every directory can be written.
    if fs::write(directory.join("probe"), "").is_ok() {
        return;
    }
    for (writer, _) in WRITERS {
        let run = given.run(&to(writer, "locked/x"));
        assert_eq!(run.code, failure(writer, 7), "{writer:?}: {}", run.stderr);
        assert_eq!(fs::read_to_string(directory.join("x")).unwrap(), "old");
    }
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn contracts_that_are_laid_out_keep_their_mode() {
    let given = given_all();
    let text = fs::read_to_string(given.path().join("contract.yaml")).unwrap().replace("\n  ", "\n    ");
    let path = given.file("contract.yaml", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    given.ok(&["contract", "fmt", "contract.yaml"]);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(files(&given), ["contract.yaml"]);
}
