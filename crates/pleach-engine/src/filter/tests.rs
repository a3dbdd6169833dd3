use proptest::prelude::*;

use super::*;

#[test]
fn wildcards_stand_alone_and_the_greater_sign_last() {
    for good in ["*", ">", "a.*", "*.a", "a.*.b.>", "*.*", "*.>", "a"] {
        assert_eq!(KeyFilter::parse(good).unwrap().to_string(), good);
    }
    for (bad, place) in [("a*", 0), ("a.b>", 2), (">.a", 0), ("a.>.b", 2), ("**", 0), ("a.*>", 2)] {
        assert!(
            matches!(KeyFilter::parse(bad), Err(InvalidName::Wildcard { at, .. }) if at == place),
            "{bad}"
        );
    }
    assert!(matches!(KeyFilter::parse("a..*"), Err(InvalidName::EmptyToken { at: 2, .. })));
    assert!(matches!(KeyFilter::parse("a b"), Err(InvalidName::Character { .. })));
    assert!(matches!(KeyFilter::parse(""), Err(InvalidName::Empty)));
}

#[test]
fn a_filter_of_one_key_passes_that_key() {
    let key = Key::parse("a.b").unwrap();
    assert!(KeyFilter::exactly(&key).matches(&key));
    assert!(KeyFilter::all().matches(&key));
    assert_eq!(KeyFilter::exactly(&key).range(), KeyRange::only("a.b"));
}

/// What a filter means, token by token and by recursion.
fn passes(filter: &[&str], key: &[&str]) -> bool {
    match (filter, key) {
        ([], []) => true,
        ([">"], [_, ..]) => true,
        (["*", filter @ ..], [_, key @ ..]) => passes(filter, key),
        ([same, filter @ ..], [token, key @ ..]) => same == token && passes(filter, key),
        _ => false,
    }
}

proptest! {
    #[test]
    fn any_text_is_a_filter_or_told_why_not(text in prop_oneof![".*", "[ab.*>]{0,8}", "[-/_=a.*> é]{0,8}"]) {
        let tokens: Vec<&str> = text.split('.').collect();
        let plain = |token: &str| {
            !token.is_empty() && token.chars().all(|c| c.is_ascii_alphanumeric() || "-/_=".contains(c))
        };
        let is_filter = tokens.iter().enumerate().all(|(index, token)| {
            plain(token) || *token == "*" || (*token == ">" && index + 1 == tokens.len())
        });
        let parsed = KeyFilter::parse(&text);
        prop_assert_eq!(parsed.is_ok(), is_filter && text.len() <= crate::KEY_BYTES_MAX);
        if let Ok(filter) = parsed {
            prop_assert_eq!(filter.as_str(), &*text);
        }
    }

    #[test]
    fn a_filter_passes_what_its_tokens_say(
        filter in "([ab*]|ab)(\\.([ab*]|ab)){0,3}(\\.>)?",
        key in "(a|b|ab)(\\.(a|b|ab)){0,4}",
    ) {
        let (filter, key) = (KeyFilter::parse(filter).unwrap(), Key::parse(key).unwrap());
        let (pattern, tokens): (Vec<&str>, Vec<&str>) = (filter.as_str().split('.').collect(), key.tokens().collect());
        prop_assert_eq!(filter.matches(&key), passes(&pattern, &tokens));
        if filter.matches(&key) {
            prop_assert!(filter.range().contains(key.as_bytes()));
        }
    }
}
