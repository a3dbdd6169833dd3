use proptest::prelude::*;

use super::*;
use crate::BucketName;

#[test]
fn keys_are_tokens_between_dots() {
    for good in ["a", "a.b", "user.42.cart", "-/_=aZ09", "a/b=c_d-e", &"k".repeat(KEY_BYTES_MAX)] {
        assert_eq!(Key::parse(good).unwrap().as_str(), good);
    }
    let tokens: Vec<String> = Key::parse("user.42.cart").unwrap().tokens().map(String::from).collect();
    assert_eq!(tokens, ["user", "42", "cart"]);
}

#[test]
fn a_bad_key_is_told_its_fault_and_place() {
    assert_eq!(Key::parse(""), Err(InvalidName::Empty));
    let long = Key::parse("k".repeat(KEY_BYTES_MAX + 1));
    assert!(matches!(long, Err(InvalidName::TooLong { bytes: 1025, limit: 1024, .. })));
    for (text, wrong, place) in
        [("a b", ' ', 1), ("a.*", '*', 2), (">", '>', 0), ("aé", 'é', 1), ("a\0", '\0', 1)]
    {
        assert!(matches!(Key::parse(text), Err(InvalidName::Character { character, at, .. })
            if character == wrong && at == place));
    }
    for (text, place) in [(".", 0), ("a.", 2), (".a", 0), ("a..b", 2)] {
        assert!(matches!(Key::parse(text), Err(InvalidName::EmptyToken { at, .. }) if at == place));
    }
}

#[test]
fn reserved_keys_are_for_those_who_ask() {
    for reserved in ["_kv", "_kv.a", "_kvx"] {
        assert!(matches!(Key::parse(reserved), Err(InvalidName::Reserved { .. })));
        assert!(Key::parse_reserved(reserved).unwrap().is_reserved());
    }
    assert!(!Key::parse("a._kv").unwrap().is_reserved());
}

#[test]
fn a_long_text_is_cut_in_messages_between_characters() {
    let text = "é".repeat(1000);
    let cut = excerpt(&text);
    assert_eq!(cut.chars().count(), 65);
    assert!(cut.ends_with('…'));
}

/// The rules, once more and as plainly as they can be put.
fn is_key(text: &str) -> bool {
    let token = |token: &str| {
        !token.is_empty() && token.chars().all(|c| c.is_ascii_alphanumeric() || "-/_=".contains(c))
    };
    text.len() <= KEY_BYTES_MAX && text.split('.').all(token)
}

proptest! {
    #[test]
    fn any_text_is_a_key_or_told_why_not(text in prop_oneof![".*", "[-/_=a-z0-9.*> ]{0,12}", "(_kv)?[a.]{0,5}"]) {
        let parsed = Key::parse_reserved(&text);
        prop_assert_eq!(parsed.is_ok(), is_key(&text));
        if let Ok(key) = parsed {
            prop_assert_eq!(key.as_str(), &*text);
            prop_assert_eq!(key.tokens().collect::<Vec<_>>().join("."), &*text);
            prop_assert_eq!(Key::parse(&text).is_ok(), !text.starts_with("_kv"));
        }
    }

    #[test]
    fn keys_sort_by_their_bytes(one in "[-/_=aZ09]{1,6}", other in "[-/_=aZ09.]{0,3}[-/_=aZ09]") {
        let (one, Ok(other)) = (Key::parse_reserved(one).unwrap(), Key::parse_reserved(other)) else {
            return Ok(());
        };
        prop_assert_eq!(one.cmp(&other), one.as_bytes().cmp(other.as_bytes()));
    }

    #[test]
    fn any_text_is_a_bucket_name_or_told_why_not(text in prop_oneof![".*", "[-_a-z0-9. ]{0,6}", "[a-z]{120,140}"]) {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_name = (1..=128).contains(&text.len()) && text.chars().all(allowed);
        let parsed = BucketName::parse(&text);
        prop_assert_eq!(parsed.is_ok(), is_name);
        if let Ok(name) = parsed {
            prop_assert_eq!(name.as_str(), &*text);
            prop_assert_eq!(name.to_string().parse::<BucketName>().unwrap(), name);
        }
    }
}
