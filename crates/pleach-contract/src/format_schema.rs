use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::document::Contract;

/// The JSON Schema of the format itself, made from the types that hold it, so that editors complete and check contracts.
#[must_use]
pub fn format_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Contract>().to_value();
    without_null(&mut schema);
    optional(&mut schema, "/$defs/Keyspace", "schema");
    // Defaults that depend on other fields would be wrong where an editor fills them in.
    for pointer in ["/$defs/KvResource/properties/ttlMs", "/$defs/Keyspace/properties/ttlMs"] {
        remove(&mut schema, pointer, "default");
    }
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), json!("A contract of Pleach, pleach.contract.v1"));
    }
    schema
}

/// Takes `null` out of every choice: in a contract, what is not there is left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(map) => {
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|word| word != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    map.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(branches)) = map.get_mut("anyOf") {
                branches.retain(|branch| branch.get("type").is_none_or(|word| word != "null"));
                if let [Value::Object(one)] = branches.as_slice() {
                    let one = one.clone();
                    map.remove("anyOf");
                    map.extend(one);
                }
            }
            map.values_mut().for_each(without_null);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn optional(schema: &mut Value, pointer: &str, field: &str) {
    let required = schema.pointer_mut(pointer).and_then(|object| object.get_mut("required"));
    if let Some(Value::Array(required)) = required {
        required.retain(|name| name != field);
    }
}

fn remove(schema: &mut Value, pointer: &str, keyword: &str) {
    if let Some(Value::Object(object)) = schema.pointer_mut(pointer) {
        object.remove(keyword);
    }
}
