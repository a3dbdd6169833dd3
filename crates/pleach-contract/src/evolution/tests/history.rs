//! A contract next to all that were accepted before it.

use serde_json::{Value, json};

use super::given::{contract, shown};
use crate::Contract;
use crate::evolution::{Verdict, diff, diff_over};

fn with(properties: Value) -> Contract {
    contract(
        json!({"Thing": {"type": "object", "properties": properties, "additionalProperties": false}}),
        json!({}),
    )
}

#[test]
fn without_a_history_there_is_nothing_to_compare() {
    assert_eq!(diff_over(&[], &with(json!({}))).findings, []);
}

#[test]
fn one_older_contract_is_a_plain_diff() {
    let (old, new) = (with(json!({})), with(json!({"a": true})));
    assert_eq!(diff_over(&[&old], &new), diff(&old, &new));
}

#[test]
fn what_an_older_contract_left_is_told_with_its_digest() {
    let kinds = |kind: &str| with(json!({"a": {"type": kind}}));
    let (first, second, new) = (kinds("number"), kinds("integer"), kinds("integer"));
    assert_eq!(diff(&second, &new).findings, []);
    let found = diff_over(&[&first, &second], &new);
    assert_eq!(shown(&found), ["type.narrowed scan/ok scan"]);
    assert_eq!(found.findings[0].against, Some(first.digest()));
}

#[test]
fn a_finding_against_several_is_told_once() {
    let kinds = |kind: &str| with(json!({"a": {"type": kind}}));
    let (first, second, new) = (kinds("number"), kinds("number"), kinds("integer"));
    let found = diff_over(&[&first, &second], &new);
    assert_eq!(shown(&found), ["type.narrowed scan/ok scan"]);
    assert_eq!(found.findings[0].against, None);
}

#[test]
fn a_name_that_was_removed_and_is_used_for_something_else_is_dangerous() {
    let (first, second) = (with(json!({"a": {"type": "string"}})), with(json!({})));
    let reused = diff_over(&[&first, &second], &with(json!({"a": {"type": "string", "format": "date"}})));
    assert_eq!(reused.verdict(), Some(Verdict::Dangerous));
    assert!(shown(&reused).contains(&"property.reused breaks/breaks dangerous".to_owned()), "{reused:#?}");
    let returned = diff_over(&[&first, &second], &first);
    assert_eq!(shown(&returned), ["property.returned scan/ok scan", "property.added ok/breaks safe"]);
}

#[test]
fn a_name_deep_in_a_value_is_found_too() {
    let of = |inner: Value| {
        with(json!({"a": {"type": "object", "properties": inner, "additionalProperties": false}}))
    };
    let (first, second) = (of(json!({"b": {"type": "string"}})), of(json!({})));
    let reused = diff_over(&[&first, &second], &of(json!({"b": {"type": "integer"}})));
    assert!(shown(&reused).contains(&"property.reused breaks/breaks dangerous".to_owned()), "{reused:#?}");
}
