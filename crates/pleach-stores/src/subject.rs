use std::cell::OnceCell;
use std::time::Duration;

use pleach_contract::evolution::Question;
use pleach_contract::key::{Grammar, Kind};
use pleach_contract::{KvResource, Refused, Violation, canonical, parse_json_strict};
use pleach_engine::{Entry, Timestamp};
use serde_json::Value;

use crate::binding::Unstamped;
use crate::compiled::{CompiledKeyspace, CompiledResource, Misfit};
use crate::envelope::Envelope;
use crate::guard::version_of;
use crate::kv::Retaining;
use crate::plan::Sample;
use crate::survey::Asked;

/// A stored entry that is looked at: its value is parsed and judged at most once, whatever is asked about it.
pub(crate) struct Looked<'e> {
    entry: &'e Entry,
    /// Its keyspace under the contract it was written under; none if that has no place for it.
    keyspace: Option<&'e CompiledKeyspace>,
    new: Option<&'e CompiledResource>,
    unstamped: Option<&'e Unstamped>,
    is_kept: bool,
    /// How many records its key has, if someone asked.
    pub(crate) records: u64,
    value: OnceCell<Result<Value, String>>,
    refusal: OnceCell<Option<Misfit>>,
}

/// What an entry has against a change.
pub(crate) struct Against {
    path: String,
    message: String,
    /// Whether it is against this very change, as far as one can tell, and not against another.
    pub(crate) is_its_own: bool,
}

impl<'e> Looked<'e> {
    pub(crate) fn at(
        entry: &'e Entry,
        old: Option<&'e CompiledResource>,
        new: Option<&'e CompiledResource>,
        unstamped: Option<&'e Unstamped>,
    ) -> Self {
        let found = old.or(new).map(|resource| resource.keyspace_of(&entry.key));
        let is_kept = old.is_some() && matches!(found, Some(Err(Misfit::Kept { .. })));
        let keyspace = found.and_then(Result::ok);
        let (value, refusal) = (OnceCell::new(), OnceCell::new());
        Self { entry, keyspace, new, unstamped, is_kept, records: 0, value, refusal }
    }

    /// The version that it carries.
    pub(crate) fn stamped(&self) -> Option<&str> {
        self.entry.headers.get(Envelope::VERSION)
    }

    /// Whether it is in this keyspace and of this version, where one is given.
    pub(crate) fn is_of(&self, keyspace: Option<&str>, version: Option<&str>) -> bool {
        let in_keyspace = keyspace.is_none_or(|name| match self.keyspace_name() {
            Some(found) => found == name,
            // Nobody knows what it belongs to: then everyone shall look at it, but for what the store keeps itself.
            None => !self.is_kept,
        });
        in_keyspace && version.is_none_or(|version| self.version().is_none_or(|found| found == version))
    }

    /// The keyspace that it was written in, or that it will be in where there were none.
    fn keyspace_name(&self) -> Option<&str> {
        let written = self.keyspace.and_then(CompiledKeyspace::name);
        written.or_else(|| self.new?.keyspace_of(&self.entry.key).ok()?.name())
    }

    /// The version that it has; none if nobody can say.
    fn version(&self) -> Option<&str> {
        match self.keyspace {
            Some(keyspace) => Some(version_of(self.stamped(), keyspace, self.unstamped)),
            None => self.stamped(),
        }
    }

    fn value(&self) -> &Result<Value, String> {
        self.value.get_or_init(|| parse_json_strict(&self.entry.value).map_err(|error| error.to_string()))
    }

    /// Why the new contract refuses it, if it does.
    pub(crate) fn refusal(&self) -> Option<&Misfit> {
        self.refusal.get_or_init(|| if self.is_kept { None } else { self.judge().err() }).as_ref()
    }

    fn judge(&self) -> Result<(), Misfit> {
        let Some(new) = self.new else { return Ok(()) };
        let keyspace = new.keyspace_of(&self.entry.key)?;
        let value = self.value().as_ref().map_err(|reason| Misfit::NotJson { reason: reason.clone() })?;
        let version = self.version().unwrap_or_else(|| version_of(self.stamped(), keyspace, self.unstamped));
        keyspace.check_value(version, value)
    }

