use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

use crate::given::{Given, content, given};

/// Many batches, and each key several times in each thousand lines.
const LINES: usize = 24_000;
const KEYS: usize = 400;

fn dump() -> String {
    let line = |n: usize| {
        format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"k.{:04}\",\"value\":\"{n}\"}}\n", n * 7 % KEYS)
    };
    (0..LINES).map(line).collect()
}

/// Kills the import `delay` after its state file says that at least this much is done, or lets it end. With
/// different delays the kill comes before, in and after a commit.
fn kill_after(given: &Given, child: &mut Child, bytes: u64, delay: Duration) -> bool {
    let state = given.path().join("dump.import-state");
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        let text = fs::read_to_string(&state).unwrap_or_default();
        let done = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|state| state["done"]["bytes"].as_u64());
        if done.is_some_and(|done| done >= bytes) {
            thread::sleep(delay);
            child.kill().unwrap();
            return !child.wait().unwrap().success();
        }
        // The state file is the event that is awaited; this only keeps the loop from taking a whole core.
        thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn an_import_that_is_killed_again_and_again_applies_every_line_once() {
    let (whole, killed) = (given(""), given(""));
    whole.file("dump", dump());
    let dump = fs::metadata(killed.file("dump", dump())).unwrap().len();
    whole.ok(&["kv", "import", "dump"]);

    let mut kills = 0;
    let killed_at = |part| {
        let mut child = killed.start(&["kv", "import", "dump", "--resume"]);
        kill_after(&killed, &mut child, dump * part / 8, Duration::from_millis(2 * part))
    };
    // On a busy machine one may end before it is killed.
    while kills < 7 && killed_at(kills + 1) {
        kills += 1;
    }
    assert!(kills > 0, "the import was too quick to be killed");
    if killed.has("dump.import-state") {
        let text = killed.ok(&["kv", "import", "dump", "--resume"]);
        assert_eq!(text, format!("imported {LINES} records\n"));
    }

    let export = ["kv", "export", "--history"];
    assert_eq!(content(&killed.json(&export)), content(&whole.json(&export)));
    let revisions = |given: &Given| given.json(&["kv", "bucket", "info", "b"])[0]["last_revision"].clone();
    assert_eq!(revisions(&killed), revisions(&whole), "as many records were committed, none twice");
}

/// An import of two lines that was killed when the state file said `round 0 comes next`, after the bucket had
/// `revision`. The two lines have been committed once already.
fn given_killed_at(revision: u64) -> Given {
    let given = given("");
    let line = |key: &str| format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"{key}\",\"value\":\"1\"}}\n");
    given.file("dump", [line("x"), line("y"), "bad".into()].concat());
    given.run(&["kv", "import", "dump"]).fails(2, "line 3");

    let state = fs::read_to_string(given.path().join("dump.import-state")).unwrap();
    let mut killed: serde_json::Value = serde_json::from_str(&state).unwrap();
    killed["window"] =
        serde_json::json!({"end": killed["done"], "now_micros": 0, "round": 0, "after": revision});
    // The digest of nothing is where FNV-1a begins.
    killed["done"] = serde_json::json!({"bytes": 0, "lines": 0, "digest": 0xcbf2_9ce4_8422_2325_u64});
    killed["tally"] = serde_json::json!({"records": 0, "expired": 0});
    given.file("dump.import-state", killed.to_string());
    given.file("dump", [line("x"), line("y")].concat());
    given
}

#[test]
fn a_batch_that_was_committed_just_before_the_kill_is_not_committed_again() {
    let given = given_killed_at(1);
    assert_eq!(given.ok(&["kv", "import", "dump", "--resume"]), "imported 2 records\n");
    assert_eq!(given.json(&["kv", "history", "b", "x"]).len(), 1);
}

#[test]
fn a_batch_that_was_not_committed_before_the_kill_is_committed() {
    let given = given_killed_at(3);
    assert_eq!(given.ok(&["kv", "import", "dump", "--resume"]), "imported 2 records\n");
    assert_eq!(given.json(&["kv", "history", "b", "x"]).len(), 2);
}

#[test]
fn lines_that_were_being_imported_cannot_be_changed() {
    let given = given_killed_at(1);
    given.file("dump", "{\"v\":1,\"bucket\":\"b\",\"key\":\"z\",\"value\":\"1\"}\n\n");
    given.run(&["kv", "import", "dump", "--resume"]).fails(2, "lines 1 to 2 are not what they were");
}
