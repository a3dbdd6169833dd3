use std::collections::BTreeMap;

use super::case::{Bucket, Case, Task, at_once, finish, key, put_new, put_over, start_together, value_text};
use crate::{Batch, BatchPart, CommitError, EngineError, Entry, Revision, ScanQuery, Selection, WatchStart};

/// How many do the same thing at the same time.
const RIVALS: u32 = 8;

pub(super) async fn of_concurrent_creators_of_a_key_exactly_one_wins(case: Case) {
    let bucket = case.bucket().await;
    for round in 0..10 {
        let at = format!("k{round}");
        let create = |rival: u32| -> Task<_> {
            let (bucket, at) = (bucket.clone(), at.clone());
            Box::pin(async move { bucket.try_commit(put_new(&at, &rival.to_string())).await })
        };
        let results = at_once((0..RIVALS).map(create).collect()).await;
        let won: Vec<Revision> = results.iter().flatten().map(|committed| committed.last).collect();
        assert_eq!(won.len(), 1, "{results:?}");
        let entry = bucket.get(&at).await.unwrap();
        assert_eq!(entry.revision, won[0]);
        assert!(results[value_text(&entry).parse::<usize>().unwrap()].is_ok(), "the winner's value is there");
        for lost in results.into_iter().filter_map(Result::err) {
            let CommitError::Conflict(conflict) = lost else { panic!("expected a conflict, got {lost:?}") };
            assert_eq!(conflict.actual, Some(won[0]));
        }
    }
}

pub(super) async fn concurrent_increments_lose_nothing(case: Case) {
    const INCREMENTS: u32 = 25;
    let bucket = case.bucket().await;
    bucket.put("n", "0").await;
    let increment = |_| -> Task<()> {
        let bucket = bucket.clone();
        Box::pin(async move {
            let mut left = INCREMENTS;
            while left > 0 {
                let seen = bucket.get("n").await.unwrap();
                let next = value_text(&seen).parse::<u32>().unwrap() + 1;
                match bucket.try_commit(put_over("n", &next.to_string(), seen.revision)).await {
                    Ok(_) => left -= 1,
                    Err(CommitError::Conflict(_)) => tokio::task::yield_now().await,
                    Err(CommitError::Engine(error)) => panic!("{error:?}"),
                }
            }
        })
    };
    at_once((0..RIVALS).map(increment).collect()).await;
    assert_eq!(bucket.text("n").await, Some((RIVALS * INCREMENTS).to_string()));
}

pub(super) async fn a_reader_never_sees_half_a_batch(case: Case) {
    const FLIPS: u32 = 200;
    let bucket = case.bucket().await;
    let flip = async |bucket: &Bucket, round: u32| {
        let value = round.to_string();
        bucket
            .commit(Batch::new().put(key("a"), value.clone()).put(key("b"), "x").put(key("c"), value))
            .await;
    };
    flip(&bucket, 0).await;
    let (writer, reader, watcher) = (bucket.clone(), bucket.clone(), bucket.clone());
    let tasks: Vec<Task<()>> = vec![
        Box::pin(async move {
            for round in 1..=FLIPS {
                flip(&writer, round).await;
            }
        }),
        Box::pin(async move {
            // The batch that wrote `a` wrote `c` too, so a later read of `c` is never behind.
            while read_number(&reader, "a").await < FLIPS {
                let (a, c) = (read_number(&reader, "a").await, read_number(&reader, "c").await);
                assert!(c >= a, "saw {a} and then {c}");
            }
        }),
        Box::pin(async move {
            loop {
                let entries = watcher.scan(ScanQuery::default()).await.entries;
                let values: Vec<String> = entries.iter().map(value_text).collect();
                assert_eq!(values.len(), 3);
                assert_eq!(values[0], values[2], "half a batch");
                assert_eq!(entries[0].revision.plus(2), entries[2].revision);
                if values[0] == FLIPS.to_string() {
                    return;
                }
            }
        }),
    ];
    at_once(tasks).await;
}

async fn read_number(bucket: &Bucket, at: &str) -> u32 {
    value_text(&bucket.get(at).await.unwrap()).parse().unwrap()
}

pub(super) async fn of_concurrent_creators_of_a_bucket_one_wins(case: Case) {
    for round in 0..5 {
        let name = format!("raced-{round}");
        let create = |rival: u32| -> Task<_> {
            let (bucket, mut config) = (case.named(&name), case.config());
            config.value_bytes_max = 100 + rival % 2;
            Box::pin(async move { bucket.engine.create_bucket(&bucket.name, config).await })
        };
        let results = at_once((0..RIVALS).map(create).collect()).await;
        let won = case.named(&name).info().await;
        for (rival, result) in (0..).zip(results) {
            let same = won.config.value_bytes_max == 100 + rival % 2;
            match result {
                Ok(info) => {
                    assert!(same && info.created == won.created && info.last_revision == won.last_revision)
                }
                Err(EngineError::BucketExists { differences, .. }) => {
                    assert!(!same && differences == ["value_bytes_max"]);
                }
                Err(other) => panic!("expected the bucket or BucketExists, got {other:?}"),
            }
        }
    }
}

