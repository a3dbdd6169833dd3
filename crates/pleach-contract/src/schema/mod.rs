//! Schemas of values: checked when the contract is read, compiled once, and evaluated within a budget.

mod budget;
mod graph;
#[cfg(test)]
mod tests;
mod validator;
mod violation;

use serde_json::Value;

use crate::problem::{Code, Problem};
use crate::text;
use graph::Graph;

pub(crate) use graph::target;

pub use budget::{EVALUATIONS_MAX, VALUE_DEPTH_MAX, WORK_MAX};
pub use graph::{SCHEMA_NODES_MAX, SCHEMA_REFERENCES_MAX};
pub use validator::{CompiledSchema, Refused, Validators};
pub use violation::{VIOLATIONS_MAX, Violation};

/// The most memory that one compiled pattern may take, in bytes.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// Compiles a schema, or says everything that is wrong with it; paths begin at the schema.
fn compile(schema: &Value) -> Result<CompiledSchema, Vec<Problem>> {
    // A schema of a contract is within the limits; one that comes alone may be anything.
    text::check_limits(schema).map_err(|problem| vec![*problem])?;
    let graph = Graph::of(schema);
    // What was said in our words is not said again in those of the draft.
    let mut problems = graph.as_ref().err().cloned().unwrap_or_default();
    let more = against_its_draft(schema);
    let is_new = |more: &Problem| !problems.iter().any(|problem| more.path.starts_with(&problem.path));
    let more: Vec<Problem> = more.into_iter().filter(is_new).collect();
    problems.extend(more);
    let graph = graph.ok().filter(|_| problems.is_empty()).ok_or(problems)?;
    let budget = budget::Budget::of(&graph)?;
    let options = jsonschema::options()
        .with_draft(draft(schema))
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
        .should_validate_formats(true)
        .offline();
    match options.build(schema) {
        Ok(validator) => Ok(CompiledSchema::new(validator, budget)),
        Err(error) => Err(vec![problem_of(&error)]),
    }
}

fn draft(schema: &Value) -> jsonschema::Draft {
    if is_draft_2019(schema) { jsonschema::Draft::Draft201909 } else { jsonschema::Draft::Draft202012 }
}

/// Whether a schema is of draft 2019-09; else it is of 2020-12.
pub(crate) fn is_draft_2019(schema: &Value) -> bool {
    schema.get("$schema").and_then(Value::as_str).is_some_and(|uri| uri.contains("2019-09"))
}

/// What the schema of schemas finds.
fn against_its_draft(schema: &Value) -> Vec<Problem> {
    const LISTED_MAX: usize = 10;
    let meta = match draft(schema) {
        jsonschema::Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        _ => jsonschema::draft202012::meta::validator(),
    };
    let errors = meta.iter_errors(schema).take(LISTED_MAX);
    errors.map(|error| problem_of(&error)).collect()
}

fn problem_of(error: &jsonschema::ValidationError<'_>) -> Problem {
    use jsonschema::error::ValidationErrorKind as Kind;
    let at = error.instance_path().as_str();
    let schema_at = error.schema_path().as_str();
    match error.kind() {
        Kind::Format { format } if format == "regex" => {
            // An error of compiling names the place in the schema, one of the schema of schemas in its instance.
            let path = if at.is_empty() { schema_at } else { at };
            let fix =
                "leave out look-around and back-references, and repeat less: patterns match in linear time";
            let message = "this is not a pattern that can be matched in linear time and little memory";
            Problem::new(Code::SchemaPattern, path, message, fix)
        }
        Kind::Referencing(error) => {
            let message = format!("a reference cannot be resolved: {error}");
            Problem::new(Code::SchemaReference, schema_at, message, "refer to a place in this schema")
        }
        _ => {
            let fix = "correct it as the draft of JSON Schema asks";
            Problem::new(Code::SchemaInvalid, at, violation::sentence(error), fix)
        }
    }
}