    /// What it has against what is asked, if anything.
    pub(crate) fn answer(
        &self,
        asked: &mut Asked,
        resource: Option<&KvResource>,
        now: Timestamp,
    ) -> Option<Against> {
        let own =
            |path: &str, message: String| Some(Against { path: path.to_owned(), message, is_its_own: true });
        match &asked.question {
            Question::Present => own("", "it is there".into()),
            Question::Refused => self.refusal().map(|misfit| against(misfit, &asked.path)),
            Question::Carries { pointer } => {
                let value = self.value().as_ref().ok()?;
                let found = carried(value, pointer)?;
                own(&found, "it has something here".into())
            }
            Question::KeyRefused => {
                let misfit = self.key_refusal(asked.keyspace.as_deref())?;
                own("", misfit)
            }
            Question::Larger { bytes } => {
                let size = self.entry.value.len() as u64;
                if size > *bytes {
                    own("", format!("it has {size} bytes, and {bytes} would be the most"))
                } else {
                    None
                }
            }
            Question::Older { ms } => {
                let age = now.since(self.entry.time);
                if age >= Duration::from_millis(*ms) {
                    own("", format!("it was written at {} and would be gone", self.entry.time))
                } else {
                    None
                }
            }
            Question::Deeper { history } => {
                let records = self.records;
                if records > *history {
                    own("", format!("its key has {records} records, and {history} would be kept"))
                } else {
                    None
                }
            }
            Question::Twice { index } => {
                let key = self.index_key(resource?, index)?;
                let is_new = asked.taken.insert(key);
                if is_new {
                    None
                } else {
                    own("", format!("another entry has the same key of the index `{index}`"))
                }
            }
            Question::Retained => self.passed_by(resource?, now).and_then(|message| own("", message)),
        }
    }

    /// It, as a plan shows it.
    pub(crate) fn sample(&self, against: Against, fix: &str) -> Sample {
        Sample {
            key: self.entry.key.to_string(),
            revision: self.entry.revision,
            version: self.version().map(str::to_owned),
            path: against.path,
            message: against.message,
            fix: fix.to_owned(),
        }
    }

    fn key_refusal(&self, keyspace: Option<&str>) -> Option<String> {
        let new = self.new?;
        let same = keyspace.and_then(|name| new.keyspaces().iter().find(|found| found.name() == Some(name)));
        match same.and_then(CompiledKeyspace::grammar) {
            Some(grammar) => grammar.read(self.entry.key.as_str()).err().map(|problem| problem.message),
            None => new.keyspace_of(&self.entry.key).err().map(|misfit| misfit.to_string()),
        }
    }

    /// What its key in an index is made of: the same for values that are the same, however they are written.
    fn index_key(&self, resource: &KvResource, name: &str) -> Option<String> {
        let index = resource.indexes.get(name)?;
        if self.keyspace?.name() != Some(index.of.as_str()) {
            return None;
        }
        let value = self.value().as_ref().ok()?;
        let grammar = Grammar::parse(&index.key).ok()?;
        let own = self.keyspace?.grammar()?;
        let own_values = own.read(self.entry.key.as_str()).ok()?;
        let mut key = String::new();
        for segment in grammar.named() {
            let name = segment.name()?;
            let part = match index.values.get(name) {
                Some(pointer) => same_for_all(segment.kind(), value.pointer(pointer)?),
                None => {
                    let at = own.named().position(|own| own.name() == Some(name))?;
                    own_values.get(at)?.to_string()
                }
            };
            key.push_str(&part);
            key.push('\n');
        }
        Some(key)
    }

