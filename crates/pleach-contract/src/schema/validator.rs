use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::budget::VALUE_DEPTH_MAX;
use super::violation::{VIOLATIONS_MAX, Violation};
use super::work::{Size, WORK_MAX, Work};
use crate::canonical::{Digest, digest_of};
use crate::document::Contract;
use crate::problem::Problems;
use crate::text::{check_limits, child};

/// If there could be more violations than this, at most one is listed: the validator would hold all of them at once.
const COLLECTED_MAX: u64 = 1_000_000;

/// A schema that is ready to check values.
pub struct CompiledSchema {
    validator: jsonschema::Validator,
    work: Work,
    /// Whether there is `anyOf` or `oneOf`: one violation of those holds all violations of their branches.
    has_branches: bool,
}

/// Why a value was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is not what the schema asks for.
    #[error("{}", summary(violations, *more))]
    Violations {
        /// What is wrong, up to [`VIOLATIONS_MAX`].
        violations: Vec<Violation>,
        /// Whether there may be more than are listed.
        more: bool,
    },
    /// It is nested too deep to be looked at.
    #[error("{path} is nested deeper than {VALUE_DEPTH_MAX} levels (VALUE_DEPTH_MAX)")]
    TooDeep {
        /// The first place that is too deep, as a JSON Pointer.
        path: String,
    },
    /// It could take too long to check.
    #[error(
        "checking the value could take {work} units of work, the most is {WORK_MAX} (WORK_MAX){}",
        most_of_it(path)
    )]
    TooMuchWork {
        /// How much it could take at most, in units of [`WORK_MAX`].
        work: u64,
        /// The part that has most of it, as a JSON Pointer; empty for the value as a whole.
        path: String,
    },
}

