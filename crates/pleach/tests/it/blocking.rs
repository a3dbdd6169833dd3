use std::num::NonZeroU8;
use std::task::Poll;
use std::time::Duration;

use pleach::blocking::{Bucket, Store, Waited};
use pleach::{
    ConsumeOptions, ConsumerStart, DeleteOptions, ErrorKind, Expectation, PutOptions, ScanQuery, WatchEvent,
    WriteError,
};

use pleach::contract::{Contract, Notation};
use pleach::stores::{
    ApplyOptions, KvBatch, KvError, KvEvent, KvWriteError, PlanOptions, QueryOptions, Read,
};
use serde_json::{Value, json};

use crate::given::within;

const LONG: Duration = Duration::from_secs(300);

fn carts() -> Bucket {
    let config = pleach::BucketConfig { history: 5.try_into().unwrap(), ..Default::default() };
    Store::in_memory().create_bucket_with("carts", config).unwrap()
}

#[test]
fn a_program_without_async_has_the_same_store() {
    let store = Store::connect("mem:").unwrap();
    store.create_bucket("a").unwrap();
    store.create_bucket("b").unwrap();
    store.delete_bucket("b").unwrap();
    assert_eq!(store.buckets().unwrap().len(), 1);
    assert_eq!(store.bucket("b").unwrap_err().kind(), ErrorKind::NotFound);
    let config = pleach::BucketConfig { history: 2.try_into().unwrap(), ..Default::default() };
    store.update_bucket("a", config.clone()).unwrap();
    assert_eq!(store.bucket("a").unwrap().config().unwrap(), config);
    store.close().unwrap();
    assert_eq!(store.buckets().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_program_without_async_reads_and_writes() {
    let carts = carts();
    let first = carts.create("a", "1").unwrap();
    let second = carts.update("a", "2", first).unwrap();
    assert!(matches!(carts.update("a", "3", first), Err(WriteError::Conflict(_))));
    assert_eq!(carts.get_at("a", first).unwrap().unwrap().value, "1");
    carts.put_with("b", "1", PutOptions::default()).unwrap();
    carts.batch(|batch| batch.put("c", "1").delete("b")).unwrap();
    let options = DeleteOptions { expect: Expectation::Revision(second), ..DeleteOptions::default() };
    carts.delete_with("a", options).unwrap();
    assert_eq!(carts.history("a").unwrap().len(), 3);
    carts.compact_key("a", NonZeroU8::MIN).unwrap();
    assert_eq!(carts.history("a").unwrap().len(), 1);
    carts.purge("a").unwrap();
    assert_eq!((carts.count(">").unwrap(), carts.status().unwrap().entries), (1, 1));
}

#[test]
fn scans_are_iterators() {
    let carts = carts();
    for key in ["a", "b.1", "b.2"] {
        carts.put(key, "1").unwrap();
    }
    let mut scan = carts.scan(">").unwrap();
    let snapshot = (scan.revision(), scan.next().is_some(), scan.revision());
    assert_eq!(snapshot, (None, true, Some(carts.info().unwrap().last_revision)));
    let keys: Vec<_> = carts.scan("b.*").unwrap().map(|entry| entry.unwrap().key.to_string()).collect();
    assert_eq!(keys, ["b.1", "b.2"]);
    assert_eq!(carts.keys(">").unwrap().collect::<Result<Vec<_>, _>>().unwrap().len(), 3);
    let page = carts.scan_page(ScanQuery { limit: 2, ..ScanQuery::default() }).unwrap();
    assert!(page.next.is_some());
}

#[test]
fn a_watch_waits_as_long_as_it_is_told() {
    let carts = carts();
    let mut watch = carts.watch(">").unwrap();
    assert_eq!(watch.next_timeout(Duration::ZERO).unwrap(), Waited::TimedOut);
    assert_eq!(watch.next_timeout(Duration::from_millis(10)).unwrap(), Waited::TimedOut);

    // It is woken by a change that another thread makes while it waits.
    let writer = carts.clone();
    let event = within(LONG, move || {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| watch.next_timeout(LONG).unwrap());
            writer.put("a", "1").unwrap();
            waiting.join().unwrap()
        })
    });
    assert!(matches!(event, Waited::Event(WatchEvent::Change(change)) if change.entry.value == "1"));
}

/// A future that waits by blocking holds up whoever polls it, but takes no wake-up away from them.
#[test]
fn waiting_inside_a_future_loses_no_wake_up() {
    let carts = carts();
    let mut watch = carts.watch(">").unwrap();
    within(LONG, move || {
        let mut polled = false;
        pollster::block_on(std::future::poll_fn(|context| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            assert_eq!(watch.next_timeout(Duration::from_millis(1)).unwrap(), Waited::TimedOut);
            Poll::Pending
        }));
    });
}

