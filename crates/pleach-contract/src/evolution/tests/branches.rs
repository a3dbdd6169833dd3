//! Findings about the branches of a choice say which branch it is, and which place of a value it looks at.

use serde_json::{Value, json};

use super::given::schemas;
use crate::CompiledSchema;

fn shape(kind: &str, more: Value) -> Value {
    let mut properties = json!({"kind": {"const": kind}});
    if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
        properties.extend(more);
    }
    json!({"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": false})
}

fn drawing(keyword: &str, branches: Value) -> Value {
    json!({"type": "object", "properties": {"shapes": {"type": "array", "items": {keyword: branches}}}})
}

/// The codes and messages of what has changed.
fn told(old: Value, new: Value) -> Vec<(String, String)> {
    let found = schemas(old, new).findings;
    found.into_iter().map(|finding| (finding.code.to_string(), finding.message)).collect()
}

#[test]
fn a_branch_is_named_by_its_tag_and_its_place() {
    let (circle, square) = (shape("circle", json!({"r": true})), shape("square", json!({"a": true})));
    for (keyword, removed, added) in
        [("oneOf", "choice.removed", "choice.added"), ("anyOf", "branch.removed", "branch.added")]
    {
        let both = drawing(keyword, json!([circle, square]));
        let one = drawing(keyword, json!([circle]));
        let branch = format!("the `{keyword}` branch with `kind` \"square\" of /shapes/*");
        let found = told(both.clone(), one.clone());
        assert_eq!(found, [(removed.to_owned(), format!("{branch} was removed"))]);
        let found = told(one, both);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, added);
        assert!(found[0].1.starts_with(&format!("{branch} was added")), "{}", found[0].1);
    }
}

#[test]
fn a_change_inside_a_branch_names_the_branch() {
    let of = |radius: Value| {
        drawing("oneOf", json!([shape("circle", radius), shape("square", json!({"a": true}))]))
    };
    let found =
        told(of(json!({"r": {"type": "number"}})), of(json!({"r": {"type": "number", "minimum": 0}})));
    assert_eq!(found.len(), 1);
    let expected = "in the `oneOf` branch with `kind` \"circle\" of /shapes/*: ";
    assert!(found[0].1.starts_with(expected), "{}", found[0].1);
}

#[test]
fn a_branch_without_a_tag_is_named_by_its_title_its_name_its_value_or_its_index() {
    for (branch, name) in [
        (json!({"title": "Big", "type": "integer"}), "`Big`"),
        (json!({"const": "x"}), "\"x\""),
        (json!({"type": "integer", "minimum": 5}), "1"),
    ] {
        let of = |branches: Value| json!({"anyOf": branches});
        let found = told(of(json!([{"type": "boolean"}, branch])), of(json!([{"type": "boolean"}])));
        let expected = format!("the `anyOf` branch {name} of the value was removed");
        assert!(found.iter().any(|(_, message)| *message == expected), "{found:?}");
    }
    let of = |branches: Value| json!({"$defs": {"Wide": {"type": "integer"}}, "anyOf": branches});
    let found =
        told(of(json!([{"type": "boolean"}, {"$ref": "#/$defs/Wide"}])), of(json!([{"type": "boolean"}])));
    assert_eq!(found[0].1, "the `anyOf` branch `Wide` of the value was removed");
}

#[test]
fn a_refused_value_says_which_branch_came_nearest_and_where() {
    let schema =
        drawing("oneOf", json!([shape("circle", json!({"r": {"minimum": 0}})), shape("square", json!({}))]));
    let compiled = CompiledSchema::compile(&schema).unwrap();
    let refused =
        compiled.validate(&json!({"shapes": [{"kind": "circle", "r": -1}]})).unwrap_err().to_string();
    assert_eq!(
        refused,
        "/shapes/0: this fits no branch of `oneOf`; branch 0 is the nearest, where /shapes/0/r: this must be at least 0"
    );
    let overlapping =
        CompiledSchema::compile(&json!({"oneOf": [{"minimum": 1}, {"type": "string"}, {"maximum": 5}]}))
            .unwrap();
    let refused = overlapping.validate(&json!(3)).unwrap_err().to_string();
    assert_eq!(refused, "the value: this fits more than one branch of `oneOf`: 0, 2");
}
