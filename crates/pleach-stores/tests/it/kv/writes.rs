use pleach_contract::Refused;
use pleach_engine::{ErrorKind, Expectation, Key};
use pleach_stores::{Envelope, InvalidKey, KvError, KvWriteError, Misfit, Read};
use serde_json::{Value, json};

use super::given::{Case, Event, Lock, MINUTE, case_key, event, on_every_engine, open};

#[test]
fn a_value_comes_back_as_it_was_put() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let revision = cases.put(&case_key(7), &open("a fence")).await.unwrap();
        let Some(Read::Current(case)) = cases.get(&case_key(7)).await.unwrap() else {
            panic!("it is current")
        };
        assert_eq!((case.value, case.revision), (open("a fence"), revision));
        assert_eq!(case.key.as_str(), "t.acme.case.000007");
        assert_eq!(cases.get(&case_key(8)).await.unwrap(), None);
    });
}

#[test]
fn a_value_that_the_contract_refuses_is_not_written() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let error = cases.put(&case_key(7), &open("")).await.unwrap_err();
        let KvError::Refused { key, misfit: Misfit::Value(Refused::Violations { violations, .. }), .. } =
            &error
        else {
            panic!("{error:?}")
        };
        assert_eq!((key.as_str(), &*violations[0].instance_path), ("t.acme.case.000007", "/title"));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(cases.create(&case_key(7), &open("")).await.is_err());
        let json = given.store().keyspace::<Value>("case").unwrap();
        assert!(json.put(&case_key(7), &json!({"status": "OPEN"})).await.is_err());
        assert_eq!(given.raw("t.acme.case.000007").await, None);
        json.put(&case_key(7), &json!({"status": "OPEN", "title": "x", "more": [1]})).await.unwrap();
    });
}

#[test]
fn an_envelope_travels_with_every_value() {
    on_every_engine(async |given| {
        let cases = given.cases();
        cases.put(&case_key(1), &open("one")).await.unwrap();
        cases.traced("req-17").unwrap().put(&case_key(2), &open("two")).await.unwrap();
        let store = given.store();
        store
            .traced("job 4")
            .unwrap()
            .batch()
            .put(&cases, &case_key(3), &open("three"))
            .commit()
            .await
            .unwrap();
        let envelope = |trace: Option<&str>| Envelope {
            version: "v2".into(),
            writer: store.digest().to_string(),
            trace: trace.map(str::to_owned),
        };
        for (number, trace) in [(1, None), (2, Some("req-17")), (3, Some("job 4"))] {
            let read = cases.get(&case_key(number)).await.unwrap().unwrap().current().unwrap();
            assert_eq!(read.envelope(), Some(envelope(trace)));
        }
        // The value itself is plain JSON, for whoever knows nothing of contracts.
        let raw = given.raw("t.acme.case.000001").await.unwrap();
        assert_eq!(raw.value, r#"{"status":"OPEN","title":"one"}"#);
        assert!(matches!(cases.traced("a\nb"), Err(KvError::Header(_))));
    });
}

#[test]
fn a_lost_race_is_an_outcome_of_its_own() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let first = cases.create(&case_key(7), &open("a")).await.unwrap();
        let lost = cases.create(&case_key(7), &open("b")).await.unwrap_err();
        assert!(
            matches!(&lost, KvWriteError::Conflict(lost) if lost.expected == Expectation::Absent),
            "{lost}"
        );
        let second = cases.update(&case_key(7), &open("c"), first).await.unwrap();
        let lost = cases.update(&case_key(7), &open("d"), first).await.unwrap_err();
        assert!(matches!(&lost, KvWriteError::Conflict(lost) if lost.actual == Some(second)), "{lost}");
        assert!(matches!(cases.delete_seen(&case_key(7), first).await, Err(KvWriteError::Conflict(_))));
        cases.delete_seen(&case_key(7), second).await.unwrap();
        assert_eq!(cases.get(&case_key(7)).await.unwrap(), None);
        cases.create(&case_key(7), &open("e")).await.unwrap();
        cases.delete(&case_key(7)).await.unwrap();
        assert_eq!(cases.get(&case_key(7)).await.unwrap(), None);
    });
}

