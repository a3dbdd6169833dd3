//! What each engine promises, in one table that is made from the code: `docs/engines.md`.
//! `PLEACH_GOLDEN=write cargo test -p pleach --all-features engines` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroU8;
use std::path::Path;
use std::time::Duration;

use pleach::nats::NatsOptions;
use pleach::{Capabilities, Store};
use pleach_engine::conformance::{Need, PROMISES, Promise};
use pleach_nats_testing::{Cluster, Server};

/// The columns.
const ENGINES: [&str; 4] = ["in memory", "embedded", "NATS R1", "NATS R3"];

const HEADING: &str = "# What each engine promises

Made from the code, by the test in `crates/pleach/tests/it/engines.rs`: do not edit it. NATS R1 is a bucket on one server, NATS R3 one on
three servers of a cluster (`replicas=3`); both with the default options of a store, and servers with default settings.

What an engine cannot do is refused with `Unsupported` before anything is written. Programs find all of this in
`Store::capabilities`.

## Capabilities

";

/// What is the same in `Capabilities` and yet not the same.
const SURVIVAL: &str = "
R1 and R3 promise the same as long as their servers run. The difference is what happens when one does not: an R1 bucket is away with its
server, and gone with its disk; an R3 bucket goes on while any two of its servers run, and whoever is asked meanwhile is either
answered or told `Unavailable` or, of a commit whose answer was lost, `Unknown`.
";

const OPTIONS: &str = "
Revisions grow everywhere; engines in this process count for the whole store, on NATS each bucket counts for itself.

Options of a store on NATS move some of this: `synced=true` says that all servers run with `sync_interval: always`, and then
commits are synced; `reads=any` gives up reading one's own writes for answers of the nearest server; `scans=direct` gives up
snapshots for not keeping buckets in memory; `storage=memory` gives up persistence.
";

#[test]
fn the_table_of_engines_is_what_the_code_says() {
    crate::run(async {
        let directory = tempfile::tempdir().unwrap();
        let (server, cluster) = (Server::start(), Cluster::start());
        let one = NatsOptions::server(server.url());
        let replicas = NonZeroU8::new(3).unwrap();
        let three = NatsOptions { servers: cluster.urls(), replicas, ..NatsOptions::default() };
        let stores = [
            Store::in_memory(),
            Store::open(directory.path()).await.unwrap(),
            Store::connect_nats(one).await.unwrap(),
            Store::connect_nats(three).await.unwrap(),
        ];
        check(&document(&stores.each_ref().map(Store::capabilities)));
    });
}

fn check(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/engines.md");
    if std::env::var_os("PLEACH_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::write(&path, text).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/engines.md is not what the code says now:\n{text}\n\
         If that is right: PLEACH_GOLDEN=write cargo test -p pleach --all-features engines"
    );
}

fn document(engines: &[&Capabilities; 4]) -> String {
    let mut text = HEADING.to_owned();
    let rows = engines.map(rows);
    head(&mut text, "capability");
    for (index, Row { name, meaning, .. }) in rows[0].iter().enumerate() {
        let cells = rows.each_ref().map(|rows| rows[index].value.clone());
        line(&mut text, &format!("**{name}**: {meaning}"), &cells);
    }
    text.push_str("\n## Where engines differ, and why\n\n");
    for (index, Row { name, .. }) in rows[1].iter().enumerate() {
        if rows.iter().any(|other| other[index].value != rows[1][index].value) {
            writeln!(text, "- **{name}**: {}", reason(name)).unwrap();
        }
    }
    text.push_str(SURVIVAL);
    text.push_str(OPTIONS);
    text.push_str("\n## Promises\n\nThe numbers are those of the trait `Engine`; each promise is a test of the same name.\n\n");
    promises(&mut text, engines);
    text
}

/// A capability as the table shows it.
struct Row {
    name: &'static str,
    meaning: &'static str,
    value: String,
}

