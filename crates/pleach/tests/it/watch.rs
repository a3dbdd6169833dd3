use pleach::{KeyFilter, Watch, WatchEvent, WatchOptions, WatchStart};

use crate::Given;

/// The next `count` events, in words.
async fn seen(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(match watch.next().await.unwrap().unwrap() {
            WatchEvent::Change(change) => format!("{} {}", change.entry.op, change.entry.key),
            WatchEvent::InitialDone { .. } => "done".into(),
        });
    }
    seen
}

pub(crate) async fn a_watch_delivers_what_passes_its_filter(given: Given) {
    let carts = given.bucket().await;
    carts.put("a.0", "before").await.unwrap();
    let mut watch = carts.watch("a.*").await.unwrap();
    carts.put("b.1", "").await.unwrap();
    carts.put("a.1", "").await.unwrap();
    carts.delete("a.0").await.unwrap();
    carts.purge("a.2").await.unwrap();
    assert_eq!(seen(&mut watch, 3).await, ["put a.1", "delete a.0", "purge a.2"]);
}

pub(crate) async fn a_watch_of_latest_values_marks_where_they_end(given: Given) {
    let carts = given.bucket().await;
    carts.put("a", "1").await.unwrap();
    carts.put("b", "1").await.unwrap();
    let filters = vec![KeyFilter::parse("a").unwrap(), KeyFilter::parse("c.>").unwrap()];
    let options = WatchOptions { filters, start: WatchStart::Latest };
    let mut watch = carts.watch_with(options.clone()).await.unwrap();
    carts.put("c.1", "1").await.unwrap();
    assert_eq!(seen(&mut watch, 3).await, ["put a", "done", "put c.1"]);

    let mut watch = carts.watch_with(options).await.unwrap();
    let mut keys = Vec::new();
    for _ in 0..2 {
        keys.push(watch.next_change().await.unwrap().unwrap().entry.key.to_string());
    }
    keys.sort();
    assert_eq!(keys, ["a", "c.1"]);
    carts.delete("a").await.unwrap();
    assert_eq!(watch.next_change().await.unwrap().unwrap().entry.op.to_string(), "delete");
}

pub(crate) async fn a_watch_from_a_revision_delivers_it_first(given: Given) {
    let carts = given.bucket().await;
    carts.put("a", "1").await.unwrap();
    let from = carts.put("b", "1").await.unwrap();
    carts.put("c", "1").await.unwrap();
    let options = WatchOptions { start: WatchStart::Revision(from), ..WatchOptions::default() };
    let mut watch = carts.watch_with(options).await.unwrap();
    assert_eq!(seen(&mut watch, 2).await, ["put b", "put c"]);
}

pub(crate) async fn a_watch_of_a_deleted_bucket_ends_with_an_error(given: Given) {
    let carts = given.bucket().await;
    let mut watch = carts.watch(">").await.unwrap();
    given.store.delete_bucket("carts").await.unwrap();
    assert_eq!(watch.next().await.unwrap_err().kind(), pleach::ErrorKind::NotFound);
    assert_eq!(watch.next().await.unwrap(), None);
    assert_eq!(watch.next_change().await.unwrap(), None);
}
