use std::time::Duration;

use super::case::{Bucket, Case, Task, at_once, key, put, put_new, put_over};
use super::refused;
use crate::{Batch, Check, CommitError, EngineError, Expectation, Revision, Selection, WatchStart};

fn absent(at: &str) -> Check {
    Check::absent(key(at))
}

fn at_revision(at: &str, revision: Revision) -> Check {
    Check::revision(key(at), revision)
}

fn checked(at: &str, check: Check) -> Batch {
    Batch::from(put(at, "new")).checking(check)
}

pub(super) async fn a_check_writes_nothing(case: Case) {
    let bucket = case.bucket_with_history(case.capabilities().history_max.min(8)).await;
    let flag = bucket.put("flag", "up").await;
    let mut watch = bucket.watch(WatchStart::Now).await;
    let committed = bucket.commit(checked("a", at_revision("flag", flag)).checking(absent("none"))).await;
    assert_eq!(committed.first, committed.last);
    // Also if the operation has an expectation of its own.
    let over = Batch::from(put_over("a", "newer", committed.last)).checking(at_revision("flag", flag));
    let committed = bucket.commit(over.checking(absent("none"))).await;
    assert_eq!(committed.first, committed.last);
    assert_eq!(bucket.get("a").await.unwrap().revision, committed.last);
    assert_eq!(bucket.get("flag").await.unwrap().revision, flag);
    assert_eq!(bucket.history("flag").await, ["put flag=up"]);
    assert_eq!(bucket.history("none").await, [""; 0]);
    assert_eq!(bucket.keys(Selection::all()).await, ["a", "flag"]);
    assert_eq!(bucket.count(Selection::all()).await, 2);
    bucket.put("end", "1").await;
    assert_eq!(
        [watch.next().await, watch.next().await, watch.next().await],
        ["put a=new", "put a=newer", "put end=1"]
    );
}

pub(super) async fn a_failed_check_refuses_the_batch(case: Case) {
    let bucket = case.bucket().await;
    let flag = bucket.put("flag", "up").await;
    let before = bucket.info().await.last_revision;
    let conflict = bucket.conflict(checked("a", absent("flag"))).await;
    assert_eq!((conflict.bucket, conflict.key), (bucket.name.clone(), key("flag")));
    assert_eq!((conflict.expected, conflict.actual), (Expectation::Absent, Some(flag)));
    let wrong = flag.next();
    let conflict = bucket.conflict(Batch::from(put_new("a", "1")).checking(at_revision("flag", wrong))).await;
    assert_eq!((conflict.expected, conflict.actual), (Expectation::Revision(wrong), Some(flag)));
    assert_eq!(bucket.get("a").await, None);
    assert_eq!(bucket.history("a").await, [""; 0]);
    assert_eq!(bucket.info().await.last_revision, before);
}

pub(super) async fn absent_can_be_checked(case: Case) {
    let bucket = case.bucket().await;
    bucket.commit(checked("a", absent("flag"))).await;
    let live = bucket.put("flag", "up").await;
    assert_eq!(bucket.conflict(checked("b", absent("flag"))).await.actual, Some(live));
    bucket.delete("flag").await;
    bucket.commit(checked("b", absent("flag"))).await;
    bucket.put("flag", "up").await;
    bucket.purge("flag").await;
    bucket.commit(checked("c", absent("flag"))).await;
    assert_eq!(bucket.keys(Selection::all()).await, ["a", "b", "c"]);
}

pub(super) async fn a_revision_can_be_checked(case: Case) {
    let bucket = case.bucket().await;
    let older = bucket.put("flag", "1").await;
    let newest = bucket.put("flag", "2").await;
    for wrong in [older, newest.next(), Revision::ZERO] {
        assert_eq!(bucket.conflict(checked("a", at_revision("flag", wrong))).await.actual, Some(newest));
        assert_eq!(bucket.conflict(checked("a", at_revision("none", wrong))).await.actual, None);
    }
    bucket.commit(checked("a", at_revision("flag", newest))).await;
    bucket.commit(checked("b", at_revision("flag", newest))).await;
    let deleted = bucket.delete("flag").await;
    assert_eq!(bucket.conflict(checked("c", at_revision("flag", newest))).await.actual, Some(deleted));
    bucket.commit(checked("c", at_revision("flag", deleted))).await;
    assert_eq!(bucket.keys(Selection::all()).await, ["a", "b", "c"]);
}

pub(super) async fn an_expired_value_is_absent_to_a_check(case: Case) {
    let bucket = case.bucket().await;
    let ttl = case.a_while(1);
    let flag = bucket.put_for("flag", "up", ttl).await;
    case.advance(ttl + Duration::from_millis(1)).await;
    assert_eq!(bucket.conflict(checked("a", at_revision("flag", flag))).await.actual, None);
    bucket.commit(checked("a", absent("flag"))).await;
    assert_eq!(bucket.text("a").await.as_deref(), Some("new"));
}

