use std::sync::mpsc;
use std::time::Duration;

use pleach_engine::{EngineError, Key, Op, Revision, Timestamp};
use pollster::block_on;
use tokio::sync::oneshot;

use super::overlay::Overlay;
use super::request::{Answer, Group, Step};
use super::{CommitQueue, GroupQueue, Request};
use crate::core::Newest;
use crate::log::BucketId;

const BUCKET: BucketId = BucketId(1);
const OTHER: BucketId = BucketId(2);

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn newest(revision: u64) -> Newest {
    Newest { op: Op::Put, revision: Revision::new(revision), time: Timestamp::default(), expires: None }
}

/// An overlay in which `a` was written at 1, then `a` and `b` at 2 and 3.
fn overlay() -> Overlay {
    let mut overlay = Overlay::default();
    overlay.insert(BUCKET, &key("a"), newest(1));
    overlay.keep();
    overlay.insert(BUCKET, &key("a"), newest(2));
    overlay.insert(BUCKET, &key("b"), newest(3));
    overlay
}

fn found(overlay: &Overlay, bucket: BucketId, text: &str) -> Option<u64> {
    overlay.get(bucket, &key(text)).map(|newest| newest.revision.get())
}

#[test]
fn an_overlay_shows_the_newest_record_of_each_key_of_each_bucket() {
    let mut overlay = overlay();
    overlay.insert(OTHER, &key("a"), newest(4));
    assert_eq!(found(&overlay, BUCKET, "a"), Some(2));
    assert_eq!(found(&overlay, BUCKET, "b"), Some(3));
    assert_eq!(found(&overlay, OTHER, "a"), Some(4));
    assert_eq!(found(&overlay, OTHER, "b"), None);
}

#[test]
fn a_group_rolled_back_leaves_what_was_there_before_it() {
    let mut overlay = overlay();
    overlay.roll_back();
    assert_eq!(found(&overlay, BUCKET, "a"), Some(1));
    assert_eq!(found(&overlay, BUCKET, "b"), None);
    // The revisions are given again, to others.
    overlay.insert(BUCKET, &key("c"), newest(2));
    overlay.keep();
    overlay.forget_up_to(Revision::new(1));
    assert_eq!(found(&overlay, BUCKET, "a"), None);
    assert_eq!(found(&overlay, BUCKET, "c"), Some(2));
}

#[test]
fn a_key_written_twice_in_a_group_is_rolled_back_to_before_the_first() {
    let mut overlay = overlay();
    overlay.keep();
    overlay.insert(BUCKET, &key("a"), newest(4));
    overlay.insert(BUCKET, &key("a"), newest(5));
    overlay.roll_back();
    assert_eq!(found(&overlay, BUCKET, "a"), Some(2));
}

#[test]
fn a_group_that_was_kept_is_not_rolled_back() {
    let mut overlay = overlay();
    overlay.keep();
    overlay.roll_back();
    assert_eq!(found(&overlay, BUCKET, "a"), Some(2));
    assert_eq!(found(&overlay, BUCKET, "b"), Some(3));
}

#[test]
fn what_the_index_has_is_forgotten_and_what_is_newer_is_not() {
    let mut overlay = overlay();
    overlay.keep();
    overlay.forget_up_to(Revision::new(1));
    assert_eq!(found(&overlay, BUCKET, "a"), Some(2), "written again since");
    overlay.forget_up_to(Revision::new(2));
    assert_eq!(found(&overlay, BUCKET, "a"), None);
    assert_eq!(found(&overlay, BUCKET, "b"), Some(3));
    overlay.forget_up_to(Revision::new(9));
    assert_eq!(found(&overlay, BUCKET, "b"), None);
}

type Waiting = oneshot::Receiver<Result<(), EngineError>>;

fn request() -> (Request, Waiting) {
    let (reply, answer) = oneshot::channel();
    (Request::Tidy { notes: Vec::new(), reply }, answer)
}

fn group() -> (Group, Waiting) {
    let (reply, answer) = oneshot::channel();
    let step = Step::new(None, Answer::Plain(reply, Ok(())));
    (Group { steps: vec![step] }, answer)
}

fn is_refused(answer: &mut Waiting) -> bool {
    matches!(answer.try_recv(), Ok(Err(EngineError::Closed)))
}

#[test]
fn a_closed_commit_queue_gives_out_what_waits_and_refuses_what_comes() {
    let queue = CommitQueue::new();
    let (first, mut waits) = request();
    queue.push(first);
    queue.close();
    let (second, mut comes) = request();
    queue.push(second);
    assert!(is_refused(&mut comes));
    assert!(waits.try_recv().is_err(), "not answered yet");
    assert_eq!(queue.take().map(|requests| requests.len()), Some(1));
    assert!(queue.take().is_none());
    assert!(matches!(block_on(queue.room(1)), Err(EngineError::Closed)));
}

