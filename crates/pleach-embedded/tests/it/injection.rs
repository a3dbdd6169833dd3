//! The operating system refuses, one call after the other, or the process is killed at it.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use pleach_embedded::inspect;

use crate::store::{Store, copy};
use crate::workload::{self, Told};

const WORKERS: usize = 2;

/// How many commits each writer of a process makes: enough for segments to be cleaned and the index flushed.
const COMMITS: u64 = 60;

/// The calls at which a process is killed: all by which it changes a file or a directory, and some others. The
/// loader opens files as well, so the first are left out.
const KILLED_AT: [(&str, [u32; 10]); 9] = [
    ("pwrite64", [1, 2, 3, 5, 8, 13, 21, 34, 55, 80]),
    ("fdatasync", [1, 2, 4, 6, 9, 14, 22, 35, 56, 81]),
    ("fsync", [1, 3, 5, 7, 10, 15, 23, 36, 57, 82]),
    ("rename", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ("renameat", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ("unlink", [1, 2, 3, 4, 5, 6, 7, 9, 12, 16]),
    ("openat", [12, 13, 14, 15, 17, 20, 24, 30, 45, 60]),
    ("write", [6, 8, 11, 15, 20, 27, 36, 50, 70, 90]),
    ("close", [12, 14, 17, 20, 24, 30, 38, 50, 65, 80]),
];

/// What a process said, and what was done to it.
struct Run {
    injection: String,
    output: Output,
    text: String,
    told: Told,
}

impl Run {
    /// Works on `store`, of which `told` is known, under an injection, in the name of `test`.
    fn new(test: &str, store: &Store, mut told: Told, commits: u64, injection: &str) -> Self {
        let (call, _) = injection.split_once(':').expect("CALL:WHAT");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
        strace.args(["-e", &format!("inject={injection}")]);
        strace.arg(std::env::current_exe().expect("this test"));
        let output = workload::child_under(strace, test, store, Some(commits)).output();
        let output =
            output.expect("strace starts; if not, install the package `strace`, as `cargo xtask ci` does");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("strace: "), "{injection}: no process can be traced here: {stderr}");
        assert!(!stderr.contains("panicked"), "{injection}: {stderr}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        told.hear_all(&output);
        Self { injection: injection.into(), output, text, told }
    }

    fn says(&self, what: &str) -> bool {
        self.text.lines().any(|line| line.contains(what))
    }

    /// Nothing is lost, the log is sound, and an index that is built anew says the same.
    fn check(&self, store: &Store) {
        let mut told = self.told.clone();
        told.check(store, &self.injection);
        let report = inspect::verify(store.path(), &mut |_| {}).expect("it can be read");
        assert!(report.is_sound(), "{}: {report:#?}", self.injection);
        let index = store.path().join("index");
        std::fs::remove_dir_all(index).expect("the index goes");
        told.check(store, &format!("{}, without an index", self.injection));
    }

    /// What a writer heard, in order.
    fn answers(&self, writer: u64) -> impl Iterator<Item = &str> {
        let (ack, refused) = (format!("ack {writer} "), format!("refused {writer} "));
        self.text.lines().filter(move |line| line.contains(&ack) || line.contains(&refused))
    }
}

/// What a process finds.
struct Seed {
    store: Store,
    told: Told,
    /// How many commits it is to make.
    commits: u64,
}

impl Seed {
    /// A store with much to clean.
    fn unclean(test: &str) -> Self {
        let store = Store::with(workload::busy());
        let mut told = Told::default();
        let mut child = workload::child(test, &store, Some(3 * COMMITS));
        let output = child.env(workload::UNCLEAN, "1").output().expect("it works");
        told.hear_all(&output);
        assert_eq!(told.count(0), 3 * COMMITS, "{output:?}");
        Self { store, told, commits: 0 }
    }
}

/// Runs one process for each injection, on a store of its own, some at a time. The store is a copy of `seed`, or
/// new.
fn sweep(test: &str, injections: &[String], seed: Option<&Seed>, check: impl Fn(&Run) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(injection) = injections.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let store = Store::with(workload::busy());
                    let (told, commits) = seed.map_or((Told::default(), COMMITS), |seed| {
                        copy(&seed.store.path(), &store.path());
                        (seed.told.clone(), seed.commits)
                    });
                    let run = Run::new(test, &store, told, commits, injection);
                    run.check(&store);
                    check(&run);
                }
            });
        }
    });
}

fn at(call: &str, what: &str, times: &[u32]) -> Vec<String> {
    times.iter().map(|when| format!("{call}:{what}:when={when}")).collect()
}

#[test]
fn a_write_or_sync_that_fails_is_never_acknowledged_and_ends_the_writing() {
    if workload::is_child() {
        return;
    }
    let test = "injection::a_write_or_sync_that_fails_is_never_acknowledged_and_ends_the_writing";
    let times = [1, 2, 3, 4, 5, 8, 13, 21, 34, 55];
    let injections = [at("fdatasync", "error=EIO", &times), at("pwrite64", "error=EIO", &times)].concat();
    let hits = AtomicUsize::new(0);
    sweep(test, &injections, None, |run| {
        assert!(run.output.status.success(), "{}: {:?}", run.injection, run.output);
        for writer in 0..workload::WRITERS {
            let mut refused = run.answers(writer).skip_while(|line| line.contains("ack ")).peekable();
            hits.fetch_add(usize::from(refused.peek().is_some()), Ordering::Relaxed);
            assert!(refused.all(|line| line.contains("refused")), "{}: {}", run.injection, run.text);
            let last = run.answers(writer).last().unwrap_or_default();
            let says_why = last.contains("takes no more writes") && last.contains("open the store again");
            assert!(says_why || last.contains("ack ") || run.says("failed"), "{}: {last}", run.injection);
        }
    });
    assert!(hits.into_inner() >= injections.len(), "too few calls failed");
}