#[test]
fn only_keys_of_the_keyspace_are_taken() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let (few, many) = (["acme".into()], ["acme".into(), 7_u64.into(), 8_u64.into()]);
        let refused = [
            cases.put(&few, &open("a")).await,
            cases.put(&many, &open("a")).await,
            // A value of another type than its segment.
            cases.put(&[7_u64.into(), 7_u64.into()], &open("a")).await,
            cases.put(&["acme".into(), "7".into()], &open("a")).await,
            // A value that would change the form of the key.
            cases.put(&["acme.case.000001".into(), 7_u64.into()], &open("a")).await,
            cases.put(&["*".into(), 7_u64.into()], &open("a")).await,
            cases.put(&["".into(), 7_u64.into()], &open("a")).await,
            cases.put(&["acme".into(), 1_000_000_u64.into()], &open("a")).await,
            // Text that is no key, no key of this keyspace, or reserved.
            cases.put("t.acme.case.7", &open("a")).await,
            cases.put("t.acme.case.000007.event.20260704T120000Z", &open("a")).await,
            cases.put("t..case.000007", &open("a")).await,
            cases.put("_kv.acme", &open("a")).await,
            cases.put(&Key::parse("t.acme.lock.x").unwrap(), &open("a")).await,
        ];
        for (index, refused) in refused.into_iter().enumerate() {
            let error = refused.unwrap_err();
            assert!(
                matches!(&error, KvError::Key { keyspace, .. } if keyspace == "case"),
                "{index}: {error:?}"
            );
            assert!(!error.help().is_empty());
        }
        assert!(cases.get("t.acme.case.7").await.is_err());
        assert!(cases.delete("t.acme.case.7").await.is_err());
        assert_eq!(given.engine.count(given.store().bucket(), Default::default()).await.unwrap(), 0);
    });
}

#[test]
fn names_that_the_contract_does_not_have_are_answered_with_those_it_has() {
    on_every_engine(async |given| {
        let error = given.service.kv("case").unwrap_err();
        assert_eq!(error.to_string(), "the contract has no resource `case`; it has cases, notes");
        assert!(given.service.find("case").is_none());
        let error = given.store().keyspace::<Case>("cases").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the resource `cases` has no keyspace `cases`; it has case, event, file, lock, visit"
        );
        assert!(matches!(given.store().entries::<Case>(), Err(KvError::HasKeyspaces { .. })));
        let key = Key::parse("t.acme.else.1").unwrap();
        assert!(matches!(given.store().get(&key).await, Err(KvError::NoKeyspace(_))));
    });
}

#[test]
fn a_resource_without_keyspaces_takes_any_key() {
    on_every_engine(async |given| {
        let notes = given.service.kv("notes").unwrap().entries::<Event>().unwrap();
        notes.put("any.key/at=all", &event("hello")).await.unwrap();
        let read = notes.get("any.key/at=all").await.unwrap().unwrap();
        assert_eq!(read.current().unwrap().value, event("hello"));
        let values = [pleach_contract::key::Value::Uint(1)];
        let error = notes.put(&values, &event("no")).await.unwrap_err();
        assert!(matches!(error, KvError::Key { source: InvalidKey::NoSegments, .. }), "{error:?}");
        let reserved = Key::parse_reserved("_kv.mine").unwrap();
        let error = notes.put(&reserved, &event("no")).await.unwrap_err();
        assert!(matches!(error, KvError::Key { source: InvalidKey::Reserved { .. }, .. }), "{error:?}");
    });
}

#[test]
fn the_keyspace_of_a_key_takes_json() {
    on_every_engine(async |given| {
        let store = given.store();
        let key = Key::parse("t.acme.case.000007").unwrap();
        let value = json!({"status": "OPEN", "title": "a fence"});
        store.keyspace_of(&key).unwrap().put(&key, &value).await.unwrap();
        let read = store.get(&key).await.unwrap().unwrap();
        assert_eq!(read.current().unwrap().value, value);
    });
}

#[test]
fn values_of_a_keyspace_live_as_long_as_it_says() {
    on_every_engine(async |given| {
        let locks = given.store().keyspace::<Lock>("lock").unwrap();
        let key = ["acme".into(), "door".into()];
        locks.create(&key, &Lock { holder: "ann".into() }).await.unwrap();
        given.clock.advance(MINUTE / 2);
        assert!(locks.create(&key, &Lock { holder: "bob".into() }).await.is_err());
        given.clock.advance(MINUTE / 2);
        assert_eq!(locks.get(&key).await.unwrap(), None);
        locks.create(&key, &Lock { holder: "bob".into() }).await.unwrap();
    });
}

#[test]
fn everything_can_be_awaited_on_any_runtime() {
    fn can_be_sent<T: Send>(_: T) {}
    on_every_engine(async |given| {
        let (store, cases) = (given.store(), given.cases());
        let (key, case) = (case_key(7), open("a"));
        can_be_sent(cases.put(&key, &case));
        can_be_sent(cases.update(&key, &case, Default::default()));
        can_be_sent(cases.get(&key));
        can_be_sent(cases.get("t.acme.case.000007"));
        can_be_sent(cases.delete(&key));
        can_be_sent(cases.query("of", &[]));
        can_be_sent(cases.scan(Default::default()));
        can_be_sent(cases.upgrade(&key, |_, _| Err("no".into())));
        can_be_sent(cases.watch());
        can_be_sent(cases.watch().await.unwrap());
        can_be_sent(store.batch().put(&cases, &key, &case).commit());
        can_be_sent(store.retain(None));
    });
}