#[test]
fn a_commit_queue_gives_out_everything_that_waits_at_once() {
    let queue = CommitQueue::new();
    let _answers: Vec<_> = (0..3)
        .map(|_| {
            let (request, answer) = request();
            queue.push(request);
            answer
        })
        .collect();
    assert_eq!(queue.take().map(|requests| requests.len()), Some(3));
}

#[test]
fn the_first_to_come_waits_for_company_that_is_likely_and_no_longer_than_told() {
    const FOR_EVER: Duration = Duration::from_secs(600);
    let queue = CommitQueue::new();
    let push = || {
        let (request, answer) = request();
        queue.push(request);
        std::mem::forget(answer);
    };
    let count = |requests: Option<Vec<Request>>| requests.map(|requests| requests.len());
    push();
    assert_eq!(count(queue.take_together(1, FOR_EVER)), Some(1), "nobody else is to be expected");
    push();
    assert_eq!(count(queue.take_together(64, Duration::ZERO)), Some(1), "there is no time to wait");
    std::thread::scope(|scope| {
        push();
        let taker = scope.spawn(|| count(queue.take_together(10, FOR_EVER)));
        while !taker.is_finished() {
            push();
            std::thread::yield_now();
        }
        assert!(taker.join().unwrap().is_some_and(|taken| taken >= 9), "nine tenths are company enough");
    });
    let queue = CommitQueue::new();
    std::thread::scope(|scope| {
        let (request, _answer) = request();
        queue.push(request);
        let taker = scope.spawn(|| count(queue.take_together(10, FOR_EVER)));
        queue.close();
        assert_eq!(taker.join().unwrap(), Some(1), "nobody comes any more");
    });
}

#[test]
fn room_in_the_commit_queue_is_bounded_and_comes_back() {
    let queue = CommitQueue::new();
    // More than there can ever be is taken for all there is, or it would wait for ever.
    let all = block_on(queue.room(usize::MAX)).unwrap();
    let mut waits = std::pin::pin!(queue.room(1));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    drop(all);
    assert!(waits.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_waiting_taker_ends_when_its_queue_is_closed() {
    let (queue, groups) = (CommitQueue::new(), GroupQueue::default());
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| queue.take().is_none() && groups.take().is_none());
        queue.close();
        groups.close();
        assert!(taker.join().unwrap());
    });
}

#[test]
fn a_closed_group_queue_gives_out_what_waits_and_refuses_what_comes() {
    let groups = GroupQueue::default();
    let (first, _waits) = group();
    groups.push(first);
    groups.close();
    let (second, mut comes) = group();
    groups.push(second);
    assert!(is_refused(&mut comes));
    assert!(groups.take().is_some());
    assert!(groups.take().is_none());
    groups.drain();
}

#[test]
fn a_third_group_waits_until_one_was_applied() {
    let groups = GroupQueue::default();
    let (sent, received) = mpsc::channel();
    let _answers: Vec<_> = (0..2)
        .map(|_| {
            let (group, answer) = group();
            groups.push(group);
            answer
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (third, answer) = group();
            groups.push(third);
            sent.send(answer).unwrap();
        });
        assert!(groups.take().is_some());
        let early = received.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "a group that was taken is still under way");
        groups.applied();
        let answer = received.recv_timeout(Duration::from_secs(300));
        assert!(answer.is_ok(), "there is room now");
    });
}

#[test]
fn a_full_group_queue_that_is_closed_refuses_who_waits() {
    let groups = GroupQueue::default();
    let _answers: Vec<_> = (0..2)
        .map(|_| {
            let (group, answer) = group();
            groups.push(group);
            answer
        })
        .collect();
    std::thread::scope(|scope| {
        let pusher = scope.spawn(|| {
            let (third, mut answer) = group();
            groups.push(third);
            is_refused(&mut answer)
        });
        groups.close();
        assert!(pusher.join().unwrap());
    });
}

#[test]
fn a_refused_group_is_refused_to_everyone_in_it() {
    let (reply, mut lost) = oneshot::channel();
    let (mut group, mut would_succeed) = group();
    let answer = Answer::Plain(reply, Err(EngineError::BatchEmpty));
    group.steps.push(Step::new(None, answer));
    group.refuse(|| EngineError::Overloaded);
    assert!(matches!(would_succeed.try_recv(), Ok(Err(EngineError::Overloaded))));
    let lost = lost.try_recv();
    assert!(
        matches!(lost, Ok(Err(EngineError::Overloaded))),
        "it may have lost to one of the group: {lost:?}"
    );
}
