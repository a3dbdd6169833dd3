//! Writers that do not wait for an apply.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use pleach_engine::{Engine, Key, Operation, ScanQuery};
use pleach_stores::{ApplyOptions, AuthorityError};

use crate::Given;
use crate::given::{NOTES, name, note, notes, short_note};

/// Whatever is written while a contract comes into force: once it has, nothing is there that it refuses.
pub(crate) async fn no_violator_slips_in_behind_an_apply(given: Given) {
    given.accept(&notes(note())).await;
    let (applied, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for _ in 0..30 {
        let plan = given.plan(&notes(short_note())).await;
        let stop = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            for writer in 0..2 {
                let (engine, stop) = (&given.engine, &stop);
                scope.spawn(move || {
                    for number in 0.. {
                        if stop.load(Ordering::SeqCst) {
                            return;
                        }
                        // Most are fine, and a long one comes now and then.
                        let text = if number % 97 == 96 { "much too long" } else { "tiny" };
                        let key = Key::parse(format!("w{writer}.n{}", number % 300)).unwrap();
                        let put = Operation::put(key, format!(r#"{{"text": "{text}"}}"#));
                        let _ = pollster::block_on(engine.commit(&name(NOTES), put.into()));
                    }
                });
            }
            let result = pollster::block_on(given.contracts.apply(&plan, ApplyOptions::by("ann")));
            stop.store(true, Ordering::SeqCst);
            result
        });
        let long = long_ones(&given).await;
        match result {
            Ok(_) => {
                assert_eq!(long, [""; 0], "they slipped in");
                applied.fetch_add(1, Ordering::SeqCst);
                given.insist(&notes(note())).await;
            }
            Err(AuthorityError::Violators { .. }) => {
                refused.fetch_add(1, Ordering::SeqCst);
                for key in long {
                    given.put(NOTES, &key, r#"{"text": "tiny"}"#).await.unwrap();
                }
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(applied.into_inner() > 0, "{refused:?} were refused, and none applied");
}

async fn long_ones(given: &Given) -> Vec<String> {
    let query = ScanQuery { limit: 10_000, ..ScanQuery::default() };
    let page = given.engine.scan(&name(NOTES), query).await.unwrap();
    let long = page.entries.iter().filter(|entry| entry.value.len() > br#"{"text": "12345"}"#.len());
    long.map(|entry| entry.key.to_string()).collect()
}