pub(super) async fn a_batch_may_have_many_checks(case: Case) {
    let bucket = case.bucket().await;
    let flags: Vec<String> = (0..20).map(|n| format!("flag{n:02}")).collect();
    let mut revisions = Vec::new();
    for at in &flags {
        revisions.push(bucket.put(at, "up").await);
    }
    // More checks than operations, operations with and without expectations of their own, keys of one length.
    let all = |round: usize| {
        let batch = Batch::from(put("a", "1")).with(put_new(&format!("b{round}"), "1"));
        let held = flags.iter().zip(&revisions).map(|(at, revision)| at_revision(at, *revision));
        held.chain((0..20).map(|n| absent(&format!("none{n:02}")))).fold(batch, Batch::checking)
    };
    let committed = bucket.commit(all(0)).await;
    assert_eq!(committed.last, committed.first.next());
    assert_eq!(bucket.get("b0").await.unwrap().revision, committed.last);
    bucket.put("none07", "1").await;
    assert_eq!(bucket.conflict(all(1)).await.key, key("none07"));
    bucket.delete("none07").await;
    bucket.put("flag13", "again").await;
    assert_eq!(bucket.conflict(all(1)).await.key, key("flag13"));
    assert_eq!(bucket.get("b1").await, None);
    assert_eq!(bucket.count(Selection::all()).await, 22);
}

pub(super) async fn checks_are_judged_before_the_batch(case: Case) {
    let bucket = case.bucket().await;
    let before = bucket.put("a", "0").await;
    // The batch would give these very revisions to its own records.
    for steps in 1..=2 {
        let conflict = bucket.conflict(checked("b", at_revision("c", before.plus(steps)))).await;
        assert_eq!((conflict.key, conflict.actual), (key("c"), None));
    }
    assert_eq!(bucket.get("b").await, None);
}

pub(super) async fn a_key_is_written_or_checked(case: Case) {
    let bucket = case.bucket().await;
    let twice = Batch::from(put("a", "1")).checking(absent("b")).checking(at_revision("b", Revision::ZERO));
    for (batch, at) in [(checked("a", absent("a")), "a"), (twice, "b")] {
        refused!(bucket.try_commit(batch).await, CommitError::Engine(EngineError::DuplicateKey { key: found })
            if found == key(at));
    }
    assert_eq!(bucket.count(Selection::all()).await, 0);
}

pub(super) async fn checks_count_toward_the_batch(case: Case) {
    let bucket = case.bucket().await;
    let limit = case.capabilities().batch_operations_max;
    let batch = |checks: usize| {
        (0..checks).map(|n| absent(&format!("k{n:05}"))).fold(Batch::from(put_new("a", "1")), Batch::checking)
    };
    let result = bucket.try_commit(batch(limit)).await;
    refused!(result, CommitError::Engine(EngineError::BatchTooLong { operations, limit: most })
        if operations == limit + 1 && most == limit);
    assert_eq!(bucket.get("a").await, None);
    bucket.commit(batch(limit - 1)).await;
}

pub(super) async fn a_batch_of_checks_only_is_refused(case: Case) {
    let bucket = case.bucket().await;
    let batch = Batch::new().checking(absent("a"));
    refused!(bucket.try_commit(batch).await, CommitError::Engine(EngineError::BatchEmpty));
}

pub(super) async fn the_conflict_names_operations_before_checks(case: Case) {
    let bucket = case.bucket().await;
    bucket.put_all(&["a", "b", "c"]).await;
    let batch = Batch::new().with(put("z", "1")).with(put_new("c", "1")).checking(absent("b"));
    assert_eq!(bucket.conflict(batch.checking(absent("a"))).await.key, key("c"));
    let batch = Batch::new().with(put("z", "1")).checking(absent("b")).checking(absent("a"));
    assert_eq!(bucket.conflict(batch).await.key, key("b"));
}

/// Commits puts that check that the flag is not up, until one is refused. Returns the last revision that was committed.
async fn write_until_flagged(bucket: Bucket, writer: usize) -> Revision {
    let mut last = Revision::ZERO;
    for round in 0.. {
        match bucket.try_commit(checked(&format!("w{writer}.{}", round % 4), absent("flag"))).await {
            Ok(committed) => last = committed.last,
            Err(CommitError::Conflict(_)) => break,
            Err(CommitError::Engine(error)) => panic!("the engine could not: {error}"),
        }
    }
    last
}

pub(super) async fn nothing_is_committed_past_a_check(case: Case) {
    let bucket = case.bucket().await;
    let mut tasks: Vec<Task<Revision>> = Vec::new();
    for writer in 0..4 {
        tasks.push(Box::pin(write_until_flagged(bucket.clone(), writer)));
    }
    let flagging = bucket.clone();
    tasks.push(Box::pin(async move {
        for round in 0..10 {
            flagging.put("other", &round.to_string()).await;
        }
        flagging.put("flag", "up").await
    }));
    let mut ends = at_once(tasks).await;
    let flag = ends.pop().unwrap();
    assert!(ends.iter().all(|last| *last < flag), "{ends:?} are all before {flag}");
}
