use std::time::Duration;

use pleach_contract::StoreKind;
use pleach_engine::{Engine, ErrorKind, Selection};
use serde_json::{Value, json};

use super::super::*;
use super::given::*;

/// That nothing at all was written.
async fn nothing_is_there(given: &Given) {
    assert_eq!(given.engine.count(&given.bucket(), Selection::all()).await.unwrap(), 0);
}

pub(super) async fn services_and_strangers_have_no_session(given: Given) {
    for caller in [Caller::Service("billing".into()), Caller::Stranger] {
        let error = caller.principal().unwrap_err();
        assert!(matches!(&error, StateError::NotAllowed { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::NotAllowed);
    }
    for caller in [Caller::User(String::new()), Caller::Device("x".repeat(OWNER_ID_BYTES_MAX + 1))] {
        assert!(matches!(caller.principal(), Err(StateError::InvalidPrincipal { .. })));
    }
    for text in ["", "ann", "service:billing", "user:", "User:ann"] {
        assert!(matches!(text.parse::<Principal>(), Err(StateError::InvalidPrincipal { .. })), "{text}");
    }
    let colon: Principal = "user:a:b".parse().unwrap();
    assert_eq!((colon.id(), colon.to_string().as_str()), ("a:b", "user:a:b"));
    nothing_is_there(&given).await;
}

pub(super) async fn an_undeclared_store_is_refused(given: Given) {
    let ann = given.ann();
    for name in ["missing", "", "drafts.", "Drafts", "drafts/a", "*", ">"] {
        let refused = |error: StateError| {
            assert!(matches!(&error, StateError::UndeclaredStore { .. }), "{name}: {error}");
            assert_eq!(error.kind(), ErrorKind::Invalid);
        };
        refused(ann.store(name).unwrap_err());
        refused(ann.value::<Value>(name).unwrap_err());
        refused(ann.map::<Value>(name).unwrap_err());
    }
    nothing_is_there(&given).await;
}

pub(super) async fn the_key_rule_of_each_kind_holds(given: Given) {
    let ann = given.ann();
    let (preferences, drafts) = (ann.store("preferences").unwrap(), ann.store("drafts").unwrap());
    let options = PutOptions::default();
    for key in ["a", ""] {
        let put = preferences.put(Some(key), json!({"theme": "dark"}), options).await;
        assert!(matches!(put, Err(StateError::KeyNotTaken { .. })));
        assert!(matches!(preferences.get(Some(key)).await, Err(StateError::KeyNotTaken { .. })));
        let delete = preferences.delete(Some(key), DeleteOptions::default()).await;
        assert!(matches!(delete, Err(StateError::KeyNotTaken { .. })));
    }
    for key in [None, Some("")] {
        assert!(matches!(drafts.put(key, draft("x"), options).await, Err(StateError::KeyMissing { .. })));
        assert!(matches!(drafts.get(key).await, Err(StateError::KeyMissing { .. })));
        let delete = drafts.delete(key, DeleteOptions::default()).await;
        assert!(matches!(delete, Err(StateError::KeyMissing { .. })));
    }
    let list = preferences.list("", ListOptions::first(1)).await;
    assert!(matches!(
        list,
        Err(StateError::WrongKind { found: StoreKind::Value, wanted: StoreKind::Map, .. })
    ));
    assert!(matches!(ann.map::<Value>("preferences"), Err(StateError::WrongKind { .. })));
    assert!(matches!(ann.value::<Value>("drafts"), Err(StateError::WrongKind { .. })));
    let view = ann.map::<Value>("drafts").unwrap().prefix("below");
    assert!(matches!(view.put("", &draft("x")).await, Err(StateError::KeyMissing { .. })));
    nothing_is_there(&given).await;
}

pub(super) async fn a_key_of_the_limit_is_taken_and_a_longer_one_refused(given: Given) {
    let drafts = given.drafts();
    let longest = "ü".repeat(KEY_BYTES_MAX / 2);
    let longer = format!("{longest}x");
    assert!(matches!(
        drafts.put(&longer, &draft("x")).await,
        Err(StateError::KeyTooLong { bytes: 513, limit: KEY_BYTES_MAX })
    ));
    assert!(matches!(drafts.get(&longer).await, Err(StateError::KeyTooLong { .. })));
    assert!(matches!(drafts.delete(&longer).await, Err(StateError::KeyTooLong { .. })));
    let view = drafts.prefix("p");
    assert!(matches!(view.put(&longest, &draft("x")).await, Err(StateError::KeyTooLong { bytes: 514, .. })));
    nothing_is_there(&given).await;
    let _ = applied(drafts.put(&longest, &draft("x")).await);
    assert_eq!(found(drafts.get(&longest).await).key, Some(longest));
}

pub(super) async fn a_value_of_the_limit_is_taken_and_a_larger_one_refused(given: Given) {
    let anything = given.ann().map::<Value>("anything").unwrap();
    let text = |bytes: usize| Value::String("x".repeat(bytes - 2));
    let larger = anything.put("a", &text(VALUE_BYTES_MAX + 1)).await;
    assert!(matches!(larger, Err(StateError::ValueTooLarge { bytes: 65_537, limit: VALUE_BYTES_MAX })));
    nothing_is_there(&given).await;
    let _ = applied(anything.put("a", &text(VALUE_BYTES_MAX)).await);
    assert_eq!(found(anything.get("a").await).value, text(VALUE_BYTES_MAX));
    // Bytes of compact JSON count, not those that were sent.
    let store = given.ann().store("anything").unwrap();
    let spaced = format!("[{}1]", " ".repeat(VALUE_BYTES_MAX));
    let entry = applied(store.put_json(Some("b"), spaced.as_bytes(), PutOptions::default()).await);
    assert_eq!(entry.value, json!([1]));
}

pub(super) async fn a_value_against_the_schema_is_refused_without_coercion(given: Given) {
    let drafts = given.drafts();
    for bad in [json!({"title": 123}), json!({}), json!("title"), json!(null), json!([draft("x")])] {
        let refused = drafts.put("a", &bad).await;
        assert!(matches!(refused, Err(StateError::InvalidValue { .. })), "{bad}");
    }
    nothing_is_there(&given).await;
}

pub(super) async fn a_value_must_be_json(given: Given) {
    let store = given.ann().store("anything").unwrap();
    for bad in [&b""[..], b"{", b"'x'", b"{\"a\":1,}", b"\xff", b"\"\\ud800\"", b"NaN", b"1 2", b"1e999"] {
        let refused = store.put_json(Some("a"), bad, PutOptions::default()).await;
        assert!(matches!(refused, Err(StateError::NotJson { .. })), "{}", String::from_utf8_lossy(bad));
    }
    nothing_is_there(&given).await;
}

pub(super) async fn checks_come_in_their_order(given: Given) {
    let ann = given.ann();
    let store = ann.store("drafts").unwrap();
    let (long_key, large) = ("k".repeat(513), Value::String("x".repeat(VALUE_BYTES_MAX)).to_string());
    let bad_ttl = PutOptions { ttl: Some(Duration::ZERO), ..PutOptions::default() };
    let refused =
        async |key: Option<&str>, json: &str| match store.put_json(key, json.as_bytes(), bad_ttl).await {
            Err(error) => error,
            Ok(outcome) => panic!("{outcome:?}"),
        };
    assert!(matches!(ann.store("missing").unwrap_err(), StateError::UndeclaredStore { .. }));
    assert!(matches!(refused(None, "{").await, StateError::NotJson { .. }));
    assert!(matches!(refused(None, &large).await, StateError::KeyMissing { .. }));
    assert!(matches!(refused(Some(&long_key), &large).await, StateError::KeyTooLong { .. }));
    assert!(matches!(refused(Some("k"), &large).await, StateError::ValueTooLarge { .. }));
    assert!(matches!(refused(Some("k"), "{}").await, StateError::InvalidValue { .. }));
    assert!(matches!(refused(Some("k"), "{\"title\": \"x\"}").await, StateError::TtlOutOfRange { .. }));
    nothing_is_there(&given).await;
}

pub(super) async fn a_revision_that_no_reply_gave_is_a_lost_race(given: Given) {
    let drafts = given.drafts();
    let entry = applied(drafts.put("a", &draft("one")).await);
    let malformed = [
        "",
        "r",
        "1",
        "r-1",
        "r+1",
        "r01",
        "R1",
        "r1 ",
        " r1",
        "null",
        "r18446744073709551616",
        "r1.0",
        "rü",
    ];
    for strange in malformed.into_iter().chain(["r0", "r18446744073709551615"]) {
        let revision: StateRevision = strange.parse().unwrap();
        let expect = expecting(Expect::Revision(revision));
        let outcome = drafts.put_with("a", &draft("two"), expect).await.unwrap();
        assert_eq!(outcome, PutOutcome::Present(entry.clone()), "{strange:?}");
        let outcome = drafts.put_with("b", &draft("two"), expect).await.unwrap();
        assert_eq!(outcome, PutOutcome::Absent, "{strange:?}");
        for key in ["a", "b"] {
            let outcome = drafts.delete_with(key, DeleteOptions { expect: Some(revision) }).await.unwrap();
            assert_eq!(outcome, DeleteOutcome::NotDeleted, "{strange:?}");
        }
    }
    assert_eq!(found(drafts.get("a").await), entry);
    // A watch has nowhere to begin.
    let watch = drafts.watch(WatchFrom::After("twelve".parse().unwrap())).await;
    assert!(matches!(watch.err(), Some(StateError::InvalidRevision)));
}

pub(super) async fn a_ttl_has_a_floor_and_a_ceiling(given: Given) {
    let drafts = given.drafts();
    let with = |ttl| PutOptions { ttl: Some(ttl), ..PutOptions::default() };
    let shortest = given.engine.capabilities().ttl_resolution;
    let shorter = shortest - Duration::from_micros(1);
    for bad in [Duration::ZERO, shorter, TTL_MAX + Duration::from_millis(1), Duration::MAX] {
        let refused = drafts.put_with("a", &draft("x"), with(bad)).await;
        assert!(matches!(refused, Err(StateError::TtlOutOfRange { max: TTL_MAX, .. })), "{bad:?}");
    }
    nothing_is_there(&given).await;
    for good in [shortest, TTL_MAX] {
        let _ = applied(drafts.put_with("a", &draft("x"), with(good)).await);
    }
}