/// Every field, so that a new one cannot be forgotten here.
fn rows(engine: &Capabilities) -> Vec<Row> {
    let Capabilities {
        engine: _,
        batch_operations_max,
        batch_bytes_max,
        value_bytes_max,
        history_max,
        ttl_resolution,
        synced_commits,
        reads_own_writes,
        linearizable_reads,
        expired_history,
        snapshot_scans,
        complete_feed,
        consumers,
        persistent,
        sole_writer,
    } = engine;
    let row = |name, meaning, value: String| Row { name, meaning, value };
    let has = |name, meaning, has: &bool| row(name, meaning, if *has { "yes" } else { "no" }.to_owned());
    vec![
        has("persistent", "what was committed is there when the store is opened again", persistent),
        has("synced_commits", "a commit is on stable storage before it is acknowledged", synced_commits),
        has("reads_own_writes", "a read sees what the same handle has written or seen", reads_own_writes),
        has(
            "linearizable_reads",
            "a read sees every commit acknowledged before it began, whoever made it",
            linearizable_reads,
        ),
        has("snapshot_scans", "a scan and its pages read one snapshot", snapshot_scans),
        has("complete_feed", "a watch from a revision delivers every change since", complete_feed),
        has("consumers", "the store remembers places in the changes of a bucket", consumers),
        has(
            "expired_history",
            "values expire alone in buckets with history, and stay in it",
            expired_history,
        ),
        has("sole_writer", "nobody writes but through this store's own guards", sole_writer),
        row("ttl_resolution", "the shortest TTL, and how exactly it is kept", shown_time(*ttl_resolution)),
        row("history_max", "records of a key", history_max.to_string()),
        row("value_bytes_max", "the largest value", shown_size(*value_bytes_max as usize)),
        row("batch_operations_max", "operations in a batch", batch_operations_max.to_string()),
        row("batch_bytes_max", "bytes in a batch", shown_size(*batch_bytes_max)),
    ]
}

/// Why servers cannot do what an engine in a directory can, and what that means.
fn reason(name: &str) -> &'static str {
    match name {
        "persistent" => "what is in memory is gone with the process; everything else stays.",
        "synced_commits" => {
            "a server acknowledges once a commit is in its files or agreed on by most replicas, and syncs every two minutes unless \
             it runs with `sync_interval: always`, which cannot be asked. A power cut of the one server, or of most of three at \
             once, can lose acknowledged commits; a killed server loses none."
        }
        "linearizable_reads" => {
            "a leader that was replaced may answer for a moment without knowing it, and replicas answer too: another client's \
             newest commit may be missing. What the same handle has written or seen is never missing, and `Reads::AtLeast` \
             carries that to other handles. Writes are judged by the leader and never by an old state."
        }
        "expired_history" => {
            "the server would show an older value in place of one that expired, so in a bucket that keeps history a value of its own \
             TTL is refused; the TTL of a bucket works, and what it ends leaves the history."
        }
        "complete_feed" => {
            "a stream keeps records as history, not as a feed: a watch from an old revision delivers what is kept and the newest \
             record of every key that has changed, and one that is overtaken by what it can no longer get ends with `Compacted`. \
             A watch that runs, also through a reconnect, gets every change as long as the bucket's history still has it."
        }
        "sole_writer" => {
            "other programs write to the servers too. One that goes through Pleach is held to a contract from the moment an apply returns: the \
             server refuses commits that were judged by an older one. One that does not go through Pleach is never stopped."
        }
        "ttl_resolution" => {
            "servers count in whole seconds; readers judge by the exact moment, its record comes up to a second later. In between a \
             commit that expects the revision of the value still succeeds, as if it had come before that moment."
        }
        "value_bytes_max" => {
            "a value and its headers are one message, and a server takes messages of 1 MiB unless `max_payload` says more."
        }
        "batch_operations_max" => "one place is for the check that holds a commit to the contract in force.",
        "batch_bytes_max" => "a server holds a batch in memory until it is complete.",
        other => panic!("say in `reason` why engines differ in {other}"),
    }
}

fn promises(text: &mut String, engines: &[&Capabilities; 4]) {
    head(text, "promise");
    for Promise { number, name, needs, .. } in PROMISES {
        let cells = engines.map(|engine| match lacking(needs, engine) {
            None => "yes".to_owned(),
            Some(need) => format!("needs {need}"),
        });
        line(text, &format!("{number} `{name}`"), &cells);
    }
}

fn lacking(needs: &[Need], engine: &Capabilities) -> Option<Need> {
    needs.iter().copied().find(|need| !need.is_met_by(engine))
}

fn head(text: &mut String, first: &str) {
    line(text, first, &ENGINES.map(str::to_owned));
    line(text, "---", &ENGINES.map(|_| "---".to_owned()));
}

fn line(text: &mut String, first: &str, cells: &[String; 4]) {
    writeln!(text, "| {first} | {} |", cells.join(" | ")).unwrap();
}

fn shown_time(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

fn shown_size(bytes: usize) -> String {
    if bytes.is_multiple_of(1024 * 1024) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{} KiB", bytes >> 10)
    }
}
