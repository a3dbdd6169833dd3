//! Every cell of the rules about schemas, open and closed models both.

use serde_json::{Value, json};

use super::given::{check, schemas, shown};
use crate::evolution::{Question, Subject};

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn closed(properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn property(schema: Value) -> Value {
    object(json!({"a": schema}))
}

#[test]
fn texts_for_people_are_safe() {
    check(json!({"title": "A"}), json!({"title": "B"}), &["schema.annotation ok/ok safe"]);
    check(
        json!({"type": "string"}),
        json!({"type": "string", "description": "B"}),
        &["schema.annotation ok/ok safe"],
    );
    check(
        property(json!({"type": "string", "examples": ["a"]})),
        property(json!({"type": "string"})),
        &["schema.annotation ok/ok safe"],
    );
    check(
        json!({"type": "string", "x-unit": "m"}),
        json!({"type": "string", "x-unit": "km"}),
        &["schema.annotation ok/ok safe"],
    );
}

#[test]
fn a_default_is_safe_as_nothing_fills_it_in() {
    let found = schemas(json!({"type": "string", "default": "a"}), json!({"type": "string", "default": "b"}));
    assert_eq!(shown(&found), ["schema.default ok/ok safe"]);
    assert!(found.findings[0].reason.contains("not filled in"), "{:?}", found.findings);
}

#[test]
fn an_optional_property_that_is_added_to_a_closed_model_is_safe() {
    check(closed(json!({})), closed(json!({"a": {"type": "string"}})), &["property.added ok/breaks safe"]);
}

#[test]
fn an_optional_property_that_is_added_to_an_open_model_may_clash() {
    let found = schemas(object(json!({})), object(json!({"a": {"type": "string"}})));
    assert_eq!(shown(&found), ["property.added scan/ok scan"]);
    assert_eq!(found.findings[0].question, Some(Question::Carries { pointer: "/a".into() }));
    assert_eq!(found.findings[0].path, "/schemas/Thing/properties/a");
    check(
        object(json!({})),
        object(json!({"a": {"description": "anything"}})),
        &["property.added ok/ok safe"],
    );
    let of_form = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": {"type": "string"}});
    check(of_form(json!({})), of_form(json!({"a": {"type": "string"}})), &["property.added ok/ok safe"]);
    check(
        of_form(json!({})),
        of_form(json!({"a": {"type": "integer"}})),
        &["property.added ok/ok safe", "type.changed breaks/breaks dangerous"],
    );
}

#[test]
fn what_must_be_there_is_scanned_for() {
    let with = |required: Value| json!({"type": "object", "properties": {"a": {}}, "required": required});
    check(with(json!([])), with(json!(["a"])), &["required.added scan/ok scan"]);
    check(with(json!(["a"])), with(json!([])), &["required.removed ok/breaks safe"]);
    // A default does not help: nothing fills it in.
    let defaulted = |required: Value| json!({"properties": {"a": {"default": 1}}, "required": required});
    check(defaulted(json!([])), defaulted(json!(["a"])), &["required.added scan/ok scan"]);
}

#[test]
fn who_has_a_property_that_is_removed_is_counted() {
    let found = schemas(object(json!({"a": {"type": "string"}})), object(json!({})));
    // Nobody keeps new writers from using the name for something else.
    assert_eq!(shown(&found), ["property.removed ok/unknown scan"]);
    assert_eq!(found.findings[0].question, Some(Question::Carries { pointer: "/a".into() }));
    check(closed(json!({"a": {"type": "string"}})), closed(json!({})), &["property.removed scan/ok scan"]);
    let required = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    check(required, closed(json!({})), &["property.removed scan/ok scan", "required.removed ok/breaks safe"]);
}

#[test]
fn a_property_that_looks_renamed_is_said_to_be() {
    for model in [object, closed] {
        let found = schemas(
            model(json!({"due_at": {"type": "string"}, "b": {"type": "string"}})),
            model(json!({"dueAt": {"type": "string"}, "b": {"type": "string"}})),
        );
        assert_eq!(shown(&found), ["property.renamed breaks/breaks dangerous"]);
        assert!(found.findings[0].message.contains("`dueAt` looks renamed from `due_at`"), "{found:?}");
        assert_eq!(found.findings[0].question, Some(Question::Carries { pointer: "/due_at".into() }));
    }
    // Alike in nothing but that one went and one came.
    let required =
        |name: &str| json!({"properties": {name: {"type": "string", "maxLength": 9}}, "required": [name]});
    check(
        required("city"),
        required("place"),
        &["property.renamed breaks/breaks dangerous", "required.added scan/ok scan"],
    );
}

#[test]
fn other_properties_do_not_look_renamed() {
    check(
        closed(json!({"city": {"type": "string"}})),
        closed(json!({"place": {"type": "integer"}})),
        &["property.added ok/breaks safe", "property.removed scan/ok scan"],
    );
    check(
        closed(json!({"city": {"type": "string"}})),
        closed(json!({"height": {"type": "string"}, "width": {"type": "string"}})),
        &["property.added ok/breaks safe", "property.added ok/breaks safe", "property.removed scan/ok scan"],
    );
}

#[test]
fn wider_types_are_safe() {
    check(
        property(json!({"type": "integer"})),
        property(json!({"type": "number"})),
        &["type.widened ok/breaks safe"],
    );
    check(
        property(json!({"type": "string"})),
        property(json!({"type": ["string", "null"]})),
        &["type.widened ok/breaks safe"],
    );
    check(property(json!({"type": "string"})), property(json!({})), &["type.widened ok/breaks safe"]);
    check(json!({"enum": ["a"]}), json!({"enum": ["a"], "type": "string"}), &["schema.idle ok/ok safe"]);
}

#[test]
fn a_value_that_may_be_missing_is_a_further_alternative() {
    let defs = json!({"Name": {"type": "string"}});
    let old = json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/Name"}}});
    let new =
        json!({"$defs": defs, "properties": {"a": {"anyOf": [{"$ref": "#/$defs/Name"}, {"type": "null"}]}}});
    check(old.clone(), new.clone(), &["branch.added ok/breaks safe"]);
    check(new, old, &["branch.removed scan/ok scan"]);
}

#[test]
fn narrower_types_are_scanned_for() {
    check(
        property(json!({"type": "number"})),
        property(json!({"type": "integer"})),
        &["type.narrowed scan/ok scan"],
    );
    check(property(json!({})), property(json!({"type": "integer"})), &["type.narrowed scan/ok scan"]);
}

#[test]
fn other_types_are_dangerous() {
    check(
        property(json!({"type": "integer"})),
        property(json!({"type": "string"})),
        &["type.changed breaks/breaks dangerous"],
    );
    check(
        property(json!({"type": ["integer", "null"]})),
        property(json!({"type": ["string", "null"]})),
        &["type.changed scan/breaks scan"],
    );
}

#[test]
fn a_further_choice_is_safe_and_one_less_is_scanned_for() {
    let choice = |values: Value| property(json!({"enum": values}));
    check(choice(json!(["a"])), choice(json!(["a", "b"])), &["enum.widened ok/breaks safe"]);
    check(choice(json!(["a", "b"])), choice(json!(["a"])), &["enum.narrowed scan/ok scan"]);
    check(choice(json!(["a", "b"])), choice(json!(["a", "c"])), &["enum.changed scan/breaks scan"]);
    check(choice(json!([1, 2])), choice(json!([2.0, 1])), &[]);
    check(property(json!({"const": 1})), property(json!({"const": 2})), &["enum.changed scan/breaks scan"]);
    check(property(json!({})), property(json!({"const": 2})), &["enum.narrowed scan/ok scan"]);
    check(property(json!({"const": 2})), property(json!({"enum": [1, 2]})), &["enum.widened ok/breaks safe"]);
    check(
        property(json!({"const": 2})),
        property(json!({"type": "integer"})),
        &["enum.widened ok/breaks safe", "schema.idle ok/ok safe"],
    );
}

#[test]
fn additional_properties_are_closed_narrowed_and_opened() {
    let with = |schema: Value| json!({"type": "object", "additionalProperties": schema});
    check(json!({"type": "object"}), with(json!(false)), &["additional.closed scan/ok scan"]);
    check(with(json!({"type": "string"})), with(json!(false)), &["additional.closed scan/ok scan"]);
    check(json!({"type": "object"}), with(json!({"type": "string"})), &["additional.narrowed scan/ok scan"]);
    check(with(json!({"type": "number"})), with(json!({"type": "integer"})), &["type.narrowed scan/ok scan"]);
    check(with(json!(false)), with(json!(true)), &["additional.opened ok/breaks safe"]);
    check(with(json!(false)), with(json!({"type": "string"})), &["additional.opened ok/breaks safe"]);
    check(with(json!({"type": "string"})), json!({"type": "object"}), &["additional.opened ok/breaks safe"]);
    check(with(json!(true)), json!({"type": "object"}), &[]);
}

#[test]
fn looser_limits_are_safe_and_tighter_ones_scanned_for() {
    let limits = [
        ("number", "minimum", json!(5), json!(4)),
        ("number", "maximum", json!(5), json!(5.5)),
        ("number", "exclusiveMinimum", json!(5), json!(4)),
        ("number", "exclusiveMaximum", json!(5), json!(6)),
        ("number", "multipleOf", json!(6), json!(3)),
        ("string", "minLength", json!(2), json!(1)),
        ("string", "maxLength", json!(2), json!(3)),
        ("array", "minItems", json!(2), json!(1)),
        ("array", "maxItems", json!(2), json!(3)),
        ("array", "uniqueItems", json!(true), json!(false)),
        ("object", "minProperties", json!(2), json!(1)),
        ("object", "maxProperties", json!(2), json!(3)),
    ];
    for (kind, keyword, tight, loose) in limits {
        let with = |value: &Value| property(json!({"type": kind, keyword: value}));
        let without = property(json!({"type": kind}));
        check(with(&tight), with(&loose), &["bounds.loosened ok/breaks safe"]);
        check(with(&loose), with(&tight), &["bounds.tightened scan/ok scan"]);
        check(with(&tight), without.clone(), &["bounds.loosened ok/breaks safe"]);
        check(without, with(&tight), &["bounds.tightened scan/ok scan"]);
        check(with(&tight), with(&tight), &[]);
    }
    check(
        json!({"type": "number", "multipleOf": 4}),
        json!({"type": "number", "multipleOf": 6}),
        &["bounds.changed scan/breaks scan"],
    );
}

#[test]
fn a_limit_has_two_forms_and_one_meaning() {
    let with = |keyword: &str, limit: Value| json!({"type": "number", keyword: limit});
    check(with("minimum", json!(5)), with("exclusiveMinimum", json!(5)), &["bounds.tightened scan/ok scan"]);
    check(with("exclusiveMinimum", json!(5)), with("minimum", json!(5)), &["bounds.loosened ok/breaks safe"]);
    check(with("exclusiveMaximum", json!(5)), with("maximum", json!(4)), &["bounds.tightened scan/ok scan"]);
    check(with("minimum", json!(5)), with("minimum", json!(5.0)), &[]);
    // As floats, both would be the same.
    check(
        with("maximum", json!(9_007_199_254_740_993_u64)),
        with("maximum", json!(9_007_199_254_740_992_u64)),
        &["bounds.tightened scan/ok scan"],
    );
    check(json!({"type": "string", "minLength": 0}), json!({"type": "string"}), &[]);
}

#[test]
fn limits_of_other_types_are_idle() {
    check(json!({"type": "string"}), json!({"type": "string", "minimum": 5}), &["schema.idle ok/ok safe"]);
    check(
        json!({"type": "integer", "pattern": "a"}),
        json!({"type": "integer"}),
        &["schema.idle ok/ok safe"],
    );
    check(json!({"type": "array"}), json!({"type": "array", "required": ["a"]}), &[]);
}

#[test]
fn patterns_and_formats_are_scanned_for() {
    for (keyword, one, two) in [("pattern", "^a", "^b"), ("format", "date", "time")] {
        let with = |value: &str| property(json!({"type": "string", keyword: value}));
        let without = property(json!({"type": "string"}));
        check(without.clone(), with(one), &[&format!("{keyword}.added scan/ok scan")]);
        check(with(one), with(two), &[&format!("{keyword}.changed scan/unknown scan")]);
        check(with(one), without, &[&format!("{keyword}.removed ok/breaks safe")]);
    }
}

#[test]
fn a_further_branch_of_any_of_is_safe() {
    let any = |branches: Value| property(json!({"anyOf": branches}));
    let (text, number, none) =
        (json!({"type": "string"}), json!({"type": "number"}), json!({"type": "null"}));
    check(any(json!([text, number])), any(json!([text, number, none])), &["branch.added ok/breaks safe"]);
    check(any(json!([text, number])), any(json!([number])), &["branch.removed scan/ok scan"]);
    check(any(json!([text, number])), any(json!([number, text])), &[]);
    check(
        any(json!([text, {"type": "integer"}])),
        any(json!([text, number])),
        &["type.widened ok/breaks safe"],
    );
}

#[test]
fn a_further_branch_of_one_of_is_safe_only_without_overlap() {
    let one = |branches: Value| property(json!({"oneOf": branches}));
    check(
        one(json!([{"minimum": 1}, {"maximum": 0}])),
        one(json!([{"minimum": 1}, {"maximum": 0}, {"multipleOf": 5}])),
        &["choice.added scan/breaks scan"],
    );
    check(
        one(json!([{"const": "a"}, {"const": "b"}])),
        one(json!([{"const": "a"}, {"const": "b"}, {"const": "c"}])),
        &["choice.added ok/breaks safe"],
    );
    let tagged =
        |kind: &str| json!({"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]});
    check(
        one(json!([tagged("a")])),
        one(json!([tagged("a"), tagged("b")])),
        &["choice.added ok/breaks safe"],
    );
    check(
        one(json!([tagged("a"), tagged("b")])),
        one(json!([tagged("b")])),
        &["choice.removed scan/ok scan"],
    );
    // Without a type, what is no object fits both.
    let untyped = |kind: &str| json!({"properties": {"kind": {"const": kind}}, "required": ["kind"]});
    check(
        one(json!([untyped("a"), {"type": "null"}])),
        one(json!([untyped("a"), untyped("b"), {"type": "null"}])),
        &["choice.added scan/breaks scan"],
    );
}

#[test]
fn a_branch_of_one_of_that_takes_more_may_take_it_from_another() {
    let one = |limit: u64| json!({"oneOf": [{"type": "integer", "minimum": limit}, {"type": "integer", "maximum": 3}]});
    check(one(5), one(2), &["schema.undecided unknown/unknown scan"]);
    let apart = |limit: u64| json!({"oneOf": [{"type": "integer", "minimum": limit}, {"type": "string"}]});
    check(apart(5), apart(2), &["bounds.loosened ok/breaks safe"]);
}

#[test]
fn further_conditions_are_scanned_for() {
    let condition = json!({"required": ["a"]});
    check(
        json!({"type": "object"}),
        json!({"type": "object", "allOf": [condition]}),
        &["condition.added scan/ok scan"],
    );
    check(
        json!({"type": "object", "allOf": [condition]}),
        json!({"type": "object"}),
        &["condition.removed ok/breaks safe"],
    );
    for keyword in ["anyOf", "oneOf"] {
        let with = json!({"type": "object", keyword: [condition, {"required": ["b"]}]});
        check(json!({"type": "object"}), with.clone(), &["condition.added scan/ok scan"]);
        check(with, json!({"type": "object"}), &["condition.removed ok/breaks safe"]);
    }
    let not = json!({"type": "object", "not": condition});
    check(json!({"type": "object"}), not.clone(), &["condition.added scan/ok scan"]);
    check(not, json!({"type": "object"}), &["condition.removed ok/breaks safe"]);
}

#[test]
fn not_turns_the_directions_around() {
    let not = |limit: u64| json!({"not": {"minimum": limit}});
    check(not(10), not(5), &["not.changed scan/ok scan"]);
    check(not(5), not(10), &["not.changed ok/breaks safe"]);
    let twice = |limit: u64| json!({"not": {"not": {"minimum": limit}}});
    check(twice(10), twice(5), &["bounds.loosened ok/breaks safe"]);
}

#[test]
fn what_depends_on_another_property_is_scanned_for() {
    let with = |names: Value| json!({"type": "object", "dependentRequired": {"a": names}});
    check(with(json!([])), with(json!(["b"])), &["dependent.added scan/ok scan"]);
    check(with(json!(["b"])), json!({"type": "object"}), &["dependent.removed ok/breaks safe"]);
    let schemas = |schema: Value| json!({"type": "object", "dependentSchemas": {"a": schema}});
    check(json!({"type": "object"}), schemas(json!({"required": ["b"]})), &["required.added scan/ok scan"]);
    check(schemas(json!({"required": ["b"]})), schemas(json!(true)), &["required.removed ok/breaks safe"]);
}

#[test]
fn conditions_that_decide_which_others_apply_must_stay_the_same() {
    let with =
        |limit: u64, then: Value| json!({"if": {"minimum": limit}, "then": then, "else": {"multipleOf": 2}});
    check(with(1, json!({"maximum": 9})), with(1, json!({"maximum": 8})), &["bounds.tightened scan/ok scan"]);
    check(with(1, json!(true)), with(2, json!(true)), &["schema.undecided unknown/unknown scan"]);
    check(
        json!({"type": "number"}),
        json!({"type": "number", "if": {"minimum": 1}, "then": {"maximum": 9}}),
        &["condition.added scan/ok scan"],
    );
}

#[test]
fn a_reference_that_moved_is_nothing() {
    let name = json!({"type": "string", "minLength": 1});
    let inline = property(name.clone());
    let referred =
        json!({"type": "object", "$defs": {"Name": name}, "properties": {"a": {"$ref": "#/$defs/Name"}}});
    let moved =
        json!({"type": "object", "$defs": {"Title": name}, "properties": {"a": {"$ref": "#/$defs/Title"}}});
    let wrapped = json!({"type": "object", "$defs": {"N": name}, "properties": {"a": {"allOf": [{"$ref": "#/$defs/N"}]}}});
    for (old, new) in [(&inline, &referred), (&referred, &inline), (&referred, &moved), (&referred, &wrapped)]
    {
        check(old.clone(), new.clone(), &[]);
    }
}

#[test]
fn a_shared_definition_is_told_once_and_where_it_is() {
    let with = |limit: u64| {
        json!({"$defs": {"Name": {"type": "string", "maxLength": limit}},
        "properties": {"a": {"$ref": "#/$defs/Name"}, "b": {"$ref": "#/$defs/Name"}}})
    };
    let found = schemas(with(5), with(6));
    assert_eq!(shown(&found), ["bounds.loosened ok/breaks safe"]);
    assert_eq!(found.findings[0].path, "/schemas/Thing/$defs/Name/maxLength");
    let subject = Subject::Kv { alias: "things".into(), keyspace: None, version: Some("v1".into()) };
    assert_eq!(found.findings[0].subject, subject);
}

#[test]
fn items_are_compared_one_by_one() {
    let items = |kind: &str| json!({"type": "array", "items": {"type": kind}});
    check(items("integer"), items("number"), &["type.widened ok/breaks safe"]);
    check(items("number"), items("integer"), &["type.narrowed scan/ok scan"]);
    let tuple =
        |second: Value| json!({"type": "array", "prefixItems": [{"type": "string"}, second], "items": false});
    check(
        tuple(json!({"type": "integer"})),
        tuple(json!({"type": "number"})),
        &["type.widened ok/breaks safe"],
    );
    let shorter = json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false});
    check(shorter.clone(), tuple(json!(true)), &["schema.allowed ok/breaks safe"]);
    check(tuple(json!(true)), shorter, &["schema.forbidden scan/ok scan"]);
    let contains = |kind: &str, least: u64| json!({"contains": {"type": kind}, "minContains": least});
    check(contains("integer", 1), contains("number", 1), &["type.widened ok/breaks safe"]);
    check(contains("number", 1), contains("number", 2), &["bounds.tightened scan/ok scan"]);
    let most = |kind: &str| json!({"contains": {"type": kind}, "maxContains": 3});
    check(most("integer"), most("number"), &["schema.undecided unknown/unknown scan"]);
}

#[test]
fn names_that_match_a_pattern_are_a_model_of_their_own() {
    let with = |schema: Value| json!({"type": "object", "patternProperties": {"^x": schema}});
    check(
        json!({"type": "object"}),
        with(json!({"type": "string"})),
        &["patternProperty.added scan/ok scan"],
    );
    check(
        with(json!({"type": "string"})),
        json!({"type": "object"}),
        &["patternProperty.removed ok/breaks safe"],
    );
    check(
        with(json!({"type": "integer"})),
        with(json!({"type": "number"})),
        &["type.widened ok/breaks safe"],
    );
    let closed = |properties: Value| {
        json!({"type": "object", "patternProperties": {"^x": {"type": "integer"}},
        "properties": properties, "additionalProperties": false})
    };
    // The name may have matched the pattern all along.
    check(closed(json!({})), closed(json!({"xy": {"type": "string"}})), &["property.added scan/breaks scan"]);
}

#[test]
fn drafts_are_compared_only_with_themselves() {
    let of = |draft: &str| json!({"$schema": format!("https://json-schema.org/draft/{draft}/schema"), "type": "string"});
    check(of("2019-09"), of("2020-12"), &["schema.undecided unknown/unknown scan"]);
    let list = |kind: &str| {
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema",
        "type": "array", "items": [{"type": kind}], "additionalItems": false})
    };
    check(list("integer"), list("number"), &["type.widened ok/breaks safe"]);
}

