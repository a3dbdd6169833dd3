use pleach::codec::{Base64Url, BytesCodec as _, Escape, Json, Lz4, Path, Text};
use pleach::{Error, ErrorKind, Op, TypedBucket, TypedEvent, WriteError};
use serde::{Deserialize, Serialize};

use crate::Given;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cart {
    apples: u32,
}

pub(crate) async fn typed_values_survive(given: Given) {
    let bucket = given.bucket().await;
    let carts = bucket.typed::<Cart>();
    let revision = carts.put("user.42", &Cart { apples: 3 }).await.unwrap();
    let entry = carts.get("user.42").await.unwrap().unwrap();
    assert_eq!((entry.key.as_str(), entry.value, entry.revision), ("user.42", Cart { apples: 3 }, revision));
    assert_eq!(bucket.get("user.42").await.unwrap().unwrap().value, r#"{"apples":3}"#);
    assert_eq!(carts.get_at("user.42", revision).await.unwrap().unwrap().value.apples, 3);

    let packed: TypedBucket<[u8], String> = bucket.with_codecs(Base64Url, Text.then(Lz4::default()));
    let text = "so it goes ".repeat(50);
    packed.put(b"\x00\xff", &text).await.unwrap();
    assert_eq!(packed.get(b"\x00\xff").await.unwrap().unwrap().value, text);
}

pub(crate) async fn typed_keys_survive_in_order(given: Given) {
    let names: TypedBucket<str, u32> = given.bucket().await.with_codecs(Escape, Json);
    let mut sorted = ["", "a b", "a.b", "a..b", "ab", "z", "Ä", "日本"];
    sorted.sort();
    for (number, name) in (0..).zip(sorted) {
        names.put(name, &number).await.unwrap();
    }
    let entries = names.scan(">").unwrap().collect().await.unwrap();
    let found: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.value)).collect();
    assert_eq!(found, sorted.into_iter().zip(0..).collect::<Vec<_>>());
    let mut below = names.scan(Escape.prefix("a.")).unwrap();
    assert_eq!(below.next().await.unwrap().unwrap().key, "a..b");

    let files: TypedBucket<str, u32> = names.bucket().with_codecs(Path, Json);
    files.put("/srv/www data/", &1).await.unwrap();
    let files = files.scan("srv.>").unwrap().collect().await.unwrap();
    assert_eq!(files[0].key, "/srv/www data/");
}

pub(crate) async fn a_bad_value_is_an_error_that_names_it(given: Given) {
    let bucket = given.bucket().await;
    let carts = bucket.typed::<Cart>();
    carts.put("a", &Cart { apples: 1 }).await.unwrap();
    let bad = bucket.put("b", "no cart").await.unwrap();
    carts.put("c", &Cart { apples: 3 }).await.unwrap();

    let error = carts.get("b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.to_string(), format!("the value of carts/b at revision {bad} cannot be decoded"));
    let Error::DecodeValue { bucket: name, key, revision, .. } = error else { panic!("{error}") };
    assert_eq!((name.as_str(), key.as_str(), revision), ("carts", "b", bad));
    assert!(carts.history("b").await.is_err());

    // A scan reports it in its place, and goes on.
    let mut scan = carts.scan(">").unwrap();
    assert_eq!(scan.next().await.unwrap().unwrap().key, "a");
    assert!(matches!(scan.next().await, Err(Error::DecodeValue { .. })));
    assert_eq!(scan.next().await.unwrap().unwrap().key, "c");
    assert_eq!(scan.next().await.unwrap(), None);
    assert!(carts.scan(">").unwrap().collect().await.is_err());
}

pub(crate) async fn a_bad_key_is_an_error_that_names_it(given: Given) {
    let bucket = given.bucket().await;
    let names: TypedBucket<str, u32> = bucket.with_codecs(Escape, Json);
    let bad = bucket.put("a-b", "1").await.unwrap();
    let error = names.scan(">").unwrap().next().await.unwrap_err();
    let Error::DecodeKey { key, revision, .. } = error else { panic!("{error}") };
    assert_eq!((key.as_str(), revision), ("a-b", bad));
}

pub(crate) async fn what_cannot_be_encoded_is_not_written(given: Given) {
    let bucket = given.bucket().await;
    let small = Lz4 { decoded_bytes_max: 3 };
    let texts: TypedBucket<str, String> = bucket.with_codecs(Escape, Text.then(small));
    let error = texts.put("a", &"four".into()).await.unwrap_err();
    assert!(matches!(&error, Error::EncodeValue { key, .. } if key.as_str() == "a"), "{error}");
    // What was written under another limit is no less readable.
    let written = Lz4::default().encode(&"four".into()).unwrap();
    bucket.put("b", written).await.unwrap();
    let error = texts.get("b").await.unwrap_err();
    assert_eq!(error.help(), "raise the codec's limit if the value is to be trusted");
    bucket.purge("b").await.unwrap();
    let long = " ".repeat(1000);
    let error = texts.create(&long, &"one".into()).await.unwrap_err();
    assert!(matches!(error, WriteError::Failed(Error::EncodeKey { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(bucket.count(">").await.unwrap(), 0);
}

pub(crate) async fn typed_history_and_watch_show_markers(given: Given) {
    let bucket = given.bucket().await;
    let carts = bucket.typed::<Cart>();
    let mut watch = carts.watch("a").await.unwrap();
    carts.put("a", &Cart { apples: 1 }).await.unwrap();
    carts.delete("a").await.unwrap();
    bucket.put("a", "no cart").await.unwrap();
    carts.purge("a").await.unwrap();

    let mut seen = Vec::new();
    for _ in 0..4 {
        match watch.next().await {
            Ok(Some(TypedEvent::Change { entry, .. })) => {
                seen.push((entry.op, entry.value.map(|cart| cart.apples)))
            }
            Ok(other) => panic!("{other:?}"),
            Err(Error::DecodeValue { .. }) => seen.push((Op::Put, None)),
            Err(error) => panic!("{error}"),
        }
    }
    let expected = [(Op::Put, Some(1)), (Op::Delete, None), (Op::Put, None), (Op::Purge, None)];
    assert_eq!(seen, expected);
    let history = carts.history("a").await.unwrap();
    assert_eq!(
        history.iter().map(|record| (record.op, &record.value)).collect::<Vec<_>>(),
        [(Op::Purge, &None)]
    );
}

pub(crate) async fn a_typed_update_can_lose_its_race(given: Given) {
    let carts = given.bucket().await.typed::<Cart>();
    let seen = carts.create("a", &Cart { apples: 1 }).await.unwrap();
    let newer = carts.update("a", &Cart { apples: 2 }, seen).await.unwrap();
    let lost = carts.update("a", &Cart { apples: 3 }, seen).await;
    assert!(matches!(lost, Err(WriteError::Conflict(lost)) if lost.actual == Some(newer)));
    assert!(matches!(carts.create("a", &Cart { apples: 4 }).await, Err(WriteError::Conflict(_))));
    assert_eq!(carts.get("a").await.unwrap().unwrap().value.apples, 2);
}

pub(crate) async fn typed_operations_go_into_a_batch(given: Given) {
    let carts = given.bucket().await.typed::<Cart>();
    let (key, value) = carts.stored("a", &Cart { apples: 1 }).unwrap();
    let other = carts.stored_key("b").unwrap();
    carts.bucket().batch().put(key, value).delete(other).commit().await.unwrap();
    assert_eq!(carts.get("a").await.unwrap().unwrap().value, Cart { apples: 1 });
}
