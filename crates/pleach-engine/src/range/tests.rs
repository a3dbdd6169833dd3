use std::ops::Bound;

use proptest::prelude::*;

use super::*;

/// Few bytes, and the ends of what a byte can be, so that bounds meet.
fn text() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0), Just(b'a'), Just(b'b'), Just(0xfe), Just(0xff)], 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), text().prop_map(Bound::Included), text().prop_map(Bound::Excluded)]
}

fn range() -> impl Strategy<Value = KeyRange> {
    (bound(), bound()).prop_map(|(start, end)| KeyRange { start, end })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_prefix_holds_what_starts_with_it(prefix in text(), key in text()) {
        prop_assert_eq!(KeyRange::prefix(&prefix).contains(&key), key.starts_with(&prefix));
    }

    #[test]
    fn an_intersection_holds_what_both_hold(one in range(), other in range(), key in text()) {
        let both = one.intersect(&other);
        prop_assert_eq!(both.contains(&key), one.contains(&key) && other.contains(&key));
        prop_assert_eq!(other.intersect(&one).contains(&key), both.contains(&key));
    }

    #[test]
    fn an_empty_range_holds_nothing(range in range(), key in text()) {
        prop_assert!(!(range.is_empty() && range.contains(&key)));
    }

    #[test]
    fn one_key_alone_is_a_range(one in text(), key in text()) {
        prop_assert_eq!(KeyRange::only(&one).contains(&key), one == key);
    }

    #[test]
    fn a_covering_range_holds_the_selection(
        range in range(),
        filter in "[ab*](\\.[ab*]){0,2}(\\.>)?",
        key in "[ab](\\.[ab]){0,3}",
    ) {
        let selection = Selection { range, filter: Some(KeyFilter::parse(filter).unwrap()) };
        let key = Key::parse(key).unwrap();
        prop_assert!(!selection.contains(&key) || selection.covering_range().contains(key.as_bytes()));
    }
}

#[test]
fn inverted_and_single_ranges_know_whether_they_are_empty() {
    assert!(KeyRange::between("b", "a").is_empty());
    assert!(KeyRange::between("a", "a").is_empty());
    assert!(!KeyRange::only("a").is_empty());
    assert!(!KeyRange::all().is_empty());
    assert!(!KeyRange::prefix("").is_empty());
    assert_eq!(KeyRange::prefix([0xff]).end, Bound::Unbounded);
    assert_eq!(KeyRange::prefix([b'a', 0xff]).end, Bound::Excluded(b"b".to_vec()));
}