#[test]
fn what_depends_on_everything_beside_it_is_undecided() {
    let with = |limit: u64| {
        json!({"type": "object", "$defs": {"A": {"properties": {"a": {"maximum": limit}}}},
        "allOf": [{"$ref": "#/$defs/A"}], "unevaluatedProperties": false})
    };
    check(with(5), with(6), &["bounds.loosened ok/breaks safe", "schema.undecided unknown/unknown scan"]);
    // Word for word the same, though something else was changed.
    let inside = |title: &str| {
        json!({"title": title, "properties": {"a": {"type": "object",
        "properties": {"b": true}, "unevaluatedProperties": false}}})
    };
    check(inside("one"), inside("two"), &["schema.annotation ok/ok safe"]);
    let old = json!({"dependencies": {"a": ["b"]}});
    check(old, json!({"dependencies": {"a": ["c"]}}), &["schema.undecided unknown/unknown scan"]);
}

#[test]
fn nothing_and_anything_are_schemas_too() {
    check(property(json!(true)), property(json!(false)), &["schema.forbidden scan/ok scan"]);
    check(property(json!(false)), property(json!({"type": "string"})), &["schema.allowed ok/breaks safe"]);
    check(property(json!(false)), property(json!({"not": {}})), &[]);
    check(json!(true), json!({}), &[]);
}

#[test]
fn a_recursive_schema_is_compared_once() {
    let tree = |kind: &str| {
        json!({"type": "object", "properties": {
        "value": {"type": kind}, "children": {"type": "array", "items": {"$ref": "#"}}}})
    };
    check(tree("integer"), tree("number"), &["type.widened ok/breaks safe"]);
    check(tree("number"), tree("integer"), &["type.narrowed scan/ok scan"]);
}
