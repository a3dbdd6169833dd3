use std::num::NonZeroU8;

use pleach::{Bytes, Key, KeyFilter, KeyRange, Op, Selection};

use crate::Given;
use crate::given::shown;

pub(crate) async fn a_put_is_read_back_with_its_revision(given: Given) {
    let carts = given.bucket().await;
    assert_eq!(carts.get("user.42").await.unwrap(), None);
    let first = carts.put("user.42", "3 apples").await.unwrap();
    let second = carts.put("user.42", "4 apples").await.unwrap();
    let entry = carts.get("user.42").await.unwrap().unwrap();
    assert!(first < second);
    assert_eq!((entry.revision, entry.time), (second, given.store.now()));
    assert_eq!(shown(&[entry]), ["user.42=4 apples"]);
}

pub(crate) async fn keys_and_values_come_in_many_forms(given: Given) {
    let carts = given.bucket().await;
    let key = Key::parse("key").unwrap();
    let text = String::from("text");
    carts.put(&key, "str").await.unwrap();
    carts.put(key.clone(), &text).await.unwrap();
    carts.put("key", text.clone()).await.unwrap();
    carts.put(&text, b"array").await.unwrap();
    carts.put(text.clone(), [1, 2]).await.unwrap();
    carts.put(text.as_str(), &b"slice"[..]).await.unwrap();
    carts.put("key", vec![0xff]).await.unwrap();
    carts.put("key", &vec![0xff]).await.unwrap();
    carts.put("key", Bytes::from_static(b"bytes")).await.unwrap();
    carts.put("key", &Bytes::from_static(b"the end")).await.unwrap();
    assert_eq!(shown(&carts.scan(">").unwrap().collect().await.unwrap()), ["key=the end", "text=slice"]);
}

pub(crate) async fn old_records_are_read_by_revision(given: Given) {
    let carts = given.bucket().await;
    let first = carts.put("a", "1").await.unwrap();
    let second = carts.put("a", "2").await.unwrap();
    let deleted = carts.delete("a").await.unwrap();
    let at = async |revision| carts.get_at("a", revision).await.map(|found| found.map(|entry| entry.value));
    assert_eq!(at(first).await.unwrap().unwrap(), "1");
    assert_eq!(at(second).await.unwrap().unwrap(), "2");
    assert_eq!(at(deleted).await.unwrap(), None);
    assert!(at(deleted.plus(100)).await.is_err());
}

pub(crate) async fn history_shows_values_and_markers(given: Given) {
    let carts = given.bucket().await;
    carts.put("a", "1").await.unwrap();
    carts.delete("a").await.unwrap();
    carts.put("a", "2").await.unwrap();
    let ops =
        async || -> Vec<Op> { carts.history("a").await.unwrap().iter().map(|record| record.op).collect() };
    assert_eq!(ops().await, [Op::Put, Op::Delete, Op::Put]);
    carts.purge("a").await.unwrap();
    assert_eq!(ops().await, [Op::Purge]);
}

pub(crate) async fn compacting_a_key_forgets_its_oldest_records(given: Given) {
    let carts = given.bucket().await;
    for value in ["1", "2", "3"] {
        carts.put("a", value).await.unwrap();
    }
    carts.compact_key("a", NonZeroU8::new(2).unwrap()).await.unwrap();
    assert_eq!(shown(&carts.history("a").await.unwrap()), ["a=2", "a=3"]);
}

pub(crate) async fn the_status_counts_live_entries(given: Given) {
    let carts = given.bucket().await;
    carts.put("a", "1").await.unwrap();
    carts.put("b", "1").await.unwrap();
    let last = carts.delete("b").await.unwrap();
    let status = carts.status().await.unwrap();
    assert_eq!((status.entries, status.info.last_revision), (1, last));
    assert_eq!(status.info, carts.info().await.unwrap());
    assert_eq!(status.info.config.history.get(), 5);
}

pub(crate) async fn counts_take_any_selection(given: Given) {
    let carts = given.bucket().await;
    for key in ["a", "b.1", "b.2.x", "bb"] {
        carts.put(key, "1").await.unwrap();
    }
    assert_eq!(carts.count(">").await.unwrap(), 4);
    assert_eq!(carts.count("b.*").await.unwrap(), 1);
    assert_eq!(carts.count(KeyFilter::parse("b.>").unwrap()).await.unwrap(), 2);
    assert_eq!(carts.count(Selection::prefix("b")).await.unwrap(), 3);
    assert_eq!(carts.count(KeyRange::between("b.1", "bb")).await.unwrap(), 2);
    assert_eq!(carts.count(&KeyRange::between("z", "a")).await.unwrap(), 0);
    let key = Key::parse("b.1").unwrap();
    assert_eq!((carts.count(&key).await.unwrap(), carts.count(key).await.unwrap()), (1, 1));
}

/// Work on a bucket can be handed to a runtime with several threads.
#[test]
fn futures_and_streams_are_send() {
    fn check<T: Send>(value: T) -> T {
        value
    }
    crate::run(async {
        let carts = Given::in_memory().bucket().await.cached().await.unwrap();
        check(carts.ready()).await.unwrap();
        check(carts.put("a", "1")).await.unwrap();
        check(carts.get("a")).await.unwrap();
        check(carts.count(">")).await.unwrap();
        check(check(carts.scan(">").unwrap()).collect()).await.unwrap();
        check(check(carts.batch()).put("b", "1").commit()).await.unwrap();
        check(check(carts.watch("a")).await.unwrap());
        let mut consumer = check(check(carts.consume("mails")).await.unwrap());
        let change = check(consumer.next()).await.unwrap().unwrap();
        check(consumer.ack(&change)).await.unwrap();
        check(carts.consumers()).await.unwrap();
        let typed = check(carts.typed::<u32>());
        check(typed.get("a")).await.unwrap();
        check(check(typed.scan(">").unwrap()).collect()).await.unwrap();
    });
}
