use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::super::*;
use super::given::*;

/// The next event as text: what happened, and to which key.
async fn next(watch: &mut StateWatch<Value>) -> String {
    match watch.next().await.expect("it goes on").unwrap() {
        StateEvent::Put(cell) => format!("put {}", cell.key().unwrap_or("-")),
        StateEvent::Deleted { key, .. } => format!("deleted {}", key.as_deref().unwrap_or("-")),
        StateEvent::Expired { key, .. } => format!("expired {}", key.as_deref().unwrap_or("-")),
        StateEvent::Ready => "ready".into(),
    }
}

pub(super) async fn a_watch_sees_its_own_store_only(given: Given) {
    let (ann, bob) = (given.ann(), given.session("user:bob", &first()));
    let device = given.session("device:ann", &first());
    let other = given.session(
        "user:ann",
        &contract("acme.other@v1", json!({"drafts": {"kind": "map", "schema": {"schema": "Draft"}}})),
    );
    let drafts = ann.map::<Value>("drafts").unwrap();
    let mut watch = drafts.watch(WatchFrom::Now).await.unwrap();
    let mut preferences = ann.value::<Value>("preferences").unwrap().watch(WatchFrom::Now).await.unwrap();
    for session in [&bob, &device, &other] {
        let _ = applied(session.map::<Value>("drafts").unwrap().put("a", &draft("theirs")).await);
    }
    let _ = applied(bob.value::<Value>("preferences").unwrap().put(&json!({"theme": "x"})).await);
    let _ = applied(ann.map::<Value>("anything").unwrap().put("a", &json!(1)).await);
    let _ = applied(drafts.put("b", &draft("mine")).await);
    let _ = applied(ann.value::<Value>("preferences").unwrap().put(&json!({"theme": "y"})).await);
    let _ = drafts.delete("b").await.unwrap();
    assert_eq!((next(&mut watch).await, next(&mut watch).await), ("put b".into(), "deleted b".into()));
    assert_eq!(next(&mut preferences).await, "put -");
    assert!(watch.next().now_or_never().is_none() && preferences.next().now_or_never().is_none());
}

pub(super) async fn a_watch_begins_with_what_is_there(given: Given) {
    let drafts = given.drafts();
    let _ = applied(drafts.put("a", &draft("one")).await);
    given.damage("user:ann", "drafts", Some("b"), "{", &[]);
    let mut watch = drafts.watch(WatchFrom::Latest).await.unwrap();
    let mut seen = vec![next(&mut watch).await, next(&mut watch).await];
    seen.sort();
    assert_eq!(seen, ["put a", "put b"]);
    assert_eq!(next(&mut watch).await, "ready");
    let entry = applied(drafts.put("a", &draft("two")).await);
    let Some(Ok(StateEvent::Put(Cell::Entry(told)))) = watch.next().await else { panic!("it was put") };
    assert_eq!(told, entry);
}

pub(super) async fn a_watch_goes_on_after_a_revision(given: Given) {
    let drafts = given.drafts();
    let first = applied(drafts.put("a", &draft("one")).await);
    let _ = applied(drafts.put("b", &draft("two")).await);
    let _ = drafts.delete("a").await.unwrap();
    let mut watch = drafts.watch(WatchFrom::After(first.revision)).await.unwrap();
    assert_eq!((next(&mut watch).await, next(&mut watch).await), ("put b".into(), "deleted a".into()));
}

pub(super) async fn a_view_watches_what_is_below_it(given: Given) {
    let drafts = given.drafts();
    let view = drafts.prefix("in");
    let mut watch = view.watch(WatchFrom::Latest).await.unwrap();
    assert_eq!(next(&mut watch).await, "ready");
    for key in ["in", "in/a", "inn/a", "out/in/a"] {
        let _ = applied(drafts.put(key, &draft("x")).await);
    }
    let _ = drafts.delete("in/a").await.unwrap();
    assert_eq!((next(&mut watch).await, next(&mut watch).await), ("put a".into(), "deleted a".into()));
}

pub(super) async fn expiry_is_seen_by_a_watch(given: Given) {
    let drafts = given.drafts();
    let mut watch = drafts.watch(WatchFrom::Now).await.unwrap();
    let _ = applied(drafts.put_with("a", &draft("x"), living(1000)).await);
    assert_eq!(next(&mut watch).await, "put a");
    given.advance(1000);
    assert_eq!(next(&mut watch).await, "expired a");
}
