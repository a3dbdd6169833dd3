use serde::de::DeserializeOwned;
use serde_json::Value;

/// The deepest nesting that a reader of JSON takes.
const NESTING_MAX: usize = 127;

/// Reads a value as whoever gets it later will, so that a value its type cannot read back is never written: a NaN
/// that became `null`, a field that is read and not written.
pub(crate) fn read_back<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    if is_nested_deeper(value, NESTING_MAX) {
        return Err(format!("it is nested deeper than {NESTING_MAX} levels, which no reader takes"));
    }
    T::deserialize(value).map_err(|error| error.to_string())
}

fn is_nested_deeper(value: &Value, levels: usize) -> bool {
    let deeper = |child: &Value| levels == 0 || is_nested_deeper(child, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(deeper),
        Value::Object(fields) => levels == 0 || fields.values().any(deeper),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |value, _| Value::Array(vec![value]))
    }

    #[test]
    fn what_is_refused_for_its_depth_is_what_no_reader_takes() {
        for levels in [1, NESTING_MAX - 1, NESTING_MAX, NESTING_MAX + 1, NESTING_MAX + 2] {
            let text = nested(levels).to_string();
            let is_readable = serde_json::from_str::<Value>(&text).is_ok();
            assert_eq!(read_back::<Value>(&nested(levels)).is_ok(), is_readable, "{levels}");
        }
    }
}
