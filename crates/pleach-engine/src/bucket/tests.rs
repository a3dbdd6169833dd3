use proptest::prelude::*;

use super::*;

fn config() -> impl Strategy<Value = BucketConfig> {
    let ttl = proptest::option::of((0..10_000_000_000_u64, 0..1_000_000_000_u32));
    let ttl = ttl.prop_map(|ttl| ttl.map(|(seconds, nanos)| Duration::new(seconds, nanos)));
    let kept = (ttl.clone(), ttl.clone(), any::<Option<u64>>());
    let metadata = proptest::collection::btree_map(".{0,8}", ".{0,8}", 0..3);
    (1..=255_u8, ttl, any::<u32>(), any::<bool>(), any::<bool>(), kept, metadata).prop_map(
        |(history, ttl, value_bytes_max, buffered, lz4, (marker_ttl, feed_time, feed_bytes), metadata)| {
            BucketConfig {
                history: NonZeroU8::new(history).unwrap(),
                ttl,
                marker_ttl,
                feed_time,
                feed_bytes,
                value_bytes_max,
                durability: if buffered { Durability::Buffered } else { Durability::Synced },
                compression: if lz4 { Compression::Lz4 } else { Compression::None },
                metadata,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_configuration_survives_its_json(config in config()) {
        let json = serde_json::to_string(&config).unwrap();
        prop_assert_eq!(serde_json::from_str::<BucketConfig>(&json).unwrap(), config);
    }

    #[test]
    fn differences_are_those_of_the_fields(one in config(), other in config()) {
        prop_assert_eq!(one.differences(&other).is_empty(), one == other);
        prop_assert_eq!(one.differences(&one), Vec::<&str>::new());
        prop_assert_eq!(one.differences(&other), other.differences(&one));
    }

    #[test]
    fn the_earlier_expiry_holds(time in 0..1_000_u64, own in proptest::option::of(0..2_000_u64), ttl in proptest::option::of(1..1_000_u64)) {
        let config = BucketConfig { ttl: ttl.map(Duration::from_micros), ..BucketConfig::default() };
        let expected = own.into_iter().chain(ttl.map(|ttl| time + ttl)).min();
        let expires = config.expiry(Timestamp::from_micros(time), own.map(Timestamp::from_micros));
        prop_assert_eq!(expires.map(Timestamp::as_micros), expected);
    }
}

#[test]
fn a_configuration_is_written_for_people() {
    let config = BucketConfig { ttl: Some(Duration::from_secs(90)), ..BucketConfig::default() };
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(json["ttl"], "1m 30s");
    assert_eq!(json["durability"], "synced");
    assert_eq!(json["marker_ttl"], "7days");
    for left_out in ["metadata", "feed_time", "feed_bytes"] {
        assert_eq!(json.get(left_out), None);
    }
    assert_eq!(serde_json::from_str::<BucketConfig>("{}").unwrap(), BucketConfig::default());
    let short: BucketConfig =
        serde_json::from_str(r#"{ "ttl": "5s", "history": 3, "compression": "lz4" }"#).unwrap();
    assert_eq!((short.ttl, short.history.get()), (Some(Duration::from_secs(5)), 3));
}

#[test]
fn a_configuration_from_before_a_field_has_its_default() {
    let old = r#"{"history":3,"value_bytes_max":10,"durability":"synced","compression":"none"}"#;
    let read: BucketConfig = serde_json::from_str(old).unwrap();
    assert_eq!(read.marker_ttl, Some(MARKER_TTL_DEFAULT));
    assert_eq!((read.feed_time, read.feed_bytes), (None, None));
}

#[test]
fn markers_kept_for_ever_are_so_after_a_round_trip() {
    let for_ever = BucketConfig { marker_ttl: None, ..BucketConfig::default() };
    let json = serde_json::to_string(&for_ever).unwrap();
    assert!(json.contains(r#""marker_ttl":null"#), "{json}");
    assert_eq!(serde_json::from_str::<BucketConfig>(&json).unwrap(), for_ever);
}

#[test]
fn a_configuration_with_a_fault_cannot_be_read() {
    for bad in [r#"{ "ttl": "soon" }"#, r#"{ "history": 0 }"#, r#"{ "histroy": 1 }"#, r#"{ "ttl": 5 }"#] {
        assert!(serde_json::from_str::<BucketConfig>(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_configuration_is_checked_against_the_engine() {
    let able = Capabilities::complete("complete");
    BucketConfig::default().check(&able).unwrap();
    let check = |change: fn(&mut BucketConfig)| {
        let mut config = BucketConfig::default();
        change(&mut config);
        config.check(&able)
    };
    assert!(check(|config| config.history = NonZeroU8::new(HISTORY_MAX).unwrap()).is_ok());
    assert!(check(|config| config.history = NonZeroU8::new(HISTORY_MAX + 1).unwrap()).is_err());
    assert!(check(|config| config.value_bytes_max = 64 << 20).is_ok());
    assert!(check(|config| config.value_bytes_max = (64 << 20) + 1).is_err());
    assert!(check(|config| config.ttl = Some(TTL_MIN)).is_ok());
    assert!(check(|config| config.ttl = Some(TTL_MAX)).is_ok());
    assert!(check(|config| config.ttl = Some(Duration::MAX)).is_err());
    let too_long = Some(TTL_MAX + Duration::from_nanos(1));
    for bad in [Some(Duration::ZERO), too_long] {
        let markers = BucketConfig { marker_ttl: bad, ..BucketConfig::default() };
        assert!(matches!(markers.check(&able), Err(EngineError::InvalidConfig { field: "marker_ttl", .. })));
        let feed = BucketConfig { feed_time: bad, ..BucketConfig::default() };
        assert!(matches!(feed.check(&able), Err(EngineError::InvalidConfig { field: "feed_time", .. })));
    }
    for good in [Some(Duration::from_nanos(1)), Some(TTL_MAX), None] {
        let kept = BucketConfig { marker_ttl: good, feed_time: good, ..BucketConfig::default() };
        kept.check(&able).unwrap();
    }
    let unsynced = Capabilities { synced_commits: false, ..able.clone() };
    assert!(matches!(BucketConfig::default().check(&unsynced), Err(EngineError::Unsupported { .. })));
    let coarse = Capabilities { ttl_resolution: Duration::from_secs(1), ..able };
    let short = BucketConfig { ttl: Some(Duration::from_millis(999)), ..BucketConfig::default() };
    assert!(matches!(short.check(&coarse), Err(EngineError::TtlOutOfRange { .. })));
}
