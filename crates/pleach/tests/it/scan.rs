use std::pin::Pin;

use futures_core::Stream;
use pleach::{Bucket, Direction, ErrorKind, KeysOptions, PageToken, ScanOptions, ScanQuery, Selection};

use crate::Given;
use crate::given::shown;

/// More entries than a scan reads at a time.
const MANY: usize = 1_234;

async fn many(given: &Given) -> Bucket {
    let carts = given.bucket().await;
    for start in [0, 1000] {
        let mut batch = carts.batch();
        for number in start..MANY.min(start + 1000) {
            batch = batch.put(format!("user.{number:05}"), number.to_string());
        }
        batch.commit().await.unwrap();
    }
    carts
}

pub(crate) async fn a_scan_reads_every_page_of_one_snapshot(given: Given) {
    let carts = many(&given).await;
    let mut scan = carts.scan("user.*").unwrap();
    let mut numbers = Vec::new();
    while let Some(entry) = scan.next().await.unwrap() {
        if numbers.is_empty() {
            // What happens now is not in the snapshot.
            carts.delete("user.00001").await.unwrap();
            carts.put("user.99999", "late").await.unwrap();
        }
        numbers.push(String::from_utf8(entry.value.to_vec()).unwrap().parse::<usize>().unwrap());
    }
    assert_eq!(numbers, (0..MANY).collect::<Vec<_>>());
    assert!(scan.revision().is_some());
    assert_eq!(scan.next().await.unwrap(), None);
}

pub(crate) async fn a_scan_honours_its_options(given: Given) {
    let carts = many(&given).await;
    let options = ScanOptions {
        selection: Selection::prefix("user.01"),
        direction: Direction::Backward,
        limit: Some(2),
        keys_only: false,
    };
    let entries = carts.scan_with(options.clone()).collect().await.unwrap();
    assert_eq!(shown(&entries), ["user.01233=1233", "user.01232=1232"]);
    let entries =
        carts.scan_with(ScanOptions { keys_only: true, ..options.clone() }).collect().await.unwrap();
    assert_eq!(shown(&entries), ["user.01233=", "user.01232="]);
    let count = async |limit| {
        carts.scan_with(ScanOptions { limit, ..options.clone() }).collect().await.unwrap().len()
    };
    assert_eq!(count(Some(0)).await, 0);
    assert_eq!(count(Some(10_000)).await, 234);
    assert_eq!(count(None).await, 234);
    let over_a_page = ScanOptions { limit: Some(600), ..ScanOptions::default() };
    assert_eq!(carts.scan_with(over_a_page).collect().await.unwrap().len(), 600);
}

pub(crate) async fn keys_are_listed_in_order(given: Given) {
    let carts = many(&given).await;
    let keys = carts.keys(">").unwrap().collect().await.unwrap();
    assert_eq!(keys.len(), MANY);
    assert!(keys.is_sorted());
    let options = KeysOptions { direction: Direction::Backward, limit: Some(1), ..KeysOptions::default() };
    let mut keys = carts.keys_with(options);
    assert_eq!(keys.next().await.unwrap().unwrap().as_str(), "user.01233");
    assert_eq!(keys.next().await.unwrap(), None);
}

pub(crate) async fn pages_are_turned_by_hand(given: Given) {
    let carts = many(&given).await;
    let mut query = ScanQuery { limit: 1000, keys_only: true, ..ScanQuery::default() };
    let first = carts.scan_page(query.clone()).await.unwrap();
    query.page = Some(first.next.unwrap().to_string().parse::<PageToken>().unwrap());
    let second = carts.scan_page(query).await.unwrap();
    assert_eq!((first.entries.len(), second.entries.len()), (1000, 234));
    assert_eq!(second.revision, first.revision);
    assert_eq!(second.next, None);
}

pub(crate) async fn an_error_ends_a_scan(given: Given) {
    let carts = many(&given).await;
    let mut scan = carts.scan(">").unwrap();
    scan.next().await.unwrap();
    given.store.delete_bucket("carts").await.unwrap();
    let error = loop {
        match scan.next().await {
            Ok(entry) => assert!(entry.is_some(), "it ended as if it had read everything"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(scan.next().await.unwrap(), None);
}

pub(crate) async fn a_scan_is_a_stream(given: Given) {
    let carts = given.bucket().await;
    carts.put("a", "1").await.unwrap();
    async fn first<S: Stream + Unpin>(mut stream: S) -> Option<S::Item> {
        std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await
    }
    assert_eq!(first(carts.scan(">").unwrap()).await.unwrap().unwrap().key.as_str(), "a");
    assert_eq!(first(carts.keys(">").unwrap()).await.unwrap().unwrap().as_str(), "a");
    assert!(first(carts.keys("b").unwrap()).await.is_none());
}
