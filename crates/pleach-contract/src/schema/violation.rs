use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde::Serialize;
use serde_json::Value;

/// The most violations that are listed for one value.
pub const VIOLATIONS_MAX: usize = 50;

/// The most characters of what is quoted from a schema or a value.
const QUOTE_CHARS_MAX: usize = 80;

/// What a value has against its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Where in the value, as a JSON Pointer.
    pub instance_path: String,
    /// Which part of the schema says so, as a JSON Pointer.
    pub schema_path: String,
    /// What is wrong, in a sentence.
    pub message: String,
}

impl Violation {
    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        Self {
            instance_path: error.instance_path().as_str().to_owned(),
            schema_path: error.schema_path().as_str().to_owned(),
            message: sentence(error),
        }
    }
}

/// What is wrong, without the value itself: values are not for logs.
pub(super) fn sentence(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Required { property } => format!("the field {} is missing", quoted(property)),
        Kind::Type { kind } => format!("this must be {}, and is {}", types(kind), type_of(error.instance())),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("there is no room for the field {}", cut(&unexpected.join(", ")))
        }
        Kind::Enum { options } => format!("this must be one of {}", quoted(options)),
        Kind::Constant { expected_value } => format!("this must be {}", quoted(expected_value)),
        Kind::Minimum { limit } => format!("this must be at least {limit}"),
        Kind::Maximum { limit } => format!("this must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("this must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("this must be less than {limit}"),
        Kind::MinLength { limit } => format!("this must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("this must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("this must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("this must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("this must have at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("this must have at most {limit} fields"),
        Kind::MultipleOf { multiple_of } => format!("this must be a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("this must match the pattern {}", cut(pattern)),
        Kind::Format { format } => format!("this must be written as the format {}", cut(format)),
        Kind::UniqueItems => "no two items may be equal".into(),
        Kind::Contains => "no item, or not the right number of them, is what `contains` asks for".into(),
        Kind::AnyOf { .. } => "this is none of what `anyOf` allows".into(),
        Kind::OneOfNotValid { .. } => "this is none of what `oneOf` allows".into(),
        Kind::OneOfMultipleValid { .. } => "this is more than one of what `oneOf` allows".into(),
        Kind::Not { .. } => "this is what `not` forbids".into(),
        Kind::FalseSchema => "nothing is allowed here".into(),
        Kind::AdditionalItems { limit } => format!("this must have at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "there are more items than the schema knows".into(),
        Kind::PropertyNames { .. } => "the name of a field is not allowed".into(),
        other => format!("this is against `{}`", other.keyword()),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(set) => {
            let names: Vec<String> = set.iter().map(|one| one.to_string()).collect();
            names.join(" or ")
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", cut(text)),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