    /// Says so if its key lies further back than retention keeps.
    fn passed_by(&self, resource: &KvResource, now: Timestamp) -> Option<String> {
        let keyspace = self.keyspace?;
        let retention = resource.keyspaces.get(keyspace.name()?)?.retention.as_ref()?;
        let retaining = Retaining::of(keyspace, retention, now)?;
        let passed = retaining.passed(self.entry.key.as_str())?;
        Some(format!("{passed} lies before {}, where retention begins", retaining.border()))
    }
}

/// A text that is the same for all ways to write down a value of some kind.
fn same_for_all(kind: &Kind, value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    match kind {
        Kind::Uuid | Kind::Ulid | Kind::Hash { .. } if value.is_string() => text.to_ascii_lowercase(),
        Kind::Time { fraction_digits: 0..=MOMENT_DIGITS } => {
            moment(text).map_or_else(|| canonical(value), |time| time.to_string())
        }
        _ => canonical(value),
    }
}

/// The fraction of a second that a moment has.
const MOMENT_DIGITS: u8 = 6;

/// The moment that a text of RFC 3339 means, in whatever zone.
fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    let (local, zone) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    let ahead = match zone.chars().next()? {
        '+' => minutes,
        '-' => -minutes,
        _ => return None,
    };
    let local: Timestamp = format!("{local}Z").parse().ok()?;
    let micros = i64::try_from(local.as_micros()).ok()?.checked_sub(ahead * 60_000_000)?;
    u64::try_from(micros).ok().map(Timestamp::from_micros)
}

/// What a misfit has against a change at `path` of the contract: the violation that the change causes, if there is one.
fn against(misfit: &Misfit, path: &str) -> Against {
    let Misfit::Value(Refused::Violations { violations, more }) = misfit else {
        return Against { path: String::new(), message: misfit.to_string(), is_its_own: true };
    };
    let own = violations.iter().find(|violation| belongs(violation, path));
    let shown = own.or(violations.first());
    Against {
        path: shown.map(|violation| violation.instance_path.clone()).unwrap_or_default(),
        message: shown.map_or_else(|| misfit.to_string(), |violation| violation.message.clone()),
        // Where not all are listed, what is not listed may be against it.
        is_its_own: own.is_some() || *more,
    }
}

/// Whether a violation is of the part of a schema that `path` in the contract points into.
fn belongs(violation: &Violation, path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/schemas/") else { return true };
    let place = rest.find('/').map_or("", |at| &rest[at..]);
    let begins = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    begins(&violation.schema_path, place) || begins(place, &violation.schema_path)
}

/// The first place in `value` that a pointer leads to, in which `*` stands for any field or item.
fn carried(value: &Value, pointer: &str) -> Option<String> {
    let mut tokens = pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"));
    let found = descend(value, &tokens.by_ref().collect::<Vec<_>>())?;
    Some(found)
}

fn descend(value: &Value, tokens: &[String]) -> Option<String> {
    let Some((first, rest)) = tokens.split_first() else { return Some(String::new()) };
    let below = |name: &str, child: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        descend(child, rest).map(|place| format!("/{name}{place}"))
    };
    match value {
        Value::Object(map) if first == "*" => map.iter().find_map(|(name, child)| below(name, child)),
        Value::Object(map) => map.get(first).and_then(|child| below(first, child)),
        Value::Array(items) if first == "*" => {
            items.iter().enumerate().find_map(|(index, child)| below(&index.to_string(), child))
        }
        Value::Array(items) => {
            let index: usize = first.parse().ok()?;
            items.get(index).and_then(|child| below(first, child))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_in_a_pointer_stands_for_any_field_or_item() {
        let value = json!({"a": [{"b": 1}, {"c~/d": 2}], "e": null});
        let check = |pointer: &str, found: Option<&str>| {
            assert_eq!(carried(&value, pointer).as_deref(), found, "{pointer}");
        };
        check("", Some(""));
        check("/e", Some("/e"));
        check("/a/1", Some("/a/1"));
        check("/a/*/c~0~1d", Some("/a/1/c~0~1d"));
        check("/*/*/b", Some("/a/0/b"));
        check("/a/2", None);
        check("/e/x", None);
    }
}
