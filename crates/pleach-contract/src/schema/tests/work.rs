//! What checking a value can take is counted before it is checked.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::weight::positions;
use super::super::{CompiledSchema, Refused, WORK_MAX};
use super::compiled;

#[test]
fn nine_thousand_numbers_to_choose_from_cost_no_more_than_a_few() {
    // A put of this took 35 seconds when each item was compared with each choice.
    let choices: Vec<Value> = (0..9_000).map(|number| json!(f64::from(number) + 0.5)).collect();
    let few = compiled(json!({"items": {"enum": [0.5, 1.5, 2.5]}}));
    let many = compiled(json!({"items": {"enum": choices}}));
    let value: Value = (0..200_000).map(|number| json!(f64::from(number % 9_000) + 0.5)).collect();
    assert!(many.work(&value) <= few.work(&value));
    assert_eq!(many.validate(&value), Ok(()));
    assert!(many.validate(&json!([0.25])).is_err());
}

#[test]
fn a_value_that_is_compared_too_often_is_refused_with_the_limit_and_the_place() {
    let choices: Vec<Value> = (0..9_000).map(|number| json!([number])).collect();
    let schema = compiled(json!({"properties": {"rows": {"items": {"enum": choices}}}}));
    assert_eq!(schema.validate(&json!({"rows": [[1], [8_999]]})), Ok(()));
    let rows: Vec<Value> = (0..50_000).map(|number| json!([number % 9_000])).collect();
    let refused = schema.validate(&json!({"name": "x", "rows": rows})).unwrap_err();
    let Refused::TooMuchWork { work, path } = &refused else { panic!("{refused:?}") };
    assert!(*work > WORK_MAX);
    assert_eq!(path, "/rows");
    assert!(refused.to_string().contains("(WORK_MAX); most of it is for /rows"), "{refused}");
}

#[test]
fn long_texts_and_patterns_are_counted() {
    let text = |bytes: usize| json!("ab".repeat(bytes / 2));
    let plain = compiled(json!({"type": "string", "maxLength": 100_000_000}));
    assert_eq!(plain.validate(&text(4_000_000)), Ok(()));
    let heavy = compiled(json!({"pattern": "[ab]*a[ab]{4999}$"}));
    assert_eq!(heavy.validate(&text(20_000)), Ok(()));
    assert!(matches!(heavy.validate(&text(4_000_000)), Err(Refused::TooMuchWork { .. })));
    let named = compiled(json!({"patternProperties": {"[ab]*a[ab]{4999}$": true}}));
    let long = Value::Object([("ab".repeat(2_000_000), Value::Null)].into_iter().collect());
    assert!(matches!(named.validate(&long), Err(Refused::TooMuchWork { .. })));
}

#[test]
fn a_pattern_has_as_many_positions_as_it_repeats_characters() {
    for (pattern, least) in [
        ("", 0),
        ("abc", 3),
        ("^[a-z0-9]{1,64}$", 64),
        ("a{100}{100}", 10_000),
        ("(a{100}){100}", 10_000),
        ("(ab|c{7,}){3}", 27),
        (r"\{9}[{9}]\d{20}", 20),
    ] {
        assert!(positions(pattern) >= least, "{pattern}: {}", positions(pattern));
        assert!(positions(pattern) <= 4 * least + 20, "{pattern}: {}", positions(pattern));
    }
}

#[test]
fn branches_that_are_evaluated_again_for_unevaluated_fields_are_counted_again() {
    let nested = |depth: usize, last: Value| (0..depth).fold(last, |inner, _| json!({"allOf": [inner]}));
    let value = json!({"a": 1});
    let work = |depth: usize| {
        let schema = json!({"allOf": [nested(depth, json!({"properties": {"a": true}}))], "unevaluatedProperties": false});
        CompiledSchema::compile(&schema).unwrap().work(&value)
    };
    // Each level evaluates all levels below it once more.
    assert!(work(20) > 2 * work(10), "{} and {}", work(20), work(10));
}

#[test]
fn large_ordinary_values_are_far_from_the_limit() {
    let properties: serde_json::Map<String, Value> = (0..20)
        .map(|at| (format!("field{at}"), json!({"type": "string", "pattern": "^[a-z]{1,20}$"})))
        .collect();
    let required: Vec<String> = properties.keys().cloned().collect();
    let row = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let schema = compiled(json!({"type": "array", "items": row, "uniqueItems": true}));
    let row: Value = Value::Object((0..20).map(|at| (format!("field{at}"), json!("abcdefghij"))).collect());
    let value = Value::from(vec![row; 5_000]);
    assert!(schema.work(&value) < WORK_MAX / 2, "{}", schema.work(&value));
}

#[test]
fn a_value_with_more_violations_than_can_be_held_is_refused_without_a_list() {
    let required: Vec<String> = (0..1_000).map(|at| format!("field{at}")).collect();
    let row = json!({"required": required});
    for (rows, place) in [(json!({"items": row}), "/rows/0"), (json!({"anyOf": [{"items": row}]}), "/rows")] {
        let schema = compiled(json!({"properties": {"rows": rows}}));
        let refused = schema.validate(&json!({"rows": vec![json!({}); 20_000]})).unwrap_err();
        let Refused::Violations { violations, more } = refused else { panic!("{refused:?}") };
        assert_eq!((violations.len(), more, violations[0].instance_path.as_str()), (1, true, place));
    }
}

/// Values that are equal to each other in several ways of writing.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(0.0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992_f64),
        json!(1e300),
        json!(""),
        json!("1"),
        json!("a"),
    ]);
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn choices_that_are_hashed_are_the_same_choices(
        choices in prop::collection::vec(values(), 16..40),
        others in prop::collection::vec(values(), 1..20),
    ) {
        let schema = json!({"enum": choices});
        let ours = CompiledSchema::compile(&schema).unwrap();
        let theirs = jsonschema::draft202012::new(&schema).unwrap();
        for value in choices.iter().chain(&others) {
            prop_assert_eq!(ours.validate(value).is_ok(), theirs.is_valid(value), "{} in {}", value, schema);
        }
    }
}
