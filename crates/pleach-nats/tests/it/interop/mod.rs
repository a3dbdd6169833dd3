//! Buckets are shared with other key-value clients of NATS, in both directions: nats.py, @nats-io/kv and async-nats.

mod client;
mod native;
mod program;

use std::collections::BTreeSet;
use std::num::NonZeroU8;
use std::time::Duration;

use futures_util::StreamExt;
use pleach_engine::{
    At, Batch, BucketConfig, BucketName, CommitError, Engine, Entry, Expectation, Expiry, Key, Op, Operation,
    Revision, ScanQuery, WatchEvent, WatchQuery, WatchStart, WatchStream,
};
use pleach_nats::NatsEngine;

use crate::servers::{self, SOON};
use client::{Client, Seen};
use native::Native;
use program::Program;

/// How many revisions of a key are kept.
const HISTORY: u8 = 5;

/// Makes the tests of one client, in a module of its name.
macro_rules! tests_with {
    ($name:ident, $client:expr) => {
        mod $name {
            use super::*;

            #[tokio::test]
            async fn a_bucket_of_ours_is_theirs_too() {
                share_ours($client).await;
            }

            #[tokio::test]
            async fn a_bucket_of_theirs_is_ours_too() {
                share_theirs($client).await;
            }

            #[tokio::test]
            async fn what_one_lets_expire_is_gone_for_the_other() {
                expire($client).await;
            }

            #[tokio::test]
            async fn of_those_who_update_at_once_one_wins_each_time() {
                race($client).await;
            }
        }
    };
}

tests_with!(nats_py, Program::python().await);
tests_with!(nats_js, Program::node().await);
tests_with!(async_nats_kv, Native::connect().await);

async fn share_ours(mut client: impl Client) {
    let (engine, name) = engine().await;
    let config = BucketConfig {
        history: NonZeroU8::new(HISTORY).unwrap(),
        ..BucketConfig::plain(engine.capabilities())
    };
    engine.create_bucket(&carts(), config).await.unwrap();
    client.bind(&name).await;
    exchange(&engine, &mut client).await;
    // What is committed together they see one by one, with the same revisions.
    let batch = Batch::new().put(key("x.1"), "1").put(key("x.2"), "2").delete(key("a"));
    let committed = engine.commit(&carts(), batch).await.unwrap();
    let seen = client.seen(3).await;
    let revisions: Vec<u64> = seen.iter().map(|change| change.revision).collect();
    assert_eq!(revisions, (committed.first.get()..=committed.last.get()).collect::<Vec<_>>());
    assert_eq!(seen[2].operation, "delete");
    assert_eq!(client.get("a").await, None);
}

async fn share_theirs(mut client: impl Client) {
    let (engine, name) = engine().await;
    client.create_bucket(&name, HISTORY, None).await;
    let info = engine.bucket(&carts()).await.unwrap();
    assert_eq!(info.config.history.get(), HISTORY);
    exchange(&engine, &mut client).await;
}

/// What both must see. A change that is replaced or purged at once may pass either by, so both await each.
struct Both {
    watch: WatchStream,
    expected: Vec<Seen>,
}

impl Both {
    async fn expect(&mut self, client: &mut impl Client, change: Seen) {
        assert_eq!(seen(&mut self.watch, 1).await, std::slice::from_ref(&change));
        assert_eq!(client.seen(1).await, std::slice::from_ref(&change), "they see everything");
        self.expected.push(change);
    }
}