#[test]
fn a_watch_is_an_iterator_that_ends_after_an_error() {
    let carts = carts();
    let mut watch = carts.watch("a").unwrap();
    carts.put("a", "1").unwrap();
    assert!(matches!(watch.next(), Some(Ok(WatchEvent::Change(_)))));
    carts.store().delete_bucket("carts").unwrap();
    assert_eq!(watch.next().unwrap().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(watch.next().is_none());
    assert_eq!(watch.next_timeout(LONG).unwrap(), Waited::Ended);
}

#[test]
fn consumers_need_no_async_either() {
    let carts = carts();
    let first = carts.put("a", "1").unwrap();
    carts.put("b", "1").unwrap();
    let mut consumer = carts.consume("mails").unwrap();
    let change = consumer.next().unwrap().unwrap();
    consumer.ack(&change).unwrap();
    assert_eq!((consumer.name().as_str(), change.entry.revision), ("mails", first));
    let mut consumer = carts.consume_with("mails", ConsumeOptions::default()).unwrap();
    let Waited::Event(change) = consumer.next_timeout(LONG).unwrap() else { panic!("there is a change") };
    assert_eq!(change.entry.key.as_str(), "b");
    assert_eq!(consumer.next_timeout(Duration::ZERO).unwrap(), Waited::TimedOut);
    consumer.ack_up_to(change.entry.revision).unwrap();
    assert_eq!(carts.consumer("mails").unwrap().lag, 0);
    assert!(carts.reset_consumer("mails", ConsumerStart::Oldest).unwrap().lag >= 2);
    assert_eq!(carts.consumers().unwrap().len(), 1);
    carts.delete_consumer("mails").unwrap();
    assert_eq!(carts.consumer("mails").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn typed_and_cached_buckets_need_no_async_either() {
    let cached = carts().cached().unwrap();
    cached.ready().unwrap();
    assert!(cached.is_ready());
    let numbers = cached.typed::<u32>();
    let seen = numbers.create("a", &1).unwrap();
    numbers.update("a", &2, seen).unwrap();
    assert_eq!(cached.get("a").unwrap().unwrap().value, "2");
    assert_eq!(numbers.get("a").unwrap().unwrap().value, 2);
    assert_eq!(numbers.history("a").unwrap().len(), 2);
    assert_eq!(numbers.scan(">").unwrap().map(|entry| entry.unwrap().value).collect::<Vec<_>>(), [2]);
    let (key, value) = numbers.stored("b", &3).unwrap();
    cached.batch(|batch| batch.put(key, value)).unwrap();
    cached.purge(numbers.stored_key("b").unwrap()).unwrap();
    let mut watch = numbers.watch(">").unwrap();
    numbers.delete("a").unwrap();
    assert!(matches!(watch.next_timeout(LONG).unwrap(), Waited::Event(_)));
}

#[test]
fn a_program_without_async_has_typed_resources() {
    let text = r#"
format: pleach.contract.v1
id: acme.notes@v1
kind: app
displayName: Notes
description: Notes of people
schemas:
  Note: {type: object, properties: {text: {type: string, maxLength: 10}}, required: [text]}
resources:
  kv:
    notes:
      purpose: All notes
      schema: {schema: Note}
      keyspaces: {note: {key: "u.{user}.{number:uint(4)}", access: {of: {given: [user], range: number}}}}
"#;
    let contract = Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract;
    let store = Store::in_memory();
    assert_eq!(store.service(&contract).unwrap_err().kind(), ErrorKind::NotFound);
    let plan = store.contracts().plan(&contract, PlanOptions::default()).unwrap();
    assert_eq!(store.contracts().pending("").unwrap(), std::slice::from_ref(&plan));
    store.contracts().apply(&plan, ApplyOptions::by("ann")).unwrap();
    let service = store.service(&contract).unwrap();
    assert_eq!(service.aliases().collect::<Vec<_>>(), ["notes"]);
    let resource = service.kv("notes").unwrap();
    let notes = resource.keyspace::<Value>("note").unwrap();
    let mut watch = notes.watch().unwrap();
    assert_eq!(watch.next_timeout(Duration::ZERO).unwrap(), Waited::TimedOut);
    let key = |number: u64| ["ann".into(), number.into()];
    let first = notes.create(&key(1), &json!({"text": "milk"})).unwrap();
    let Waited::Event(KvEvent::Value { read, .. }) = watch.next_timeout(LONG).unwrap() else {
        panic!("one was put")
    };
    assert_eq!(read.revision(), first);
    assert!(matches!(notes.create(&key(1), &json!({"text": "tea"})), Err(KvWriteError::Conflict(_))));
    assert!(matches!(notes.put(&key(1), &json!({"text": "much too long"})), Err(KvError::Refused { .. })));
    let second = notes.update(&key(1), &json!({"text": "tea"}), first).unwrap();
    assert!(matches!(watch.next(), Some(Ok(KvEvent::Value { read, .. })) if read.revision() == second));
    let many = |batch: KvBatch| {
        let (tea, rum) = (json!({"text": "tea"}), json!({"text": "rum"}));
        batch.put(notes.as_async(), &key(2), &tea).put(notes.as_async(), &key(3), &rum)
    };
    resource.batch(many).unwrap();
    assert_eq!(notes.query("of", &["ann".into()]).unwrap().entries.len(), 3);
    assert_eq!(
        notes.scan(QueryOptions { limit: Some(2), ..QueryOptions::default() }).unwrap().entries.len(),
        2
    );
    notes.delete_seen(&key(1), second).unwrap();
    assert_eq!(notes.get(&key(1)).unwrap(), None);
    let read = resource.get(&notes.key(&key(2)).unwrap()).unwrap();
    assert!(matches!(read, Some(Read::Current(note)) if note.value == json!({"text": "tea"})));
}
