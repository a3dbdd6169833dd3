use pleach_engine::{EngineError, Op, WatchStart};
use pleach_stores::{KvError, KvEvent, KvWatchOptions, Read};

use super::given::{case_key, days_ago, event, event_key, on_every_engine, open};

#[test]
fn a_watch_delivers_typed_changes_of_its_keyspace_only() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let mut watch = cases.watch().await.unwrap();
        given.events().put(&event_key(7, days_ago(0)), &event("opened")).await.unwrap();
        let revision = cases.put(&case_key(7), &open("a fence")).await.unwrap();
        given.put_first(8, "OPEN").await;
        cases.delete(&case_key(7)).await.unwrap();
        let Some(KvEvent::Value { read: Read::Current(case), .. }) = watch.next().await.unwrap() else {
            panic!("a value was put")
        };
        assert_eq!((case.value, case.revision), (open("a fence"), revision));
        let old = watch.next().await.unwrap();
        assert!(matches!(&old, Some(KvEvent::Value { read: Read::MigrationRequired(_), .. })), "{old:?}");
        let gone = watch.next().await.unwrap();
        assert!(
            matches!(&gone, Some(KvEvent::Gone { key, op: Op::Delete, .. }) if key.as_str() == "t.acme.case.000007")
        );
    });
}

#[test]
fn a_watch_goes_on_after_a_bad_value() {
    on_every_engine(async |given| {
        let mut watch = given.cases().watch().await.unwrap();
        given.put_raw("t.acme.case.000007", "nonsense", Some("v2")).await;
        given.cases().put(&case_key(7), &open("mended")).await.unwrap();
        let error = watch.next().await.unwrap_err();
        assert!(matches!(&error, KvError::Stored { key, .. } if key.as_str() == "t.acme.case.000007"));
        assert!(matches!(watch.next().await.unwrap(), Some(KvEvent::Value { .. })));
        given.engine.delete_bucket(given.store().bucket()).await.unwrap();
        let end = watch.next().await.unwrap_err();
        assert!(matches!(end, KvError::Engine(EngineError::BucketNotFound { .. })), "{end:?}");
        assert_eq!(watch.next().await.unwrap(), None);
    });
}

#[test]
fn a_watch_can_begin_with_what_is_there_and_be_narrowed_to_some_segments() {
    on_every_engine(async |given| {
        let cases = given.cases();
        cases.put(&case_key(1), &open("ours")).await.unwrap();
        cases.put(&["other".into(), 2_u64.into()], &open("theirs")).await.unwrap();
        let options = KvWatchOptions { given: vec![("tenant", "other".into())], start: WatchStart::Latest };
        let mut watch = cases.watch_with(options).await.unwrap();
        let Some(KvEvent::Value { read, .. }) = watch.next().await.unwrap() else {
            panic!("a value is there")
        };
        assert_eq!(read.current().unwrap().value, open("theirs"));
        assert!(matches!(watch.next().await.unwrap(), Some(KvEvent::InitialDone { .. })));
        let options = KvWatchOptions { given: vec![("tenat", "other".into())], ..Default::default() };
        let error = cases.watch_with(options).await.unwrap_err();
        assert_eq!(error.to_string(), "the keys of `case` have no segment `tenat`; they have tenant, case");
        let options = KvWatchOptions { given: vec![("tenant", "*".into())], ..Default::default() };
        assert!(matches!(cases.watch_with(options).await, Err(KvError::Key { .. })));
    });
}
