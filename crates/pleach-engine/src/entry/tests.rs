use proptest::prelude::*;

use super::*;

#[test]
fn headers_are_sorted_and_have_one_value_a_name() {
    let mut headers = Headers::new();
    assert!(headers.is_empty());
    for (name, value) in [("b", "1"), ("a", "2"), ("b", "3"), ("B", "")] {
        headers.set(name, value).unwrap();
    }
    let all: Vec<(&str, &str)> = headers.iter().collect();
    assert_eq!(all, [("B", ""), ("a", "2"), ("b", "3")]);
    assert_eq!((headers.get("a"), headers.get("c")), (Some("2"), None));
    assert_eq!(headers.bytes(), 5);
}

#[test]
fn bad_headers_are_refused_and_change_nothing() {
    let mut headers = Headers::new();
    headers.set("a", "1").unwrap();
    for name in ["", "a b", "é", "a:b", &"n".repeat(129)] {
        assert!(matches!(headers.set(name, "1"), Err(InvalidHeader::Name { .. })), "{name}");
    }
    for value in ["a\nb", "\0", "\u{85}"] {
        assert!(matches!(headers.set("b", value), Err(InvalidHeader::Value { .. })), "{value:?}");
    }
    assert_eq!(headers.iter().collect::<Vec<_>>(), [("a", "1")]);
}

#[test]
fn headers_together_have_a_limit() {
    let mut headers = Headers::new();
    headers.set("a", &"x".repeat(HEADERS_BYTES_MAX - 1)).unwrap();
    let result = headers.set("b", "");
    assert_eq!(
        result,
        Err(InvalidHeader::TooLarge { bytes: HEADERS_BYTES_MAX + 1, limit: HEADERS_BYTES_MAX })
    );
    // What is replaced does not count.
    headers.set("a", &"y".repeat(HEADERS_BYTES_MAX - 1)).unwrap();
    assert!(headers.set("a", &"y".repeat(HEADERS_BYTES_MAX)).is_err());
    headers.set("a", "").unwrap();
    headers.set("b", "").unwrap();
}

#[test]
fn operations_survive_their_names() {
    for op in [Op::Put, Op::Delete, Op::Purge, Op::Expire] {
        assert_eq!(op.to_string().parse::<Op>(), Ok(op));
        assert_eq!(serde_json::to_string(&op).unwrap(), format!("\"{op}\""));
        assert_eq!(op.is_put(), op == Op::Put);
    }
    assert!("Put".parse::<Op>().is_err());
}

#[test]
fn the_last_part_of_a_batch_knows_it() {
    assert!(BatchPart::SINGLE.is_last());
    assert!(!BatchPart { index: 998, size: 1000 }.is_last());
    assert!(BatchPart { index: 999, size: 1000 }.is_last());
}

proptest! {
    #[test]
    fn headers_never_exceed_their_limit_and_remember_what_was_set(
        sets in proptest::collection::vec(("[a-e]{1,2}|.{0,3}", "x{0,900}|.{0,5}"), 0..12),
    ) {
        let mut headers = Headers::new();
        let mut model = std::collections::BTreeMap::new();
        for (name, value) in sets {
            if headers.set(&name, &value).is_ok() {
                model.insert(name, value);
            }
            prop_assert!(headers.bytes() <= HEADERS_BYTES_MAX);
            let set: Vec<(&str, &str)> = model.iter().map(|(name, value)| (&**name, &**value)).collect();
            prop_assert_eq!(headers.iter().collect::<Vec<_>>(), set);
        }
    }
}