impl Refused {
    /// What to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Violations { .. } => "correct the value, or change the schema and plan that change",
            Self::TooDeep { .. } => "nest the value less",
            Self::TooMuchWork { .. } => {
                "make the value smaller, or tell the branches of its schema apart earlier"
            }
        }
    }
}

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it; paths begin at the schema.
    pub fn compile(schema: &Value) -> Result<Self, Problems> {
        super::compile(schema).map_err(|list| list.into_iter().collect())
    }

    pub(super) fn new(validator: jsonschema::Validator, work: Work, has_branches: bool) -> Self {
        Self { validator, work, has_branches }
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Why it is refused. A value that could take too long is refused before it is looked at.
    pub fn validate(&self, value: &Value) -> Result<(), Refused> {
        let size = measure(value);
        if size.depth > VALUE_DEPTH_MAX {
            return Err(Refused::TooDeep { path: too_deep(value) });
        }
        let work = self.work.units(size);
        if work > WORK_MAX {
            return Err(Refused::TooMuchWork { work, path: largest(value) });
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if self.work.violations(size) > COLLECTED_MAX {
            let first = match self.has_branches {
                true => None,
                false => self.validator.validate(value).err().map(|error| Violation::of(&error)),
            };
            let violations = vec![first.unwrap_or_else(|| Violation::not_listed(largest(value)))];
            return Err(Refused::Violations { violations, more: true });
        }
        let errors = self.validator.iter_errors(value);
        let mut violations: Vec<Violation> =
            errors.take(VIOLATIONS_MAX + 1).map(|error| Violation::of(&error)).collect();
        let more = violations.len() > VIOLATIONS_MAX;
        violations.truncate(VIOLATIONS_MAX);
        Err(Refused::Violations { violations, more })
    }

    /// How much work checking a value can take at most, in units of [`WORK_MAX`].
    #[must_use]
    pub fn work(&self, value: &Value) -> u64 {
        self.work.units(measure(value))
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema").finish_non_exhaustive()
    }
}

/// Compiled schemas, each compiled once and shared by all who have the same one.
#[derive(Debug, Default)]
pub struct Validators {
    compiled: Mutex<BTreeMap<Digest, Arc<CompiledSchema>>>,
}

impl Validators {
    /// The most schemas that are kept; the next one makes room by starting over.
    pub const KEPT_MAX: usize = 10_000;

    /// The compiled form of a schema.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it; paths begin at the schema.
    pub fn get(&self, schema: &Value) -> Result<Arc<CompiledSchema>, Problems> {
        // Even to tell which one it is must end.
        check_limits(schema).map_err(|problem| Problems::from_iter([*problem]))?;
        let digest = digest_of(schema);
        // What is inside is whole after every step, so a panic elsewhere does not matter.
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).map(Arc::clone);
        if let Some(known) = known {
            return Ok(known);
        }
        let compiled = Arc::new(CompiledSchema::compile(schema)?);
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= Self::KEPT_MAX {
            all.clear();
        }
        // Whoever was faster is kept, so that all share one.
        Ok(Arc::clone(all.entry(digest).or_insert(compiled)))
    }

    /// How many schemas are kept.
    #[must_use]
    pub fn count(&self) -> usize {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The compiled schemas of a contract that something refers to, by name.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with one of them; none, if the contract was read by this crate.
    pub fn of(&self, contract: &Contract) -> Result<BTreeMap<String, Arc<CompiledSchema>>, Problems> {
        let used = contract.used_schemas();
        let schemas = contract.schemas.iter().filter(|(name, _)| used.contains(name.as_str()));
        schemas.map(|(name, schema)| Ok((name.clone(), self.get(schema)?))).collect()
    }
}

fn measure(value: &Value) -> Size {
    let mut size = Size::default();
    let bytes = |text: &String| u64::try_from(text.len()).unwrap_or(u64::MAX);
    // Each value with how many objects and lists are around it.
    let mut waiting = vec![(value, 0)];
    while let Some((value, around)) = waiting.pop() {
        size.places += 1;
        let depth = around + usize::from(value.is_array() || value.is_object());
        size.depth = size.depth.max(depth);
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, depth))),
            Value::Object(map) => {
                size.bytes += map.keys().map(bytes).sum::<u64>();
                waiting.extend(map.values().map(|item| (item, depth)));
            }
            Value::String(text) => size.bytes += bytes(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    size
}

/// The first object or list that is nested too deep.
fn too_deep(value: &Value) -> String {
    let mut waiting = vec![(String::new(), value, 0)];
    while let Some((path, value, around)) = waiting.pop() {
        let is_nest = value.is_array() || value.is_object();
        if is_nest && around == VALUE_DEPTH_MAX {
            return path;
        }
        // The first one is looked at first.
        let inner = inside(value).into_iter().rev();
        waiting.extend(inner.map(|(token, inner)| (child(&path, token), inner, around + 1)));
    }
    String::new()
}

/// The part of a value that has most of it: the way leads down as long as one part has more than half.
fn largest(value: &Value) -> String {
    let weight = |value: &Value| {
        let Size { places, bytes, .. } = measure(value);
        places.saturating_add(bytes)
    };
    let (mut path, mut value, whole) = (String::new(), value, weight(value));
    for _ in 0..VALUE_DEPTH_MAX {
        let Some((token, inner)) = inside(value).into_iter().find(|(_, inner)| weight(inner) > whole / 2)
        else {
            break;
        };
        path = child(&path, token);
        value = inner;
    }
    path
}

/// The values in a value, each with its name or index.
fn inside(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn most_of_it(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("; most of it is for {path}") }
}

fn summary(violations: &[Violation], more: bool) -> String {
    let first = violations.first().map_or("the value is refused".to_owned(), |first| {
        let place = if first.instance_path.is_empty() { "the value" } else { &first.instance_path };
        format!("{place}: {}", first.message)
    });
    match violations.len() {
        0 | 1 if !more => first,
        _ if more => format!("{first}, and more"),
        count => format!("{first}, and {} more", count - 1),
    }
}
