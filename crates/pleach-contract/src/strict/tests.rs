use proptest::prelude::*;
use serde_json::json;

use super::*;

fn refused(text: &str) -> JsonError {
    parse_json_strict(text.as_bytes()).unwrap_err()
}

#[test]
fn a_repeated_field_is_refused_at_any_depth_with_its_path() {
    for (text, path) in [
        (r#"{"a":1,"a":1}"#, "/a"),
        (r#"{"x":[{"y":{}},{"y":{"k/1":null,"z":0,"k/1":[]}}]}"#, "/x/1/y/k~11"),
        (r#"[[],[{"":0,"":0}]]"#, "/1/0/"),
    ] {
        assert_eq!(refused(text), JsonError::Duplicate { path: path.into() }, "{text}");
    }
}

#[test]
fn fields_that_are_equal_only_after_their_escapes_are_read_are_repeated() {
    assert_eq!(refused(r#"{"a":1,"\u0061":2}"#), JsonError::Duplicate { path: "/a".into() });
    assert_eq!(refused(r#"{"\/":1,"/":2}"#), JsonError::Duplicate { path: "/~1".into() });
    assert_eq!(
        refused("{\"\\ud83d\\ude00\":1,\"\u{1f600}\":2}"),
        JsonError::Duplicate { path: "/\u{1f600}".into() }
    );
}

#[test]
fn the_same_name_in_two_objects_is_no_repetition() {
    let text = br#"{"a":{"a":[{"a":1},{"a":2}]},"A":0}"#;
    assert_eq!(parse_json_strict(text).unwrap(), json!({"a": {"a": [{"a": 1}, {"a": 2}]}, "A": 0}));
}

#[test]
fn nesting_ends_at_a_limit_with_a_name() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse_json_strict(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
    let path = "/0".repeat(JSON_DEPTH_MAX);
    assert_eq!(refused(&nested(JSON_DEPTH_MAX + 1)), JsonError::TooDeep { path });
    assert!(matches!(refused(&"{\"a\":".repeat(100_000)), JsonError::TooDeep { .. }));
}

#[test]
fn a_value_is_read_from_its_text_exactly_if_it_is_not_too_deep_for_a_schema() {
    let anything = crate::CompiledSchema::compile(&json!(true)).unwrap();
    for depth in JSON_DEPTH_MAX - 2..JSON_DEPTH_MAX + 3 {
        for leaf in [json!([]), json!({}), json!(1)] {
            let value = (1..depth)
                .fold(leaf, |inner, at| if at % 2 == 0 { json!([inner]) } else { json!({"a": inner}) });
            let is_read = parse_json_strict(value.to_string().as_bytes()).is_ok();
            assert_eq!(anything.validate(&value).is_ok(), is_read, "{depth}");
        }
    }
}

#[test]
fn what_is_not_json_says_where() {
    for text in ["", "{", "{\"a\":}", "[1,]", "nul", "1 2", "{\"a\":1}x", "\u{feff}1", "\"\\ud800\"", "1e999"]
    {
        let JsonError::Syntax { reason } = refused(text) else { panic!("{text}") };
        assert!(reason.contains("line 1 column"), "{text}: {reason}");
    }
    assert!(matches!(parse_json_strict(b"\"\xff\""), Err(JsonError::Syntax { .. })));
}

/// Any JSON value whose objects have each name once.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has finite numbers only", |float| float.is_finite())
            .prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"\\\\/é]{0,2}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn values_without_repeated_fields_are_read_as_serde_json_reads_them(value in values()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let expected: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(parse_json_strict(text.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_as_serde_json_does_but_for_repeated_fields(text in "[\\[\\]{}:,\"ab0-9.eE\\\\ -]{0,24}") {
        let plain = serde_json::from_str::<Value>(&text);
        match parse_json_strict(text.as_bytes()) {
            Ok(value) => prop_assert_eq!(value, plain.unwrap()),
            Err(JsonError::Duplicate { .. }) => {}
            Err(_) => prop_assert!(plain.is_err()),
        }
    }
}
