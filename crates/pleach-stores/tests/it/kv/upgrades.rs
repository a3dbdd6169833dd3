use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pleach_engine::{Batch, ErrorKind, Expiry, Headers, Operation};
use pleach_stores::{BoxError, Envelope, KvError, QueryOptions, Read, UPGRADE_TRIES_MAX};
use serde_json::Value;

use super::given::{Case, FirstCase, MINUTE, case_key, on_every_engine, open};

fn titled(value: Value, version: &str) -> Result<Case, BoxError> {
    assert_eq!(version, "v1");
    let FirstCase { status } = serde_json::from_value(value)?;
    Ok(Case { status, title: "untitled".into() })
}

fn untitled() -> Case {
    open("untitled")
}

#[test]
fn an_upgrade_replaces_the_old_value() {
    on_every_engine(async |given| {
        given.put_first(7, "OPEN").await;
        let cases = given.cases();
        let upgraded = cases.upgrade(&case_key(7), titled).await.unwrap().unwrap();
        let Some(Read::Current(read)) = cases.get(&case_key(7)).await.unwrap() else {
            panic!("it is current")
        };
        assert_eq!((&read, &read.value), (&upgraded, &untitled()));
        assert_eq!(read.envelope().unwrap().version, "v2");
        // What is current already is left as it is, and what is absent stays so.
        let again = cases.upgrade(&case_key(7), |_, _| unreachable!()).await.unwrap().unwrap();
        assert_eq!(again, read);
        assert_eq!(cases.upgrade(&case_key(8), |_, _| unreachable!()).await.unwrap(), None);
    });
}

#[test]
fn an_upgrade_never_overwrites_a_put() {
    on_every_engine(async |given| {
        given.put_first(7, "OPEN").await;
        let cases = given.cases();
        let faster = |value: Value, version: &str| {
            pollster::block_on(cases.put(&case_key(7), &open("faster"))).unwrap();
            titled(value, version)
        };
        let there = cases.upgrade(&case_key(7), faster).await.unwrap().unwrap();
        assert_eq!(there.value, open("faster"));
        given.put_first(8, "OPEN").await;
        let deleted = |value: Value, version: &str| {
            pollster::block_on(cases.delete(&case_key(8))).unwrap();
            titled(value, version)
        };
        assert_eq!(cases.upgrade(&case_key(8), deleted).await.unwrap(), None);
        assert_eq!(cases.get(&case_key(8)).await.unwrap(), None);
    });
}

#[test]
fn an_upgrade_tries_again_and_gives_up_in_the_end() {
    on_every_engine(async |given| {
        given.put_first(7, "OPEN").await;
        let cases = given.cases();
        let tries = AtomicU64::new(0);
        let closed_once = |value: Value, version: &str| {
            if tries.fetch_add(1, Ordering::Relaxed) == 0 {
                pollster::block_on(given.put_first(7, "CLOSED"));
            }
            titled(value, version)
        };
        let there = cases.upgrade(&case_key(7), closed_once).await.unwrap().unwrap();
        assert_eq!(there.value, Case { status: "CLOSED".into(), title: "untitled".into() });
        given.put_first(7, "OPEN").await;
        let always = |value: Value, version: &str| {
            pollster::block_on(given.put_first(7, "OPEN"));
            titled(value, version)
        };
        let error = cases.upgrade(&case_key(7), always).await.unwrap_err();
        assert!(matches!(error, KvError::Contended { tries: UPGRADE_TRIES_MAX, .. }), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    });
}

#[test]
fn a_failed_upgrade_names_the_entry_and_changes_nothing() {
    on_every_engine(async |given| {
        given.put_first(7, "OPEN").await;
        let before = given.raw("t.acme.case.000007").await;
        let error = given.cases().upgrade(&case_key(7), |_, _| Err("no title".into())).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("t.acme.case.000007") && text.contains("version `v1`"), "{text}");
        // What comes of it must be what the contract allows.
        let error = given.cases().upgrade(&case_key(7), |_, _| Ok(open(""))).await.unwrap_err();
        assert!(matches!(error, KvError::Refused { .. }), "{error:?}");
        assert_eq!(given.raw("t.acme.case.000007").await, before);
    });
}

#[test]
fn old_values_are_upgraded_when_they_are_read() {
    on_every_engine(async |given| {
        for number in 1..=4 {
            given.put_first(number, "OPEN").await;
        }
        let cases = given.cases().migrate_lazily(titled);
        let Some(Read::Current(case)) = cases.get(&case_key(1)).await.unwrap() else {
            panic!("it is current")
        };
        assert_eq!(case.value, untitled());
        let page = cases.query("of", &["acme".into()]).await.unwrap();
        let read = page.entries.into_iter().map(|entry| entry.unwrap().current().unwrap().value);
        assert_eq!(read.collect::<Vec<_>>(), vec![untitled(); 4]);
        // They stay so for those who do not upgrade.
        let page = given.cases().scan(QueryOptions::default()).await.unwrap();
        assert!(page.entries.iter().all(|entry| matches!(entry, Ok(Read::Current(_)))));
        given.put_first(5, "OPEN").await;
        let failing = given.cases().migrate_lazily(|_, _| Err("no title".into()));
        assert!(matches!(failing.get(&case_key(5)).await, Err(KvError::Upgrade { .. })));
        let page = failing.query("of", &["acme".into()]).await.unwrap();
        assert_eq!(page.entries.iter().filter(|entry| entry.is_err()).count(), 1);
    });
}

#[test]
fn an_upgraded_value_lives_no_longer_than_the_old_one() {
    on_every_engine(async |given| {
        let mut headers = Headers::new();
        headers.set(Envelope::VERSION, "v1").unwrap();
        let operation = Operation::put("t.acme.case.000007".parse().unwrap(), r#"{"status":"OPEN"}"#)
            .with_headers(headers)
            .expiring(Expiry::After(MINUTE));
        given.engine.commit(given.store().bucket(), Batch::from(operation)).await.unwrap();
        given.clock.advance(MINUTE / 2);
        let upgraded = given.cases().upgrade(&case_key(7), titled).await.unwrap().unwrap();
        let Some(Read::Current(read)) = given.cases().get(&case_key(7)).await.unwrap() else {
            panic!("it is there")
        };
        assert_eq!(read.expires, upgraded.expires);
        given.clock.advance(MINUTE / 2);
        assert_eq!(given.cases().get(&case_key(7)).await.unwrap(), None);
    });
}

#[test]
fn many_who_upgrade_and_put_at_once_lose_no_put() {
    const KEYS: u64 = 20;
    on_every_engine(async |given| {
        for number in 0..KEYS {
            given.put_first(number, "OPEN").await;
        }
        let (reader, writer) = (given.cases().migrate_lazily(titled), given.cases());
        let put = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for number in 0..KEYS {
                        let read = pollster::block_on(reader.get(&case_key(number))).unwrap();
                        assert!(matches!(read, Some(Read::Current(_))));
                    }
                });
            }
            scope.spawn(|| {
                for number in (0..KEYS).rev() {
                    pollster::block_on(writer.put(&case_key(number), &open("put"))).unwrap();
                    put.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        assert_eq!(put.load(Ordering::Relaxed), KEYS);
        for number in 0..KEYS {
            let Some(Read::Current(case)) = writer.get(&case_key(number)).await.unwrap() else {
                panic!("it is there")
            };
            assert_eq!(case.value, open("put"));
        }
    });
}
