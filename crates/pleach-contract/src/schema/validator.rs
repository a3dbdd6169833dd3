use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::budget::{Budget, VALUE_DEPTH_MAX, WORK_MAX};
use super::violation::{VIOLATIONS_MAX, Violation};
use crate::canonical::{Digest, digest_of};
use crate::document::Contract;
use crate::problem::Problems;
use crate::text::check_limits;

/// Past this many evaluations only the first violation is looked for, as all of them could be too many to hold.
const COLLECTED_WORK_MAX: u64 = 1_000_000;

/// A schema that is ready to check values.
pub struct CompiledSchema {
    validator: jsonschema::Validator,
    budget: Budget,
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
    #[error("the value is nested deeper than {VALUE_DEPTH_MAX} levels")]
    TooDeep,
    /// It could take too long to check.
    #[error("checking the value could take {work} evaluations, the most is {WORK_MAX}")]
    TooMuchWork {
        /// How many evaluations it could take.
        work: u64,
    },
}

impl Refused {
    /// What to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Violations { .. } => "correct the value, or change the schema and plan that change",
            Self::TooDeep => "nest the value less",
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

    pub(super) fn new(validator: jsonschema::Validator, budget: Budget) -> Self {
        Self { validator, budget }
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Why it is refused. A value that could take too long is refused before it is looked at.
    pub fn validate(&self, value: &Value) -> Result<(), Refused> {
        let (nodes, depth) = measure(value);
        if depth > VALUE_DEPTH_MAX {
            return Err(Refused::TooDeep);
        }
        let work = nodes.saturating_mul(self.budget.evaluations(depth));
        if work > WORK_MAX {
            return Err(Refused::TooMuchWork { work });
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let mut violations: Vec<Violation> = if work > COLLECTED_WORK_MAX {
            self.validator.validate(value).err().iter().map(Violation::of).collect()
        } else {
            let errors = self.validator.iter_errors(value);
            errors.take(VIOLATIONS_MAX + 1).map(|error| Violation::of(&error)).collect()
        };
        let more = violations.len() > VIOLATIONS_MAX || work > COLLECTED_WORK_MAX;
        violations.truncate(VIOLATIONS_MAX);
        Err(Refused::Violations { violations, more })
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

/// How many values there are in a value, and how deep it is nested: 0 for a number.
fn measure(value: &Value) -> (u64, usize) {
    let (mut nodes, mut deepest) = (0, 0);
    let mut waiting = vec![(value, 0)];
    while let Some((value, depth)) = waiting.pop() {
        nodes += 1;
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => waiting.extend(map.values().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    (nodes, deepest)
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
