use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::super::*;
use super::given::*;
use super::meddler::Call;

/// Someone else who puts a draft right before the next such call.
fn puts_first(given: &Given, call: Call, key: &'static str, title: &'static str) {
    let drafts = given.drafts();
    given.engine.before(call, move |_| drop(applied(pollster::block_on(drafts.put(key, &draft(title))))));
}

/// Someone else who deletes a draft right before the next such call.
fn deletes_first(given: &Given, call: Call, key: &'static str) {
    let drafts = given.drafts();
    given.engine.before(call, move |_| {
        assert_eq!(pollster::block_on(drafts.delete(key)).unwrap(), DeleteOutcome::Deleted);
    });
}

pub(super) async fn of_two_creators_one_wins_and_the_other_sees_its_entry(given: Given) {
    puts_first(&given, Call::Commit, "a", "theirs");
    let outcome = given.drafts().put_with("a", &draft("mine"), expecting(Expect::Absent)).await.unwrap();
    assert!(matches!(&outcome, PutOutcome::Present(entry) if entry.value == draft("theirs")), "{outcome:?}");
}

pub(super) async fn a_create_that_lost_to_an_entry_now_gone_is_applied(given: Given) {
    puts_first(&given, Call::Commit, "a", "theirs");
    // Their delete reads before it commits, so it takes its turn at the read after the lost commit.
    deletes_first(&given, Call::Read, "a");
    let entry = applied(given.drafts().put_with("a", &draft("mine"), expecting(Expect::Absent)).await);
    assert_eq!(entry.value, draft("mine"));
    assert_eq!(found(given.drafts().get("a").await), entry);
}

pub(super) async fn an_update_that_lost_to_a_delete_finds_nothing(given: Given) {
    let entry = applied(given.drafts().put("a", &draft("one")).await);
    deletes_first(&given, Call::Commit, "a");
    let outcome = given
        .drafts()
        .put_with("a", &draft("two"), expecting(Expect::Revision(entry.revision)))
        .await
        .unwrap();
    assert_eq!(outcome, PutOutcome::Absent);
    assert_eq!(given.drafts().get("a").await.unwrap(), GetOutcome::Absent);
}

pub(super) async fn an_update_that_lost_to_a_writer_sees_its_entry(given: Given) {
    let entry = applied(given.drafts().put("a", &draft("one")).await);
    puts_first(&given, Call::Commit, "a", "theirs");
    let outcome = given
        .drafts()
        .put_with("a", &draft("two"), expecting(Expect::Revision(entry.revision)))
        .await
        .unwrap();
    assert!(matches!(&outcome, PutOutcome::Present(entry) if entry.value == draft("theirs")), "{outcome:?}");
}

pub(super) async fn an_update_that_lost_to_expiry_finds_nothing(given: Given) {
    let entry = applied(given.drafts().put_with("a", &draft("one"), living(10)).await);
    let clock = Arc::clone(&given.clock);
    given.engine.before(Call::Commit, move |_| clock.advance(std::time::Duration::from_millis(10)));
    let outcome = given
        .drafts()
        .put_with("a", &draft("two"), expecting(Expect::Revision(entry.revision)))
        .await
        .unwrap();
    assert_eq!(outcome, PutOutcome::Absent);
    // And a create that comes right after the expiry succeeds.
    let _ = applied(given.drafts().put_with("a", &draft("three"), expecting(Expect::Absent)).await);
}

pub(super) async fn a_delete_that_lost_to_a_delete_says_so(given: Given) {
    let _ = applied(given.drafts().put("a", &draft("one")).await);
    deletes_first(&given, Call::Commit, "a");
    assert_eq!(given.drafts().delete("a").await.unwrap(), DeleteOutcome::NotDeleted);
}

pub(super) async fn a_delete_without_a_condition_deletes_what_is_there_now(given: Given) {
    let entry = applied(given.drafts().put("a", &draft("one")).await);
    puts_first(&given, Call::Commit, "a", "theirs");
    assert_eq!(given.drafts().delete("a").await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(given.drafts().get("a").await.unwrap(), GetOutcome::Absent);
    // One with a condition leaves it.
    let _ = entry;
    let entry = applied(given.drafts().put("a", &draft("one")).await);
    puts_first(&given, Call::Commit, "a", "theirs");
    let options = DeleteOptions { expect: Some(entry.revision) };
    assert_eq!(given.drafts().delete_with("a", options).await.unwrap(), DeleteOutcome::NotDeleted);
    assert_eq!(found(given.drafts().get("a").await).value, draft("theirs"));
}

pub(super) async fn a_page_that_changes_while_it_is_read_is_of_one_moment(given: Given) {
    let drafts = given.drafts();
    for key in ["a", "b", "c", "d", "e"] {
        let _ = applied(drafts.put(key, &draft("old")).await);
    }
    // Between finding out which entries are on the page and reading them, one of them goes and one before it changes.
    deletes_first(&given, Call::ValueScan, "c");
    let page = drafts.list(ListOptions::first(2).from(1)).await.unwrap();
    assert_eq!((keys(&page), page.count), (vec!["b", "d"], 4));
    puts_first(&given, Call::ValueScan, "d", "new");
    let page = drafts.list(ListOptions::first(2).from(2)).await.unwrap();
    assert!(matches!(&page.entries[0], Cell::Entry(entry) if entry.value == draft("new")));
    // The entries after the page go before they are counted.
    deletes_first(&given, Call::Count, "e");
    let page = drafts.list(ListOptions::first(2).from(1)).await.unwrap();
    assert_eq!((keys(&page), page.count, page.next_offset), (vec!["b", "d"], 3, None));
}

pub(super) async fn concurrent_increments_lose_nothing(given: Given) {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let counters = given.ann().map::<Value>("anything").unwrap();
    let increment = |counters: &MapStore<Value>| loop {
        let (number, expect) = match pollster::block_on(counters.get("n")).unwrap() {
            GetOutcome::Absent => (0, Expect::Absent),
            GetOutcome::Found(entry) => (entry.value.as_u64().unwrap(), Expect::Revision(entry.revision)),
            GetOutcome::MigrationRequired(_) => panic!("there is one version"),
        };
        let outcome =
            pollster::block_on(counters.put_with("n", &json!(number + 1), expecting(expect))).unwrap();
        match outcome {
            PutOutcome::Applied(entry) => {
                assert_eq!(entry.value, json!(number + 1), "the caller's own value");
                break;
            }
            PutOutcome::Present(entry) => assert!(entry.value.as_u64().unwrap() > number),
            PutOutcome::Absent | PutOutcome::MigrationRequired(_) => panic!("nobody deletes"),
        }
    };
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| (0..EACH).for_each(|_| increment(&counters)));
        }
    });
    assert_eq!(found(counters.get("n").await).value, json!(WRITERS * EACH));
}

