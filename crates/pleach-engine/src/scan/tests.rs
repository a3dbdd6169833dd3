use proptest::prelude::*;

use super::*;
use crate::{KEY_BYTES_MAX, KeyFilter};

fn cursor() -> impl Strategy<Value = PageCursor> {
    let last = "[-/_=a-zA-Z0-9]{1,20}(\\.[a-z]{1,5}){0,3}";
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), last).prop_map(
        |(store, bucket, snapshot, time, query, last)| PageCursor {
            store,
            bucket,
            snapshot,
            time: Timestamp::from_micros(time),
            query,
            last: Key::parse_reserved(last).unwrap(),
        },
    )
}

proptest! {
    #[test]
    fn a_cursor_survives_its_token(cursor in cursor()) {
        let token = cursor.encode();
        prop_assert_eq!(PageCursor::decode(&token).unwrap(), cursor);
        prop_assert_eq!(token.to_string().parse::<PageToken>().unwrap(), token);
    }

    #[test]
    fn any_text_is_no_token(text in prop_oneof![".*", "[-_a-zA-Z0-9]{0,200}"]) {
        let refused = matches!(text.parse::<PageToken>(), Err(EngineError::InvalidPageToken { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn a_changed_token_is_no_token(cursor in cursor(), at in any::<prop::sample::Index>(), by in 1..=255_u8) {
        let mut bytes = URL_SAFE_NO_PAD.decode(cursor.encode().to_string()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        let changed = PageToken(URL_SAFE_NO_PAD.encode(&bytes));
        prop_assert!(PageCursor::decode(&changed).is_err());
        bytes.truncate(at);
        let cut = PageToken(URL_SAFE_NO_PAD.encode(&bytes));
        prop_assert!(PageCursor::decode(&cut).is_err());
    }

    #[test]
    fn what_is_left_lies_after_the_last_key(last in "[a-c]{1,3}", key in "[a-c]{1,3}") {
        let (last, key) = (Key::parse(last).unwrap(), Key::parse(key).unwrap());
        let mut query = ScanQuery { selection: Selection::prefix("a"), ..ScanQuery::default() };
        let in_prefix = key.as_str().starts_with('a');
        let left = query.range_after(Some(&last)).contains(key.as_bytes());
        prop_assert_eq!(left, in_prefix && key > last);
        query.direction = Direction::Backward;
        let left = query.range_after(Some(&last)).contains(key.as_bytes());
        prop_assert_eq!(left, in_prefix && key < last);
        prop_assert_eq!(query.range_after(None).contains(key.as_bytes()), in_prefix);
    }
}

#[test]
fn a_token_of_the_longest_key_is_taken() {
    let last = Key::parse("k".repeat(KEY_BYTES_MAX)).unwrap();
    let time = Timestamp::MAX;
    let cursor = PageCursor { store: 1, bucket: 2, snapshot: 3, time, query: 4, last };
    assert_eq!(PageCursor::decode(&cursor.encode()).unwrap(), cursor);
}

#[test]
fn a_token_of_another_version_says_so() {
    let last = Key::parse("k").unwrap();
    let cursor = PageCursor { store: 1, bucket: 2, snapshot: 3, time: Timestamp::MAX, query: 4, last };
    let mut bytes = URL_SAFE_NO_PAD.decode(cursor.encode().to_string()).unwrap();
    bytes[0] += 1;
    let body = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..body]).to_le_bytes();
    bytes[body..].copy_from_slice(&checksum);
    let decoded = PageCursor::decode(&PageToken(URL_SAFE_NO_PAD.encode(&bytes)));
    assert!(matches!(decoded, Err(EngineError::InvalidPageToken { reason: "it is of another version" })));
}

#[test]
fn queries_that_read_differently_have_different_digests() {
    let plain = ScanQuery::default();
    let filtered = Selection::filter(KeyFilter::all());
    let different = [
        ScanQuery { selection: Selection::prefix("a"), ..plain.clone() },
        ScanQuery { selection: filtered, ..plain.clone() },
        ScanQuery { direction: Direction::Backward, ..plain.clone() },
        ScanQuery { keys_only: true, ..plain.clone() },
    ];
    for other in &different {
        assert_ne!(other.digest(), plain.digest());
    }
    assert_eq!(ScanQuery { limit: 7, ..plain.clone() }.digest(), plain.digest());
}

#[test]
fn a_page_has_at_least_one_entry_and_at_most_ten_thousand() {
    for (limit, good) in [(0, false), (1, true), (PAGE_ENTRIES_MAX, true), (PAGE_ENTRIES_MAX + 1, false)] {
        assert_eq!(ScanQuery { limit, ..ScanQuery::default() }.check().is_ok(), good);
    }
}
