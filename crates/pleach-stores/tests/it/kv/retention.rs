use pleach_contract::key::{Date, Value};
use pleach_engine::Selection;
use pleach_stores::{QueryOptions, RETAIN_DROPPED_MAX, RetainCursor};

use super::given::{Event, case_key, days_ago, event, event_key, on_every_engine, open};

#[test]
fn what_lies_before_the_border_is_dropped_and_nothing_else() {
    on_every_engine(async |given| {
        let (cases, events) = (given.cases(), given.events());
        // The two months that are kept begin on 1 June, 33 and a half days ago.
        for case in [1, 2, 3] {
            cases.put(&case_key(case), &open("kept")).await.unwrap();
            for days in [0, 10, 33, 34, 35, 400] {
                events.put(&event_key(case, days_ago(days)), &event(&days.to_string())).await.unwrap();
            }
        }
        events.put(&["other".into(), 1_u64.into(), days_ago(40).into()], &event("old")).await.unwrap();
        let retained = given.store().retain(None).await.unwrap();
        assert_eq!((retained.dropped, retained.next), (10, None));
        let left = events.scan(QueryOptions::default()).await.unwrap();
        let left = left.entries.into_iter().map(|entry| entry.unwrap().current().unwrap().value.what);
        assert_eq!(left.collect::<Vec<_>>(), ["33", "10", "0"].repeat(3));
        assert_eq!(cases.scan(QueryOptions::default()).await.unwrap().entries.len(), 3);
        assert_eq!(given.store().retain(None).await.unwrap().dropped, 0);
    });
}

#[test]
fn retention_goes_by_dates_too() {
    on_every_engine(async |given| {
        let visits = given.store().keyspace::<Event>("visit").unwrap();
        for (number, day) in [(1, 28), (2, 29), (3, 30)] {
            let day = Date::new(2026, 6, day).unwrap();
            visits.put(&[day.into(), Value::Uint(number)], &event("came")).await.unwrap();
        }
        // The week of the clock began on Monday, 29 June.
        assert_eq!(given.store().retain(None).await.unwrap().dropped, 1);
        assert_eq!(visits.scan(QueryOptions::default()).await.unwrap().entries.len(), 2);
    });
}

#[test]
fn retention_is_done_in_parts_that_go_on_where_they_ended() {
    on_every_engine(async |given| {
        let mut operations = Vec::new();
        let events = given.events();
        for number in 0..RETAIN_DROPPED_MAX + 1500 {
            let second = i64::try_from(number).unwrap();
            let at = pleach_contract::key::Time::new(1_500_000_000 + second, 0).unwrap();
            let key = events.key(&event_key(number / 700, at)).unwrap();
            operations.push(pleach_engine::Operation::put(key, r#"{"what":"old"}"#));
        }
        for chunk in operations.chunks(1000) {
            given.engine.commit(given.store().bucket(), chunk.iter().cloned().collect()).await.unwrap();
        }
        let first = given.store().retain(None).await.unwrap();
        assert!(first.dropped >= RETAIN_DROPPED_MAX && first.next.is_some(), "{first:?}");
        // The cursor survives being written down.
        let cursor: RetainCursor = first.next.unwrap().to_string().parse().unwrap();
        let second = given.store().retain(Some(cursor)).await.unwrap();
        assert_eq!((first.dropped + second.dropped, second.next), (RETAIN_DROPPED_MAX + 1500, None));
        assert_eq!(given.engine.count(given.store().bucket(), Selection::all()).await.unwrap(), 0);
        assert!("".parse::<RetainCursor>().is_err());
    });
}

#[test]
fn what_is_kept_is_passed_over() {
    on_every_engine(async |given| {
        let events = given.events();
        let mut operations = Vec::new();
        for number in 0..3000 {
            let at = pleach_contract::key::Time::new(days_ago(1).seconds() + number, 0).unwrap();
            operations.push((1, at));
        }
        operations.push((1, days_ago(100)));
        operations.push((2, days_ago(100)));
        let operations: Vec<_> = operations
            .into_iter()
            .map(|(case, at)| {
                let key = events.key(&event_key(case, at)).unwrap();
                pleach_engine::Operation::put(key, r#"{"what":"x"}"#)
            })
            .collect();
        for chunk in operations.chunks(1000) {
            given.engine.commit(given.store().bucket(), chunk.iter().cloned().collect()).await.unwrap();
        }
        assert_eq!(given.store().retain(None).await.unwrap().dropped, 2);
        assert_eq!(given.engine.count(given.store().bucket(), Selection::all()).await.unwrap(), 3000);
    });
}
