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
    /// For a value so large that listing what is wrong with it would take too much memory.
    pub(super) fn not_listed(instance_path: String) -> Self {
        let message = "the value is refused, and too large to list what is wrong with it".to_owned();
        Self { instance_path, schema_path: String::new(), message }
    }

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
        Kind::Enum { options } => choices(options.as_array().map_or(&[], Vec::as_slice)),
        Kind::Custom { message, .. } => message.clone(),
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
        Kind::AnyOf { context } => none_of("anyOf", context),
        Kind::OneOfNotValid { context } => none_of("oneOf", context),
        Kind::OneOfMultipleValid { context } => {
            let fitting = context.iter().enumerate().filter(|(_, errors)| errors.is_empty());
            let fitting: Vec<String> = fitting.map(|(index, _)| index.to_string()).take(3).collect();
            format!("this fits more than one branch of `oneOf`: {}", fitting.join(", "))
        }
        Kind::Not { .. } => "this is what `not` forbids".into(),
        Kind::FalseSchema => "nothing is allowed here".into(),
        Kind::AdditionalItems { limit } => format!("this must have at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "there are more items than the schema knows".into(),
        Kind::PropertyNames { .. } => "the name of a field is not allowed".into(),
        other => format!("this is against `{}`", other.keyword()),
    }
}

/// Which branch of a choice comes nearest, and what is against it there.
fn none_of(keyword: &str, branches: &[Vec<ValidationError<'_>>]) -> String {
    // A branch whose tag is wrong was not meant; of the others, the one with the fewest violations was.
    let is_tag = |error: &ValidationError<'_>| {
        matches!(
            error.kind(),
            Kind::Constant { .. } | Kind::Enum { .. } | Kind::Type { .. } | Kind::Custom { .. }
        )
    };
    let distance = |errors: &[ValidationError<'_>]| (errors.iter().any(is_tag), errors.len());
    let nearest = branches.iter().enumerate().min_by_key(|(_, errors)| distance(errors));
    let first = nearest.and_then(|(index, errors)| Some((index, errors.first()?)));
    let Some((index, error)) = first else { return format!("this fits no branch of `{keyword}`") };
    let place = error.instance_path().as_str();
    let place = if place.is_empty() { "the value" } else { place };
    format!(
        "this fits no branch of `{keyword}`; branch {index} is the nearest, where {place}: {}",
        cut(&sentence(error))
    )
}

/// What a value must be that can be chosen from a list. A long list is not written out to be cut again.
pub(super) fn choices(choices: &[Value]) -> String {
    const LISTED_MAX: usize = QUOTE_CHARS_MAX;
    let listed = Value::from(choices.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>());
    format!("this must be one of {}", quoted(&listed))
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
