//! The work that is foretold for a value is never less than what an evaluator does that knows no short cut.

use proptest::prelude::{Strategy, any};
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value, json};

use super::choices::Choices;
use super::{runner, schema, value};
use crate::CompiledSchema;

/// Items of a list that is checked by one schema, so that values are large.
const COPIES: usize = 40;

/// Evaluates everything there is to evaluate, and counts.
struct Evaluator<'r> {
    root: &'r Value,
    operations: u64,
}

impl Evaluator<'_> {
    fn visit(&mut self, schema: &Value, value: &Value) {
        self.operations += 1;
        let Value::Object(schema) = schema else { return };
        for branch in self.branches(schema) {
            self.visit(&branch, value);
        }
        self.fields(schema, value);
        self.items(schema, value);
        self.operations += match schema.get("enum").and_then(Value::as_array) {
            Some(choices) => choices.iter().map(|choice| compared(choice, value)).sum(),
            None => 0,
        };
        self.operations += schema.get("const").map_or(0, |fixed| compared(fixed, value));
        let is_unique = schema.get("uniqueItems") == Some(&json!(true));
        if let (true, Value::Array(items)) = (is_unique, value) {
            // Few are compared in pairs, many are hashed.
            let times = items.len().min(14) as u64;
            self.operations += items.iter().map(places).sum::<u64>() * times.max(1);
        }
        if schema.keys().any(|word| word.starts_with("unevaluated")) {
            self.mark(schema, value);
        }
    }

    /// Finds which fields and items were looked at: by evaluating every branch once more.
    fn mark(&mut self, schema: &Map<String, Value>, value: &Value) {
        self.operations += 1 + inside(value).len() as u64;
        for branch in self.branches(schema) {
            self.visit(&branch, value);
            if let Value::Object(branch) = &branch {
                self.mark(branch, value);
            }
        }
    }

    fn branches(&self, schema: &Map<String, Value>) -> Vec<Value> {
        let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|word| schema.get(word)?.as_array());
        let single = ["not", "if", "then", "else"].into_iter().filter_map(|word| schema.get(word));
        let named =
            ["dependentSchemas", "dependencies"].into_iter().filter_map(|word| schema.get(word)?.as_object());
        let target =
            schema.get("$ref").and_then(Value::as_str).and_then(|text| self.root.pointer(&text[1..]));
        let named = named.flat_map(Map::values).filter(|schema| !schema.is_array());
        lists.flatten().chain(single).chain(named).chain(target).cloned().collect()
    }

    fn fields(&mut self, schema: &Map<String, Value>, value: &Value) {
        let Value::Object(map) = value else { return };
        for (name, inner) in map {
            self.operations += 1;
            let own = schema.get("properties").and_then(|all| all.get(name));
            let own = own.or_else(|| schema.get("additionalProperties"));
            own.into_iter().for_each(|schema| self.visit(schema, inner));
            // Whether the name matches is not asked: it might.
            let patterns = schema.get("patternProperties").and_then(Value::as_object);
            patterns.into_iter().flat_map(Map::values).for_each(|schema| self.visit(schema, inner));
            let names = schema.get("propertyNames");
            names.into_iter().for_each(|schema| self.visit(schema, &json!(name)));
            schema.get("unevaluatedProperties").into_iter().for_each(|schema| self.visit(schema, inner));
        }
    }

    fn items(&mut self, schema: &Map<String, Value>, value: &Value) {
        let Value::Array(list) = value else { return };
        for (index, inner) in list.iter().enumerate() {
            self.operations += 1;
            let placed = ["prefixItems", "items"].into_iter().find_map(|word| schema.get(word)?.get(index));
            let mut rest = ["items", "additionalItems"].into_iter().filter_map(|word| schema.get(word));
            let rest = rest.rfind(|schema| !schema.is_array());
            placed.or(rest).into_iter().for_each(|schema| self.visit(schema, inner));
            for word in ["contains", "unevaluatedItems"] {
                schema.get(word).into_iter().for_each(|schema| self.visit(schema, inner));
            }
        }
    }
}

fn inside(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn places(value: &Value) -> u64 {
    1 + inside(value).into_iter().map(places).sum::<u64>()
}

/// How many places are compared at most.
fn compared(one: &Value, two: &Value) -> u64 {
    places(one).min(places(two))
}

#[test]
fn the_work_that_is_foretold_is_never_exceeded() {
    let lists = proptest::collection::vec(any::<u16>(), 0..150);
    let found = runner(1).run(&lists.prop_map(Choices::new), |mut choices| {
        let inner = schema::wild(&mut choices);
        let mut root = Map::new();
        // Definitions and the draft belong to the whole.
        for word in ["$defs", "$schema"] {
            root.extend(inner.get(word).map(|value| (word.to_owned(), value.clone())));
        }
        let mut item = inner;
        item.as_object_mut()
            .into_iter()
            .for_each(|map| map.retain(|word, _| word != "$defs" && word != "$schema"));
        root.insert("items".into(), item.clone());
        let root = Value::Object(root);
        let Ok(compiled) = CompiledSchema::compile(&root) else { return Ok(()) };
        let list: Vec<Value> = (0..COPIES).map(|_| value::of(&item, &mut choices)).collect();
        let value = Value::from(list);
        let mut evaluator = Evaluator { root: &root, operations: 0 };
        evaluator.visit(&root, &value);
        let foretold = compiled.work(&value);
        if evaluator.operations > foretold {
            let message =
                format!("{} operations, {foretold} foretold: {root} of {value}", evaluator.operations);
            return Err(TestCaseError::fail(message));
        }
        Ok(())
    });
    assert!(found.is_ok(), "{found:?}");
}
