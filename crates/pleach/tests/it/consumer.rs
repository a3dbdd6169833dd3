use futures_util::StreamExt;
use pleach::{Batch, ConsumeOptions, Consumer, ConsumerStart, Error, ErrorKind, Key, KeyFilter, Operation};

use crate::Given;

/// The keys of the next `count` changes.
async fn seen(consumer: &mut Consumer, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(consumer.next().await.unwrap().unwrap().entry.key.to_string());
    }
    seen
}

fn from(start: ConsumerStart) -> ConsumeOptions {
    ConsumeOptions { start, ..ConsumeOptions::default() }
}

pub(crate) async fn a_consumer_goes_on_after_what_it_acknowledged(given: Given) {
    let carts = given.bucket().await;
    for key in ["a", "b", "c"] {
        carts.put(key, "1").await.unwrap();
    }
    let mut consumer = carts.consume("mails").await.unwrap();
    assert_eq!(consumer.name().as_str(), "mails");
    let first = consumer.next().await.unwrap().unwrap();
    assert_eq!(seen(&mut consumer, 2).await, ["b", "c"]);
    drop(consumer);

    let mut consumer = carts.consume("mails").await.unwrap();
    assert_eq!(seen(&mut consumer, 1).await, ["a"], "nothing was acknowledged");
    consumer.ack(&first).await.unwrap();
    let second = consumer.next().await.unwrap().unwrap();
    consumer.ack(&second).await.unwrap();
    consumer.ack(&first).await.unwrap();
    let mut consumer = carts.consume("mails").await.unwrap();
    assert_eq!(seen(&mut consumer, 1).await, ["c"]);
    consumer.ack_up_to(carts.info().await.unwrap().last_revision).await.unwrap();
    carts.delete("a").await.unwrap();
    let mut consumer = carts.consume("mails").await.unwrap();
    let change = consumer.next().await.unwrap().unwrap();
    assert_eq!((change.entry.op.as_str(), change.entry.key.as_str()), ("delete", "a"));
}