pub(super) async fn creates_and_deletes_at_once_take_turns(given: Given) {
    const EACH: usize = 60;
    let drafts = given.drafts();
    let (created, deleted) = thread::scope(|scope| {
        let creators = [0, 1].map(|_| {
            scope.spawn(|| {
                let create =
                    || pollster::block_on(drafts.put_with("a", &draft("x"), expecting(Expect::Absent)));
                (0..EACH).filter(|_| matches!(create().unwrap(), PutOutcome::Applied(_))).count()
            })
        });
        let deleters = [0, 1].map(|_| {
            scope.spawn(|| {
                let delete = || pollster::block_on(drafts.delete("a")).unwrap();
                (0..EACH).filter(|_| delete() == DeleteOutcome::Deleted).count()
            })
        });
        let sum = |threads: [thread::ScopedJoinHandle<'_, usize>; 2]| -> usize {
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        };
        (sum(creators), sum(deleters))
    });
    assert!(created > 0);
    assert_eq!(drafts.count().await.unwrap(), (created - deleted) as u64, "{created} {deleted}");
}

pub(super) async fn of_many_who_wait_for_an_expiry_one_creates(given: Given) {
    const CREATORS: usize = 4;
    let drafts = given.drafts();
    let old = applied(drafts.put_with("a", &draft("old"), living(1000)).await);
    let created: Vec<StateEntry<Value>> = thread::scope(|scope| {
        let wait_and_create = |number: usize| loop {
            let (mine, create) = (draft(&number.to_string()), expecting(Expect::Absent));
            match pollster::block_on(drafts.put_with("a", &mine, create)).unwrap() {
                PutOutcome::Applied(entry) => {
                    assert_eq!(entry.value, mine);
                    return Some(entry);
                }
                PutOutcome::Present(entry) if entry == old => thread::yield_now(),
                PutOutcome::Present(_) => return None,
                other => panic!("{other:?}"),
            }
        };
        let creators: Vec<_> =
            (0..CREATORS).map(|number| scope.spawn(move || wait_and_create(number))).collect();
        given.advance(1000);
        creators.into_iter().filter_map(|creator| creator.join().unwrap()).collect()
    });
    assert_eq!(created.len(), 1, "{created:?}");
    assert_eq!(found(drafts.get("a").await), created[0]);
    assert!(created[0].updated_at >= old.expires_at.unwrap(), "it came after the old one was gone");
}

pub(super) async fn counts_are_right_whatever_happens_meanwhile(given: Given) {
    const STEADY: u64 = 150;
    let drafts = given.drafts();
    for number in 0..STEADY {
        let _ = applied(drafts.put(&format!("m{number:03}"), &draft("steady")).await);
    }
    // One entry moves from before all others to after them and back: there are always as many, or one less.
    let stop = AtomicBool::new(false);
    let _ = applied(drafts.put("a", &draft("moves")).await);
    thread::scope(|scope| {
        scope.spawn(|| {
            for (from, to) in [("a", "z"), ("z", "a")].into_iter().cycle() {
                assert_eq!(pollster::block_on(drafts.delete(from)).unwrap(), DeleteOutcome::Deleted);
                let _ = applied(pollster::block_on(drafts.put(to, &draft("moves"))));
                if stop.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for round in 0..60 {
            let (offset, limit) = [(0, 100), (20, 100), (100, 100), (0, 0)][round % 4];
            let page = pollster::block_on(drafts.list(ListOptions::first(limit).from(offset))).unwrap();
            let count = page.count;
            assert!(count == STEADY || count == STEADY + 1, "{count}");
            let names = keys(&page);
            assert!(names.is_sorted() && !names.windows(2).any(|pair| pair[0] == pair[1]), "{names:?}");
            let left = (count - offset).min(limit as u64);
            // A page that ends before the last entry may be of another moment than the count.
            assert!(names.len() as u64 == left || page.next_offset.is_some(), "{left}: {names:?}");
        }
        stop.store(true, Ordering::SeqCst);
    });
}
