//! The judge of what can be read: another implementation of JSON Schema than the one of Pleach, a matcher of keys of its own,
//! and the rules of `docs/contracts.md` and `docs/state.md`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use boon::{Compiler, SchemaIndex, Schemas, UrlLoader};
use serde_json::Value;

use crate::document::{declared_versions, place_of};

/// What comes of reading a record under a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Valid,
    /// The schema of its version refuses it.
    Refused,
    /// The contract does not know its version, or it has none.
    UnknownVersion,
    /// The resource has no keyspace for its key.
    NoKeyspace,
    /// The contract has no such resource or store, or there is no contract.
    NoPlace,
}

impl Reading {
    /// Whether a reader meets the record.
    pub(crate) fn is_met(self) -> bool {
        !matches!(self, Self::NoKeyspace | Self::NoPlace)
    }

    /// Whether a plan that is called safe may lead from one reading to the other: what was met and could not be read
    /// need not be readable afterwards, and what nobody met need not be met.
    pub(crate) fn may_become(self, after: Self) -> bool {
        after == Self::Valid || (self.is_met() && self != Self::Valid) || (!self.is_met() && !after.is_met())
    }
}

/// Compiles every schema once.
#[derive(Default)]
pub(crate) struct Judge {
    compiled: RefCell<HashMap<String, Rc<Option<Compiled>>>>,
}

struct Compiled {
    schemas: Schemas,
    index: SchemaIndex,
}

struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is not loaded: nothing is").into())
    }
}

impl Judge {
    /// Whether a schema allows a value; none if the judge takes the schema for none.
    pub(crate) fn allows(&self, schema: &Value, value: &Value) -> Option<bool> {
        let text = schema.to_string();
        let known = self.compiled.borrow().get(&text).map(Rc::clone);
        let compiled = known.unwrap_or_else(|| {
            let compiled = Rc::new(compiled(schema));
            self.compiled.borrow_mut().insert(text, Rc::clone(&compiled));
            compiled
        });
        let Compiled { schemas, index } = (*compiled).as_ref()?;
        Some(schemas.validate(value, *index).is_ok())
    }

    /// What comes of reading a record of a KV resource that has this version.
    pub(crate) fn kv(
        &self,
        document: Option<&Value>,
        alias: &str,
        key: &str,
        version: Option<&str>,
        value: &Value,
    ) -> Reading {
        let Some(document) = document else { return Reading::NoPlace };
        let resource = &document["resources"]["kv"][alias];
        if resource.is_null() {
            return Reading::NoPlace;
        }
        let Some(place) = place_of(resource, key) else { return Reading::NoKeyspace };
        self.read(document, &declared_versions(&place, "version"), version, value)
    }

    /// What comes of reading an entry of a state store.
    pub(crate) fn state(
        &self,
        document: Option<&Value>,
        store: &str,
        has_key: bool,
        version: &str,
        value: &Value,
    ) -> Reading {
        let Some(document) = document else { return Reading::NoPlace };
        let declared = &document["state"][store];
        if declared.is_null() || (declared["kind"] == "map") != has_key {
            return Reading::NoPlace;
        }
        self.read(document, &declared_versions(declared, "stateVersion"), Some(version), value)
    }

    fn read(
        &self,
        document: &Value,
        versions: &[(String, String)],
        version: Option<&str>,
        value: &Value,
    ) -> Reading {
        let known = versions.iter().find(|(known, _)| Some(known.as_str()) == version);
        let Some((_, schema)) = known else { return Reading::UnknownVersion };
        match self.allows(&document["schemas"][schema], value) {
            Some(true) => Reading::Valid,
            Some(false) => Reading::Refused,
            None => panic!("the judge does not compile {}", document["schemas"][schema]),
        }
    }
}

fn compiled(schema: &Value) -> Option<Compiled> {
    let mut compiler = Compiler::new();
    compiler.use_loader(Box::new(NoLoader));
    compiler.enable_format_assertions();
    compiler.add_resource("https://judge.test/schema", schema.clone()).ok()?;
    let mut schemas = Schemas::new();
    let index = compiler.compile("https://judge.test/schema", &mut schemas).ok()?;
    Some(Compiled { schemas, index })
}

#[test]
fn a_safe_plan_may_not_make_a_record_unreadable_that_was_readable_or_out_of_reach() {
    use Reading::{NoKeyspace, NoPlace, Refused, UnknownVersion, Valid};
    for (before, after) in
        [(Valid, Valid), (Refused, UnknownVersion), (NoKeyspace, NoPlace), (NoKeyspace, Valid)]
    {
        assert!(before.may_become(after), "{before:?} {after:?}");
    }
    for (before, after) in
        [(Valid, Refused), (Valid, NoKeyspace), (NoPlace, Refused), (NoKeyspace, UnknownVersion)]
    {
        assert!(!before.may_become(after), "{before:?} {after:?}");
    }
}
