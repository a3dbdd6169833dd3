//! Schemas of values: checked when the contract is read, compiled once, and evaluated within a budget.

mod budget;
mod graph;
mod lint;
mod one_of_many;
mod pattern;
#[cfg(test)]
mod tests;
mod validator;
mod violation;
mod weight;
mod work;

use serde_json::Value;

use crate::problem::{Code, Problem};
use crate::text;
use graph::Graph;

pub(crate) use graph::target;
pub(crate) use lint::warnings;

pub use budget::{EVALUATIONS_MAX, VALUE_DEPTH_MAX};
pub use graph::{SCHEMA_NODES_MAX, SCHEMA_REFERENCES_MAX};
pub use validator::{CompiledSchema, Refused, Validators};
pub use violation::{VIOLATIONS_MAX, Violation};
pub use work::WORK_MAX;

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
    let order = budget::check(&graph)?;
    let work = work::Work::of(&graph, &order);
    let mut options = jsonschema::options()
        .with_draft(draft(schema))
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
        .should_validate_formats(true)
        .offline();
    let keyword =
        |node: &graph::Node, word: &str| schema.pointer(&node.path).and_then(|schema| schema.get(word));
    let has_many = |node: &graph::Node| {
        let choices = keyword(node, "enum").and_then(Value::as_array);
        choices.is_some_and(|choices| one_of_many::is_needed(choices))
    };
    // The validator's own `enum` knows some short cuts, so it is replaced only where it would be slow.
    if graph.nodes.iter().any(has_many) {
        options = options.with_keyword("enum", one_of_many::keyword);
    }
    let has_branches = |node| ["anyOf", "oneOf"].iter().any(|word| keyword(node, word).is_some());
    let has_branches = graph.nodes.iter().any(has_branches);
    match options.build(schema) {
        Ok(validator) => Ok(CompiledSchema::new(validator, work, has_branches)),
        Err(error) => Err(vec![problem_of(&error, schema)]),
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
    errors.map(|error| problem_of(&error, schema)).collect()
}

fn problem_of(error: &jsonschema::ValidationError<'_>, schema: &Value) -> Problem {
    use jsonschema::error::ValidationErrorKind as Kind;
    let at = error.instance_path().as_str();
    let schema_at = error.schema_path().as_str();
    if is_of_pattern(error) {
        // An error of compiling names the place in the schema, one of the schema of schemas in its instance.
        return pattern::problem(schema, if at.is_empty() { schema_at } else { at });
    }
    match error.kind() {
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

/// Whether a pattern is what is wrong: that of `pattern`, or a name under `patternProperties`.
fn is_of_pattern(error: &jsonschema::ValidationError<'_>) -> bool {
    use jsonschema::error::ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Format { format } => format == "regex",
        Kind::PropertyNames { error } => is_of_pattern(error),
        _ => false,
    }
}