#[test]
fn a_full_disk_refuses_cleanly_and_writing_goes_on_when_there_is_room() {
    if workload::is_child() {
        return;
    }
    let test = "injection::a_full_disk_refuses_cleanly_and_writing_goes_on_when_there_is_room";
    // For some calls in a row there is no space.
    let row = |call: &str, when: u32| format!("{call}:error=ENOSPC:when={when}..{}", when + 2);
    // Of the log and of the index.
    let writes = [4, 5, 7, 10, 15, 23, 30, 38, 44, 50, 60, 75].map(|when| row("pwrite64", when));
    let hits = AtomicUsize::new(0);
    sweep(test, &writes, None, |run| {
        hits.fetch_add(usize::from(run.says("refused")), Ordering::Relaxed);
        for writer in 0..workload::WRITERS {
            assert_eq!(run.told.count(writer), COMMITS, "{}: {}", run.injection, run.text);
        }
        assert!(run.says("closed"), "{}: {}", run.injection, run.text);
    });
    // How many of these calls were of the log depends on which commits were written together.
    assert!(hits.into_inner() > 0, "no call failed");
}

#[test]
fn no_other_call_that_fails_loses_anything() {
    if workload::is_child() {
        return;
    }
    let test = "injection::no_other_call_that_fails_loses_anything";
    let mut injections = Vec::new();
    for error in ["error=EIO", "error=ENOSPC"] {
        injections.extend(at("fsync", error, &[1, 2, 4, 8, 16, 32]));
        injections.extend(at("rename", error, &[1, 2, 3, 5, 8]));
        injections.extend(at("renameat", error, &[1, 2, 4]));
        injections.extend(at("unlink", error, &[1, 2, 3, 5]));
        injections.extend(at("openat", error, &[12, 14, 17, 24, 40]));
        injections.extend(at("write", error, &[22, 35, 50]));
    }
    sweep(test, &injections, None, |run| {
        assert!(run.output.status.success(), "{}: {:?}", run.injection, run.output);
    });
}

#[test]
fn a_process_that_is_killed_at_any_call_loses_nothing() {
    if workload::is_child() {
        return;
    }
    let test = "injection::a_process_that_is_killed_at_any_call_loses_nothing";
    let injections: Vec<_> =
        KILLED_AT.iter().flat_map(|(call, times)| at(call, "signal=KILL", times)).collect();
    let killed = AtomicUsize::new(0);
    sweep(test, &injections, None, |run| {
        killed.fetch_add(usize::from(!run.output.status.success()), Ordering::Relaxed);
    });
    let killed = killed.into_inner();
    assert!(killed > injections.len() / 2, "only {killed} of {} processes were killed", injections.len());
}

#[test]
fn a_process_that_is_killed_while_it_cleans_loses_nothing() {
    if workload::is_child() {
        return;
    }
    let test = "injection::a_process_that_is_killed_while_it_cleans_loses_nothing";
    let seed = Seed::unclean(test);
    let mut injections = Vec::new();
    for (call, times) in KILLED_AT.iter().filter(|(call, _)| !matches!(*call, "close" | "write")) {
        injections.extend(at(call, "signal=KILL", times));
    }
    let killed = AtomicUsize::new(0);
    sweep(test, &injections, Some(&seed), |run| {
        killed.fetch_add(usize::from(!run.output.status.success()), Ordering::Relaxed);
    });
    let killed = killed.into_inner();
    assert!(killed > injections.len() / 2, "only {killed} of {} processes were killed", injections.len());
}

#[test]
fn a_process_that_is_killed_while_it_builds_the_index_anew_loses_nothing() {
    if workload::is_child() {
        return;
    }
    let test = "injection::a_process_that_is_killed_while_it_builds_the_index_anew_loses_nothing";
    let seed = Seed { commits: COMMITS, ..Seed::unclean(test) };
    let store = &seed.store;
    // As it is after damage was found in it: set aside, and half of a new one is there or not.
    std::fs::rename(store.path().join("index"), store.path().join("index.set-aside-1")).expect("it goes");
    let mut injections = Vec::new();
    for (call, times) in KILLED_AT.iter().filter(|(call, _)| !matches!(*call, "pwrite64" | "fdatasync")) {
        injections.extend(at(call, "signal=KILL", &times[..6]));
    }
    let killed = AtomicUsize::new(0);
    sweep(test, &injections, Some(&seed), |run| {
        let early = !run.output.status.success() && !run.says("ack 0");
        killed.fetch_add(usize::from(early), Ordering::Relaxed);
    });
    let killed = killed.into_inner();
    assert!(killed >= 10, "only {killed} of {} processes were killed early", injections.len());
}