/// Both do everything there is to do in one bucket, in turns, and each sees all of it.
async fn exchange(engine: &NatsEngine, client: &mut impl Client) {
    let query = WatchQuery { start: WatchStart::Latest, ..WatchQuery::default() };
    let watch = engine.watch(&carts(), query).await.unwrap();
    client.watch().await;
    let mut both = Both { watch, expected: Vec::new() };

    let first = put(engine, "a", "1").await;
    both.expect(client, Seen::put("a", first, "1")).await;
    assert_eq!(client.get("a").await, Some(Seen::put("a", first, "1")));
    let second = client.put("b.c", "2").await;
    both.expect(client, Seen::put("b.c", second, "2")).await;
    assert_eq!(read(engine, "b.c").await, Some(Seen::put("b.c", second, "2")));

    // An expectation holds or fails, whoever wrote last.
    let third = client.update("a", "3", first).await.expect("it is at this revision");
    both.expect(client, Seen::put("a", third, "3")).await;
    let stale = Operation::put(key("a"), "late").expecting(Expectation::Revision(Revision::new(first)));
    let lost = engine.commit(&carts(), Batch::from(stale)).await.unwrap_err();
    let CommitError::Conflict(lost) = lost else { panic!("expected a conflict, got {lost:?}") };
    assert_eq!(lost.actual.map(Revision::get), Some(third));
    let fourth = update(engine, "a", "4", third).await;
    both.expect(client, Seen::put("a", fourth, "4")).await;
    assert_eq!(client.update("a", "late", third).await, None, "they lose a race that we have won");
    assert_eq!(client.create("a", "late", None).await, None, "it is there");

    // What one deletes the other finds gone, and can create again.
    let deleted = engine.commit(&carts(), Batch::new().delete(key("a"))).await.unwrap().last.get();
    both.expect(client, Seen::gone("delete", "a", deleted)).await;
    assert_eq!(client.get("a").await, None);
    let created = client.create("a", "5", None).await.expect("it was deleted");
    both.expect(client, Seen::put("a", created, "5")).await;
    client.delete("b.c").await;
    both.expect(client, Seen::gone("delete", "b.c", created + 1)).await;
    assert_eq!(read(engine, "b.c").await, None);
    let absent = Operation::put(key("b.c"), "6").expecting(Expectation::Absent);
    let again = engine.commit(&carts(), Batch::from(absent)).await.unwrap().last.get();
    both.expect(client, Seen::put("b.c", again, "6")).await;

    // The same with what is purged, together with all that was before.
    let purged = engine.commit(&carts(), Batch::new().purge(key("b.c"))).await.unwrap().last.get();
    both.expect(client, Seen::gone("purge", "b.c", purged)).await;
    let last = client.put("d", "7").await;
    both.expect(client, Seen::put("d", last, "7")).await;
    client.purge("d").await;
    both.expect(client, Seen::gone("purge", "d", last + 1)).await;

    let expected = both.expected;
    assert_eq!(client.keys().await, BTreeSet::from(["a".to_owned()]));
    assert_eq!(listed(engine).await, ["a"]);
    let records: Vec<Seen> = expected.into_iter().filter(|change| change.key == "a").collect();
    assert_eq!(history(engine, "a").await, records);
    assert_eq!(client.history("a").await, records);
}

async fn expire(mut client: impl Client) {
    let (engine, name) = engine().await;
    client.create_bucket(&name, 1, Some(Duration::from_secs(60))).await;
    let mut watch = engine.watch(&carts(), WatchQuery::default()).await.unwrap();
    client.watch().await;
    let theirs = client.create("theirs", "1", Some(Duration::from_secs(10))).await.expect("it is new");
    let entry = engine.read(&carts(), &key("theirs"), At::Latest).await.unwrap().expect("it is there");
    assert_eq!(entry.expires, Some(entry.time.saturating_add(Duration::from_secs(10))));
    let ours = Operation::put(key("ours"), "2").expiring(Expiry::After(Duration::from_secs(20)));
    let ours = engine.commit(&carts(), Batch::from(ours)).await.unwrap().last.get();
    assert_eq!(client.get("ours").await, Some(Seen::put("ours", ours, "2")));

    // To them an expiry is a purge.
    let puts = [Seen::put("theirs", theirs, "1"), Seen::put("ours", ours, "2")];
    let ends = [Seen::gone("purge", "theirs", ours + 1), Seen::gone("purge", "ours", ours + 2)];
    assert_eq!(client.seen(4).await, [puts.clone(), ends.clone()].concat());
    let ends = ends.map(|end| Seen { operation: "expire".into(), ..end });
    assert_eq!(seen(&mut watch, 4).await, [puts, ends].concat());
    assert_eq!((client.get("ours").await, read(&engine, "theirs").await), (None, None));
    assert_eq!(listed(&engine).await, Vec::<String>::new());
}

