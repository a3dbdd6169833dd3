use std::time::Duration;

use pleach_engine::{BucketName, Expiry};

use super::*;
use crate::options::NatsOptions;

/// What comes back of an operation that was stored at revision 7 in second 1000.
fn stored(operation: &Operation, config: &BucketConfig, more: &[(&str, &str)]) -> Change {
    let names = Names::new(&NatsOptions::default(), &BucketName::parse("carts").unwrap());
    let (headers, payload) = message(operation, config, Timestamp::from_micros(999_000_000));
    let pairs = headers.iter().map(|(name, values)| (AsRef::<str>::as_ref(name), values[0].as_str().trim()));
    let name = name("0123", Timestamp::from_micros(999_000_000), BatchPart::SINGLE);
    let pairs = pairs.chain([(header::MESSAGE_ID, name.as_str())]);
    let said = Said::by(pairs.chain(more.iter().copied()));
    let (subject, time) = (names.subject(&operation.key), Timestamp::from_micros(1_000_000_000));
    Record { subject, sequence: 7, time, said, payload }.into_change(&names).unwrap()
}

fn put() -> Operation {
    Operation::put(Key::parse("a.b").unwrap(), "value")
}

#[test]
fn a_record_comes_back_as_it_was_committed() {
    let expiring = put().expiring(Expiry::After(Duration::from_millis(1500)));
    let Change { entry, batch } = stored(&expiring, &BucketConfig::default(), &[]);
    assert_eq!((entry.key.as_str(), entry.value.as_ref()), ("a.b", &b"value"[..]));
    assert_eq!((entry.revision.get(), entry.time.as_micros(), entry.op), (7, 999_000_000, Op::Put));
    assert_eq!(entry.expires.map(Timestamp::as_micros), Some(1_000_500_000));
    assert_eq!(batch, BatchPart::SINGLE);
}

#[test]
fn the_name_of_a_message_tells_its_time_and_its_part() {
    let named = |name: &str| {
        let Change { entry, batch } = stored(&put(), &BucketConfig::default(), &[(header::MESSAGE_ID, name)]);
        (entry.time.as_micros(), batch)
    };
    let part = BatchPart { index: 2, size: 5 };
    assert_eq!(named(&name("0123", Timestamp::from_micros(17), part)), (17, part));
    // Whatever another client has given is no name of ours: the time of the message counts.
    for other in
        ["", "0123.17.2/5", "pleach.0123", "pleach.0123.17", "pleach.0123.17.5/5", "pleach.0123.x.2/5"]
    {
        assert_eq!(named(other), (1_000_000_000, BatchPart::SINGLE), "{other}");
    }
}

#[test]
fn headers_that_mean_something_to_nats_travel_quoted() {
    let mut headers = Headers::new();
    for (name, value) in [
        ("Trace", "1"),
        ("Nats-TTL", "5"),
        ("nats-rollup", "all"),
        ("KV-Operation", "DEL"),
        ("Pleach-Time", "0"),
        ("Empty", ""),
        ("Spaced", "  a \\\"b "),
    ] {
        headers.set(name, value).unwrap();
    }
    let operation = put().with_headers(headers.clone());
    let (sent, _) = message(&operation, &BucketConfig::default(), Timestamp::default());
    assert!(sent.get("Nats-TTL").is_none() && sent.get("KV-Operation").is_none());
    let Change { entry, .. } = stored(&operation, &BucketConfig::default(), &[("Nats-Sequence", "7")]);
    assert_eq!((entry.headers, entry.op), (headers, Op::Put));
}

#[test]
fn a_marker_may_be_forgotten_only_where_nothing_is_before_it() {
    let delete = Operation::delete(Key::parse("a").unwrap());
    let sent = |history: u8| {
        let config = BucketConfig { history: history.try_into().unwrap(), ..BucketConfig::default() };
        message(&delete, &config, Timestamp::default()).0
    };
    let kept = |headers: &HeaderMap| headers.get(header::TTL).is_none();
    assert!(kept(&sent(2)) && !kept(&sent(1)));
    assert!(sent(1).get(header::ROLLUP).is_some(), "so that it stays true should history be raised");
    for ttl in [None, Some(Duration::from_secs(5))] {
        let config = BucketConfig { ttl, ..BucketConfig::default() };
        assert_eq!(stored(&delete, &config, &[]).entry.op, Op::Delete);
    }
}

#[test]
fn markers_of_the_server_say_why() {
    for (reason, op) in [("MaxAge", Op::Expire), ("Remove", Op::Delete), ("Purge", Op::Purge)] {
        let entry = stored(&put(), &BucketConfig::default(), &[(header::MARKER, reason)]).entry;
        assert_eq!((entry.op, entry.value.len(), entry.expires), (op, 0, None), "{reason}");
    }
}

#[test]
fn seconds_are_rounded_up() {
    for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (60_000, 60)] {
        assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
    }
}