pub(super) async fn a_bucket_deleted_under_its_writers_stays_deleted(case: Case) {
    for _ in 0..10 {
        let bucket = case.bucket().await;
        let write = |rival: u32| -> Task<()> {
            let bucket = bucket.clone();
            Box::pin(async move {
                for round in 0.. {
                    match bucket.try_commit(put_new(&format!("k{rival}.{round}"), "1")).await {
                        Ok(_) => tokio::task::yield_now().await,
                        Err(CommitError::Engine(EngineError::BucketNotFound { .. })) => return,
                        Err(other) => panic!("expected success or BucketNotFound, got {other:?}"),
                    }
                }
            })
        };
        let writing = start_together((0..4).map(write).collect());
        while bucket.count(Selection::all()).await < 20 {
            tokio::task::yield_now().await;
        }
        bucket.remove().await;
        finish(writing).await;
        case.engine().create_bucket(&bucket.name, case.config()).await.unwrap();
        assert_eq!(bucket.count(Selection::all()).await, 0);
        bucket.remove().await;
    }
}

/// Writes the numbers below `writes` to a few keys each, and returns when all are written.
fn write_numbers(bucket: &Bucket, writes: u32) -> Vec<tokio::task::JoinHandle<()>> {
    let write = |rival: u32| -> Task<()> {
        let bucket = bucket.clone();
        Box::pin(async move {
            for n in 0..writes {
                bucket.put(&format!("k{rival}.{}", n % 3), &n.to_string()).await;
                tokio::task::yield_now().await;
            }
        })
    };
    start_together((0..4).map(write).collect())
}

pub(super) async fn latest_values_join_changes_without_gap_or_duplicate(case: Case) {
    const WRITES: u32 = 100;
    for _ in 0..5 {
        let bucket = case.bucket().await;
        let writing = write_numbers(&bucket, WRITES);
        while bucket.count(Selection::all()).await < 3 {
            tokio::task::yield_now().await;
        }
        let mut watch = bucket.watch(WatchStart::Latest).await;
        let (initial, joined) = watch.initial().await;
        assert!(initial.iter().all(|entry| entry.revision <= joined));
        finish(writing).await;
        let last = bucket.info().await.last_revision;
        let mut newest: BTreeMap<String, Entry> = BTreeMap::new();
        for entry in initial {
            assert!(newest.insert(entry.key.to_string(), entry).is_none(), "a latest value came twice");
        }
        let mut at = joined;
        while at < last {
            let entry = watch.entry().await;
            assert!(entry.revision > at, "changes come in order, once, after the initial values");
            at = entry.revision;
            // Each writer's numbers go up by three a key: a gap or a duplicate breaks the step.
            let number = value_text(&entry).parse::<u32>().unwrap();
            let before = newest.insert(entry.key.to_string(), entry);
            let expected =
                before.map_or(number % 3, |before| value_text(&before).parse::<u32>().unwrap() + 3);
            assert_eq!(number, expected);
        }
        for (at, seen) in newest {
            assert_eq!(bucket.get(&at).await, Some(seen));
        }
        bucket.remove().await;
    }
}

pub(super) async fn a_watch_from_a_revision_keeps_up_with_writers(case: Case) {
    const WRITES: u32 = 100;
    let bucket = case.bucket().await;
    let from = bucket.put("start", "1").await;
    let writing = write_numbers(&bucket, WRITES);
    let mut watch = bucket.watch(WatchStart::Revision(from)).await;
    assert_eq!(watch.next().await, "put start=1");
    let mut next: BTreeMap<char, u32> = BTreeMap::new();
    let mut at = from;
    for _ in 0..4 * WRITES {
        let entry = watch.entry().await;
        assert!(entry.revision > at);
        at = entry.revision;
        let writer = entry.key.as_str().chars().nth(1).unwrap();
        let expected = next.entry(writer).or_default();
        assert_eq!(value_text(&entry), expected.to_string());
        *expected += 1;
    }
    finish(writing).await;
    bucket.put("end", "1").await;
    assert_eq!(watch.next().await, "put end=1");
}

pub(super) async fn concurrent_watchers_see_the_same_order(case: Case) {
    const WRITES: u32 = 50;
    let bucket = case.bucket().await;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(bucket.watch(WatchStart::Now).await);
    }
    let writing = write_numbers(&bucket, WRITES);
    let mut seen = Vec::new();
    for mut watch in watches {
        let mut revisions = Vec::new();
        for _ in 0..4 * WRITES {
            revisions.push(watch.entry().await.revision);
        }
        seen.push(revisions);
    }
    finish(writing).await;
    assert!(seen[0].is_sorted_by(|earlier, later| earlier < later));
    assert!(seen.iter().all(|revisions| *revisions == seen[0]));
}

pub(super) async fn batches_of_concurrent_writers_are_delivered_whole(case: Case) {
    const BATCHES: u16 = 25;
    const SIZE: u16 = 5;
    let bucket = case.bucket().await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    let write = |rival: u16| -> Task<()> {
        let bucket = bucket.clone();
        Box::pin(async move {
            for _ in 0..BATCHES {
                let puts = (0..SIZE).map(|n| super::case::put(&format!("k{rival}.{n}"), "1"));
                bucket.commit(puts.collect::<Batch>()).await;
            }
        })
    };
    let writing = start_together((0..4).map(write).collect());
    for _ in 0..4 * BATCHES {
        let first = watch.change().await;
        assert_eq!(first.batch, BatchPart { index: 0, size: SIZE });
        let writer = first.entry.key.tokens().next().unwrap().to_owned();
        for index in 1..SIZE {
            let part = watch.change().await;
            assert_eq!(part.batch, BatchPart { index, size: SIZE });
            assert_eq!(part.entry.key.as_str(), format!("{writer}.{index}"));
            assert_eq!(part.entry.revision, first.entry.revision.plus(u64::from(index)));
        }
    }
    finish(writing).await;
}
