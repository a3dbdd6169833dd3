use proptest::prelude::*;

use super::*;

fn check(batch: Batch) -> Result<CheckedBatch, EngineError> {
    let config = BucketConfig { value_bytes_max: 8, ..BucketConfig::default() };
    let able =
        Capabilities { batch_operations_max: 6, batch_bytes_max: 30, ..Capabilities::complete("small") };
    batch.check(&BucketName::parse("b").unwrap(), &config, &able)
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

#[test]
fn each_rule_of_a_batch_has_its_error() {
    assert!(matches!(check(Batch::new()), Err(EngineError::BatchEmpty)));
    let long: Batch = (0..7).map(|n| Operation::delete(key(&format!("{n}")))).collect();
    assert!(matches!(check(long), Err(EngineError::BatchTooLong { operations: 7, limit: 6 })));
    let twice = Batch::new().put(key("a"), "1").delete(key("a"));
    assert!(matches!(check(twice), Err(EngineError::DuplicateKey { .. })));
    let large = Batch::new().put(key("a"), "123456789");
    assert!(matches!(check(large), Err(EngineError::ValueTooLarge { bytes: 9, limit: 8, .. })));
    let many_bytes =
        Batch::new().put(key("aaa"), "12345678").put(key("bbb"), "12345678").put(key("ccc"), "123456");
    assert!(matches!(check(many_bytes), Err(EngineError::BatchTooLarge { bytes: 31, limit: 30 })));
    for ttl in [Duration::ZERO, TTL_MAX + Duration::from_nanos(1), Duration::MAX] {
        let absurd = Operation::put(key("a"), "1").expiring(Expiry::After(ttl));
        assert!(matches!(check(absurd.into()), Err(EngineError::TtlOutOfRange { .. })));
    }
}

#[test]
fn an_expiry_becomes_a_moment_without_overflow() {
    let time = Timestamp::from_micros(1_000_000);
    assert_eq!(Expiry::Bucket.moment(time), None);
    assert_eq!(Expiry::After(Duration::from_secs(1)).moment(time), Some(Timestamp::from_micros(2_000_000)));
    assert_eq!(Expiry::After(Duration::MAX).moment(time), Some(Timestamp::MAX));
    assert_eq!(Expiry::At(Timestamp::default()).moment(time), Some(Timestamp::default()));
}

#[test]
fn only_a_put_expires() {
    let expiry = Expiry::After(Duration::from_secs(1));
    let Action::Put { expiry: set, .. } = Operation::put(key("a"), "1").expiring(expiry).action else {
        panic!("it is a put")
    };
    assert_eq!(set, expiry);
    assert_eq!(Operation::delete(key("a")).expiring(expiry), Operation::delete(key("a")));
}

proptest! {
    #[test]
    fn a_batch_passes_exactly_if_it_keeps_every_rule(
        operations in proptest::collection::vec(("[a-h]{1,2}", proptest::option::of("[x]{0,9}")), 0..8),
    ) {
        let mut batch = Batch::new();
        for (at, value) in &operations {
            batch.push(match value {
                Some(value) => Operation::put(key(at), value.clone()),
                None => Operation::delete(key(at)),
            });
        }
        let length = |(at, value): &(String, Option<String>)| at.len() + value.as_ref().map_or(0, String::len);
        let bytes: usize = operations.iter().map(length).sum();
        let keys: HashSet<&String> = operations.iter().map(|(at, _)| at).collect();
        let keeps = (1..=6).contains(&operations.len())
            && keys.len() == operations.len()
            && operations.iter().flat_map(|(_, value)| value).all(|value| value.len() <= 8)
            && bytes <= 30;
        let checked = check(batch.clone());
        prop_assert_eq!(checked.is_ok(), keeps);
        if let Ok(checked) = checked {
            prop_assert_eq!(checked.bytes(), bytes);
            prop_assert_eq!(checked.operations(), batch.operations());
        }
    }
}
