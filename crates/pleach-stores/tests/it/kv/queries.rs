use pleach_contract::key::{Between, Value};
use pleach_engine::{Direction, EngineError, PageToken};
use pleach_stores::{KvError, Misfit, QueryOptions, QueryPage, Read};

use super::given::{Case, Event, Given, case_key, days_ago, event, event_key, on_every_engine, open};

async fn with_cases(given: &Given, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        given.cases().put(&case_key(number), &open(&number.to_string())).await.unwrap();
        // Another keyspace lies between them.
        given.events().put(&event_key(number, days_ago(1)), &event("opened")).await.unwrap();
    }
}

fn titles(page: QueryPage<Case>) -> Vec<String> {
    let current = page.entries.into_iter().map(|entry| entry.unwrap().current().unwrap());
    current.map(|case| case.value.title).collect()
}

/// All pages of a query, and how long each was.
async fn all_pages(given: &Given, options: QueryOptions<'_>) -> (Vec<String>, Vec<usize>) {
    let (mut all, mut lengths, mut next) = (Vec::new(), Vec::new(), options.page.clone());
    loop {
        let options = QueryOptions { page: next, ..options.clone() };
        let page = given.cases().query_with("of", &["acme".into()], options).await.unwrap();
        next = page.next.clone();
        let some = titles(page);
        lengths.push(some.len());
        all.extend(some);
        if next.is_none() {
            return (all, lengths);
        }
    }
}

#[test]
fn a_query_reads_an_access_path_in_order_and_in_pages() {
    on_every_engine(async |given| {
        with_cases(&given, 1..=12).await;
        given.cases().put(&["other".into(), 1_u64.into()], &open("not ours")).await.unwrap();
        let (all, lengths) = all_pages(&given, QueryOptions::default()).await;
        assert_eq!(all, (1..=12).map(|number: u64| number.to_string()).collect::<Vec<_>>());
        assert_eq!(lengths[..2], [5, 5]);
        let options =
            QueryOptions { direction: Direction::Backward, limit: Some(4), ..QueryOptions::default() };
        let (all, lengths) = all_pages(&given, options).await;
        assert_eq!(all, (1..=12).rev().map(|number: u64| number.to_string()).collect::<Vec<_>>());
        assert_eq!(lengths[..3], [4, 4, 4]);
        let between = Between::range(Value::Uint(3)..Value::Uint(6));
        let (all, _) = all_pages(&given, QueryOptions { between, ..QueryOptions::default() }).await;
        assert_eq!(all, ["3", "4", "5"]);
    });
}

#[test]
fn pages_of_a_query_are_of_one_snapshot() {
    on_every_engine(async |given| {
        with_cases(&given, 1..=8).await;
        let first = given.cases().query("of", &["acme".into()]).await.unwrap();
        given.cases().delete(&case_key(7)).await.unwrap();
        given.cases().put(&case_key(9), &open("9")).await.unwrap();
        let token: PageToken = first.next.unwrap().to_string().parse().unwrap();
        let (rest, _) =
            all_pages(&given, QueryOptions { page: Some(token), ..QueryOptions::default() }).await;
        assert_eq!(rest, ["6", "7", "8"]);
    });
}

#[test]
fn a_page_token_is_good_for_its_own_query_only() {
    on_every_engine(async |given| {
        with_cases(&given, 1..=8).await;
        let next = given.cases().query("of", &["acme".into()]).await.unwrap().next;
        let options = || QueryOptions { page: next.clone(), ..QueryOptions::default() };
        let of_other = given.cases().query_with("of", &["other".into()], options()).await.unwrap_err();
        let backward = QueryOptions { direction: Direction::Backward, ..options() };
        let backward = given.cases().query_with("of", &["acme".into()], backward).await.unwrap_err();
        let of_events =
            given.events().query_with("timeline", &["acme".into(), 1_u64.into()], options()).await;
        for error in [of_other, backward, of_events.unwrap_err()] {
            assert!(matches!(error, KvError::Engine(EngineError::InvalidPageToken { .. })), "{error:?}");
        }
    });
}