/// Both count in the same key at once, each from what it has read.
async fn race(mut client: impl Client) {
    const STEPS: usize = 20;
    let (engine, name) = engine().await;
    engine.create_bucket(&carts(), BucketConfig::plain(engine.capabilities())).await.unwrap();
    client.bind(&name).await;
    put(&engine, "count", "0").await;
    let next = |seen: &Seen| (seen.value.parse::<usize>().unwrap() + 1).to_string();
    let ours = async {
        let mut won = 0;
        while won < STEPS {
            let found = read(&engine, "count").await.expect("it is there");
            let expected = Expectation::Revision(Revision::new(found.revision));
            let step = Operation::put(key("count"), next(&found)).expecting(expected);
            match engine.commit(&carts(), Batch::from(step)).await {
                Ok(_) => won += 1,
                Err(CommitError::Conflict(_)) => {}
                Err(error) => panic!("neither won nor lost: {error:?}"),
            }
        }
    };
    let theirs = async {
        let mut won = 0;
        while won < STEPS {
            let found = client.get("count").await.expect("it is there");
            won += usize::from(client.update("count", &next(&found), found.revision).await.is_some());
        }
    };
    tokio::join!(ours, theirs);
    assert_eq!(read(&engine, "count").await.unwrap().value, (2 * STEPS).to_string(), "no step is lost");
}

/// An engine of its own, and what its bucket is called by others.
async fn engine() -> (NatsEngine, String) {
    let options = servers::options(vec![servers::server().url()]);
    let name = format!("{}{}", options.namespace, carts());
    (NatsEngine::connect(options).await.unwrap(), name)
}

async fn put(engine: &NatsEngine, at: &str, value: &'static str) -> u64 {
    engine.commit(&carts(), Batch::new().put(key(at), value)).await.unwrap().last.get()
}

async fn update(engine: &NatsEngine, at: &str, value: &'static str, revision: u64) -> u64 {
    let update = Operation::put(key(at), value).expecting(Expectation::Revision(Revision::new(revision)));
    engine.commit(&carts(), Batch::from(update)).await.unwrap().last.get()
}

async fn read(engine: &NatsEngine, at: &str) -> Option<Seen> {
    engine.read(&carts(), &key(at), At::Latest).await.unwrap().map(shown)
}

async fn history(engine: &NatsEngine, at: &str) -> Vec<Seen> {
    engine.history(&carts(), &key(at)).await.unwrap().into_iter().map(shown).collect()
}

async fn listed(engine: &NatsEngine) -> Vec<String> {
    let page = engine.scan(&carts(), ScanQuery::default()).await.unwrap();
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// The next changes of a watch.
async fn seen(watch: &mut WatchStream, count: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    while seen.len() < count {
        match tokio::time::timeout(SOON, watch.next()).await.expect("it comes soon") {
            Some(Ok(WatchEvent::Change(change))) => seen.push(shown(change.entry)),
            Some(Ok(WatchEvent::InitialDone { .. })) => {}
            other => panic!("expected a change, got {other:?}"),
        }
    }
    seen
}

fn shown(entry: Entry) -> Seen {
    let operation = match entry.op {
        Op::Put => "put",
        Op::Delete => "delete",
        Op::Purge => "purge",
        Op::Expire => "expire",
    };
    Seen {
        operation: operation.into(),
        key: entry.key.to_string(),
        revision: entry.revision.get(),
        value: String::from_utf8(entry.value.to_vec()).unwrap(),
    }
}

fn carts() -> BucketName {
    BucketName::parse("carts").unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