pub(crate) async fn a_consumer_begins_where_it_is_created(given: Given) {
    let carts = given.bucket().await;
    carts.put("a", "1").await.unwrap();
    let second = carts.put("b", "1").await.unwrap();
    let mut now = carts.consume_with("now", from(ConsumerStart::Now)).await.unwrap();
    let mut at = carts.consume_with("at", from(ConsumerStart::Revision(second))).await.unwrap();
    carts.put("c", "1").await.unwrap();
    assert_eq!(seen(&mut now, 1).await, ["c"]);
    assert_eq!(seen(&mut at, 2).await, ["b", "c"]);
    let mut again = carts.consume_with("at", from(ConsumerStart::Now)).await.unwrap();
    assert_eq!(seen(&mut again, 1).await, ["b"], "it is there already");
    let far = carts.consume_with("far", from(ConsumerStart::Revision(second.plus(1000)))).await;
    assert_eq!(far.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(matches!(carts.consume("no name").await, Err(Error::ConsumerName(_))));
}

pub(crate) async fn a_consumer_delivers_what_passes_its_filters(given: Given) {
    let carts = given.bucket().await;
    let filters = vec![KeyFilter::parse("a.*").unwrap(), KeyFilter::parse("c").unwrap()];
    let options = || ConsumeOptions { filters: filters.clone(), ..ConsumeOptions::default() };
    let mut consumer = carts.consume_with("mails", options()).await.unwrap();
    for key in ["a.1", "b", "c", "d", "a.2"] {
        carts.put(key, "1").await.unwrap();
    }
    assert_eq!(seen(&mut consumer, 1).await, ["a.1"]);
    let change = consumer.next().await.unwrap().unwrap();
    consumer.ack(&change).await.unwrap();
    let mut consumer = carts.consume_with("mails", options()).await.unwrap();
    assert_eq!(seen(&mut consumer, 1).await, ["a.2"]);
}

pub(crate) async fn acknowledging_inside_a_batch_stops_there(given: Given) {
    let carts = given.bucket().await;
    let put = |key| Operation::put(Key::parse(key).unwrap(), "1");
    carts.commit(["a", "b", "c"].map(put).into_iter().collect::<Batch>()).await.unwrap();
    let mut consumer = carts.consume("mails").await.unwrap();
    let parts: Vec<_> = [
        consumer.next().await.unwrap().unwrap(),
        consumer.next().await.unwrap().unwrap(),
        consumer.next().await.unwrap().unwrap(),
    ]
    .into();
    assert_eq!(parts.iter().map(|part| part.batch.is_last()).collect::<Vec<_>>(), [false, false, true]);
    consumer.ack(&parts[1]).await.unwrap();
    let mut inside = carts.consume("mails").await.unwrap();
    let rest = inside.next().await.unwrap().unwrap();
    assert_eq!(rest, parts[2]);
}

pub(crate) async fn consumers_tell_how_far_they_are_behind(given: Given) {
    let carts = given.bucket().await;
    carts.consume("slow").await.unwrap();
    let mut fast = carts.consume("fast").await.unwrap();
    let mut last = carts.put("a", "1").await.unwrap();
    for _ in 0..4 {
        last = carts.put("a", "1").await.unwrap();
    }
    fast.ack_up_to(last).await.unwrap();
    let listed = carts.consumers().await.unwrap();
    let names: Vec<_> = listed.iter().map(|status| status.info.name.as_str()).collect();
    assert_eq!(names, ["fast", "slow"]);
    assert_eq!(listed[0].lag, 0);
    assert!(listed[1].lag >= 5, "{}", listed[1].lag);
    assert_eq!(listed[0].info.acknowledged, Some(given.store.now()));
    assert!(listed.iter().all(|status| status.missed_before.is_none()));
    assert_eq!(carts.consumer("slow").await.unwrap(), listed[1]);
    // Only its own bucket counts.
    given.store.create_bucket("other").await.unwrap().put("a", "1").await.unwrap();
    assert_eq!(carts.consumer("fast").await.unwrap().lag, 0);
}

pub(crate) async fn a_consumer_can_be_reset_and_deleted(given: Given) {
    let carts = given.bucket().await;
    let first = carts.put("a", "1").await.unwrap();
    let second = carts.put("b", "1").await.unwrap();
    carts.consume("mails").await.unwrap().ack_up_to(second).await.unwrap();
    let status = carts.reset_consumer("mails", ConsumerStart::Revision(first)).await.unwrap();
    assert_eq!((status.info.next, status.lag), (first, second.get() - first.get() + 1));
    assert_eq!(seen(&mut carts.consume("mails").await.unwrap(), 2).await, ["a", "b"]);
    assert_eq!(carts.reset_consumer("mails", ConsumerStart::Now).await.unwrap().lag, 0);

    let mut consumer = carts.consume("mails").await.unwrap();
    carts.delete_consumer("mails").await.unwrap();
    assert_eq!(consumer.ack_up_to(second).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(carts.consumer("mails").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(carts.delete_consumer("mails").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(carts.consumers().await.unwrap(), []);
}

pub(crate) async fn two_readers_of_one_consumer_both_see_everything(given: Given) {
    let carts = given.bucket().await;
    let mut one = carts.consume("mails").await.unwrap();
    let mut other = carts.consume("mails").await.unwrap();
    let last = carts.put("a", "1").await.unwrap();
    assert_eq!(seen(&mut one, 1).await, ["a"]);
    one.ack_up_to(last).await.unwrap();
    assert_eq!(seen(&mut other, 1).await, ["a"]);
}

pub(crate) async fn a_consumer_is_a_stream(given: Given) {
    let carts = given.bucket().await;
    let mut consumer = carts.consume("mails").await.unwrap();
    carts.put("a", "1").await.unwrap();
    assert_eq!(StreamExt::next(&mut consumer).await.unwrap().unwrap().entry.key.as_str(), "a");
    given.store.delete_bucket("carts").await.unwrap();
    let ended = StreamExt::next(&mut consumer).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(StreamExt::next(&mut consumer).await.is_none());
}

/// Only the in-memory engine forgets its feed as fast as that.
#[test]
fn a_consumer_too_far_behind_is_told_so_by_name() {
    crate::run(async {
        let carts = Given::in_memory().bucket().await;
        let open = carts.consume("mails").await.unwrap();
        crate::projection::outrun_the_feed(&carts).await;
        let status = carts.consumer("mails").await.unwrap();
        let floor = carts.info().await.unwrap().feed_floor;
        assert_eq!(status.missed_before, Some(floor));
        let mut again = carts.consume("mails").await.unwrap();
        for mut consumer in [open, carts.consume("mails").await.unwrap()] {
            let error = consumer.next().await.unwrap_err();
            assert!(matches!(&error, Error::ConsumerBehind { bucket, consumer, oldest }
                if bucket.as_str() == "carts" && consumer.as_str() == "mails" && *oldest == floor));
            assert_eq!(error.kind(), ErrorKind::Compacted);
            assert!(error.help().contains("pleach consumer reset"));
            assert_eq!(consumer.next().await.unwrap(), None);
        }
        assert!(again.next().await.is_err());
        carts.reset_consumer("mails", ConsumerStart::Oldest).await.unwrap();
        assert_eq!(carts.consumer("mails").await.unwrap().missed_before, None);
        let mut consumer = carts.consume("mails").await.unwrap();
        assert_eq!(consumer.next().await.unwrap().unwrap().entry.revision, floor);
    });
}