#[test]
fn a_query_stays_within_what_the_contract_declares() {
    on_every_engine(async |given| {
        let cases = given.cases();
        let error = cases.query("by_status", &[]).await.unwrap_err();
        assert_eq!(error.to_string(), "`case` has no access path `by_status`; it has of");
        for asked in [0, 6] {
            let options = QueryOptions { limit: Some(asked), ..QueryOptions::default() };
            let error = cases.query_with("of", &["acme".into()], options).await.unwrap_err();
            assert!(matches!(&error, KvError::PageLimit { limit: 5, .. }), "{error:?}");
        }
        for given in
            [&[][..], &["acme".into(), 7_u64.into()], &[7_u64.into()], &["a.b".into()], &["*".into()]]
        {
            let error = cases.query("of", given).await.unwrap_err();
            assert!(matches!(&error, KvError::Key { .. }), "{given:?}: {error:?}");
        }
        let between = Between::since(Value::Text("x".into()));
        let options = QueryOptions { between, ..QueryOptions::default() };
        assert!(matches!(cases.query_with("of", &["acme".into()], options).await, Err(KvError::Key { .. })));
    });
}

#[test]
fn one_bad_entry_does_not_fail_the_page_for_the_others() {
    on_every_engine(async |given| {
        with_cases(&given, [1, 3]).await;
        given.put_raw("t.acme.case.000002", "nonsense", Some("v2")).await;
        given.put_first(4, "OPEN").await;
        let page = given.cases().query("of", &["acme".into()]).await.unwrap();
        assert_eq!(page.entries.len(), 4);
        assert!(matches!(&page.entries[0], Ok(Read::Current(_))));
        let bad = page.entries[1].as_ref().unwrap_err();
        assert!(matches!(bad, KvError::Stored { misfit: Misfit::NotJson { .. }, .. }), "{bad:?}");
        assert!(bad.to_string().contains("t.acme.case.000002"));
        assert!(matches!(&page.entries[2], Ok(Read::Current(_))));
        assert!(matches!(&page.entries[3], Ok(Read::MigrationRequired(_))));
    });
}

#[test]
fn a_timeline_is_read_between_two_moments() {
    on_every_engine(async |given| {
        for days in 0..10 {
            given.events().put(&event_key(7, days_ago(days)), &event(&days.to_string())).await.unwrap();
            given.events().put(&event_key(8, days_ago(days)), &event("another case")).await.unwrap();
        }
        let between = Between::range(Value::Time(days_ago(5))..Value::Time(days_ago(2)));
        let options = QueryOptions { between, direction: Direction::Backward, ..QueryOptions::default() };
        let page =
            given.events().query_with("timeline", &["acme".into(), 7_u64.into()], options).await.unwrap();
        let what = page.entries.into_iter().map(|entry| entry.unwrap().current().unwrap().value.what);
        assert_eq!(what.collect::<Vec<_>>(), ["3", "4", "5"]);
    });
}

#[test]
fn keys_with_a_rest_are_read_too() {
    on_every_engine(async |given| {
        let files = given.store().keyspace::<Event>("file").unwrap();
        for path in ["", "a", "a.b", "b"] {
            files.put(&[Value::from(path)], &event(path)).await.unwrap();
        }
        with_cases(&given, [1]).await;
        let page = files.query("all", &[]).await.unwrap();
        let what = page.entries.into_iter().map(|entry| entry.unwrap().current().unwrap().value.what);
        assert_eq!(what.collect::<Vec<_>>(), ["", "a", "a.b", "b"]);
    });
}

#[test]
fn a_scan_reads_a_whole_keyspace_and_nothing_else() {
    on_every_engine(async |given| {
        with_cases(&given, 1..=12).await;
        given.cases().put(&["other".into(), 1_u64.into()], &open("other")).await.unwrap();
        let (mut count, mut next) = (0, None);
        loop {
            let options = QueryOptions { limit: Some(4), page: next, ..QueryOptions::default() };
            let page = given.cases().scan(options).await.unwrap();
            count += page.entries.iter().filter(|entry| entry.is_ok()).count();
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(count, 13);
        let notes = given.service.kv("notes").unwrap().entries::<Event>().unwrap();
        notes.put("x", &event("one")).await.unwrap();
        assert_eq!(notes.scan(QueryOptions::default()).await.unwrap().entries.len(), 1);
    });
}
