use std::cell::OnceCell;

use pleach_contract::evolution::Question;
use pleach_contract::key::{Grammar, Kind};
use pleach_contract::{KvResource, Refused, Violation, canonical};
use pleach_engine::{Entry, Timestamp};
use serde_json::Value;

use crate::asked::Asked;
use crate::compiled::{CompiledKeyspace, Misfit};
use crate::evidence::Sample;
use crate::judge::{Judge, Ruling, StoredRecord};
use crate::kv::Retaining;
use crate::state::StatePlace;

/// A stored record that a survey looks at: its value is parsed once and judged at most once by each contract, whatever is
/// asked about it.
pub(crate) struct SurveyedEntry<'e> {
    record: StoredRecord<'e>,
    judges: Judges<'e>,
    /// How many records its key has, if someone asked.
    pub(crate) records: u64,
    keyspace: OnceCell<Option<&'e CompiledKeyspace>>,
    fate: OnceCell<Fate>,
}

/// The contracts that a record is judged by.
#[derive(Clone, Copy)]
pub(crate) struct Judges<'e> {
    /// The contract in force; none if there is none, so that nobody can say what was readable.
    pub(crate) old: Option<&'e Judge>,
    pub(crate) new: &'e Judge,
    /// Whether both read every record alike.
    pub(crate) is_alike: bool,
}

/// What becomes of a record under the new contract.
#[derive(Debug)]
pub(crate) enum Fate {
    /// Readers get it, or never ask for it.
    Fine,
    /// Readers are refused it. Under the contract in force they are not, or nobody can say.
    Lost(Misfit),
    /// Readers are refused it, as they are under the contract in force.
    Unreadable(Misfit),
}

/// What an entry has against a change.
pub(crate) struct Against {
    pub(crate) path: String,
    pub(crate) message: String,
    /// Whether it is against this very change, as far as one can tell, and not against another.
    pub(crate) is_its_own: bool,
}

impl<'e> SurveyedEntry<'e> {
    pub(crate) fn new(entry: &'e Entry, judges: Judges<'e>) -> Self {
        let (keyspace, fate) = (OnceCell::new(), OnceCell::new());
        Self { record: StoredRecord::new(entry), judges, records: 0, keyspace, fate }
    }

    /// The version that it carries.
    pub(crate) fn stamped(&self) -> Option<&str> {
        self.record.stamped()
    }

    /// What becomes of it.
    pub(crate) fn fate(&self) -> &Fate {
        self.fate.get_or_init(|| self.judge())
    }

    fn judge(&self) -> Fate {
        if self.judges.is_alike {
            return Fate::Fine;
        }
        let new = self.judges.new.judge(&self.record);
        if new == Ruling::Readable {
            return Fate::Fine;
        }
        let old = self.judges.old.map(|old| old.judge(&self.record));
        match (old, new) {
            (_, Ruling::Readable) | (Some(Ruling::Reserved(_)), Ruling::Reserved(_) | Ruling::Outside(_)) => {
                Fate::Fine
            }
            // What had no place, and has one that refuses it, was out of reach and comes back broken.
            (None | Some(Ruling::Readable | Ruling::Reserved(_)), Ruling::Refused(misfit))
            | (Some(Ruling::Outside(_)), Ruling::Refused(misfit))
            | (None | Some(Ruling::Readable), Ruling::Outside(misfit) | Ruling::Reserved(misfit)) => {
                Fate::Lost(misfit)
            }
            (Some(Ruling::Outside(_)), Ruling::Outside(misfit) | Ruling::Reserved(misfit))
            | (
                Some(Ruling::Refused(_)),
                Ruling::Refused(misfit) | Ruling::Outside(misfit) | Ruling::Reserved(misfit),
            ) => Fate::Unreadable(misfit),
        }
    }

    /// Whether it is in this keyspace and of this version, where one is given.
    pub(crate) fn is_of(&self, keyspace: Option<&str>, version: Option<&str>) -> bool {
        let in_keyspace =
            keyspace.is_none_or(|name| match self.keyspace().and_then(CompiledKeyspace::name) {
                Some(found) => found == name,
                // Nobody knows what it belongs to: then everyone shall look at it, but for what the store keeps itself.
                None => !self.is_reserved(),
            });
        in_keyspace && version.is_none_or(|version| self.version().is_none_or(|found| found == version))
    }

    /// The keyspace that it was written in, or that it will be in where there was none.
    fn keyspace(&self) -> Option<&'e CompiledKeyspace> {
        let find = || {
            let key = &self.record.entry.key;
            let by = |judge: &'e Judge| judge.keyspace_of(key).ok();
            let old = self.judges.old.and_then(by);
            old.filter(|old| old.name().is_some()).or_else(|| by(self.judges.new)).or(old)
        };
        *self.keyspace.get_or_init(find)
    }

    /// Whether its key is one that the store writes itself.
    fn is_reserved(&self) -> bool {
        let found = self.judges.old.map(|old| old.keyspace_of(&self.record.entry.key));
        matches!(found, Some(Err(Misfit::Kept { .. })))
    }

    /// The version that it has; none if nobody can say.
    fn version(&self) -> Option<&str> {
        let by = |judge: &'e Judge| {
            let keyspace = judge.keyspace_of(&self.record.entry.key).ok()?;
            judge.version_of(&self.record, keyspace)
        };
        self.stamped().or_else(|| self.judges.old.and_then(by)).or_else(|| by(self.judges.new))
    }

    fn lost(&self) -> Option<&Misfit> {
        match self.fate() {
            Fate::Lost(misfit) => Some(misfit),
            Fate::Fine | Fate::Unreadable(_) => None,
        }
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
            Question::Present if asked.is_of_lost => own("", self.lost()?.to_string()),
            Question::Present => own("", "it is there".into()),
            Question::Refused => self.lost().map(|misfit| against(misfit, &asked.path)),
            Question::Carries { pointer } => {
                let value = self.record.value().ok()?;
                let found = carried(value, pointer)?;
                own(&found, "it has something here".into())
            }
            Question::KeyRefused => {
                self.lost()?;
                own("", self.key_refusal(asked.keyspace.as_deref())?)
            }
            Question::Larger { bytes } => self.larger(*bytes).and_then(|message| own("", message)),
            Question::Older { ms } => {
                let (entry, ms) = (self.record.entry, *ms);
                let then = asked.expires_sooner(entry, ms, now)?;
                own("", self.expiring(then))
            }
            Question::Deeper { history } => {
                let records = self.records;
                if records > *history { own("", too_deep(records, *history)) } else { None }
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

    /// Says that it would expire then.
    pub(crate) fn expiring(&self, then: Timestamp) -> String {
        format!("it was written at {} and would expire at {then}", self.record.entry.time)
    }

    /// Says so if its value is larger than this.
    pub(crate) fn larger(&self, bytes: u64) -> Option<String> {
        let size = self.record.entry.value.len() as u64;
        (size > bytes).then(|| format!("it has {size} bytes, and {bytes} would be the most"))
    }

    /// It, as a plan shows it.
    pub(crate) fn sample(&self, against: Against, fix: &str) -> Sample {
        let entry = self.record.entry;
        Sample {
            key: entry.key.to_string(),
            revision: entry.revision,
            version: self.version().map(str::to_owned),
            path: against.path,
            message: against.message,
            fix: fix.to_owned(),
            state: self.judges.new.is_of_state().then(|| StatePlace::of(&entry.key)).flatten(),
            kept: false,
        }
    }

    fn key_refusal(&self, keyspace: Option<&str>) -> Option<String> {
        let new = self.judges.new.resource()?;
        let same = keyspace.and_then(|name| new.keyspaces().iter().find(|found| found.name() == Some(name)));
        let key = &self.record.entry.key;
        match same.and_then(CompiledKeyspace::grammar) {
            Some(grammar) => grammar.read(key.as_str()).err().map(|problem| problem.message),
            None => new.keyspace_of(key).err().map(|misfit| misfit.to_string()),
        }
    }

    /// What its key in an index is made of: the same for values that are the same, however they are written.
    fn index_key(&self, resource: &KvResource, name: &str) -> Option<String> {
        let index = resource.indexes.get(name)?;
        let keyspace = self.keyspace().filter(|keyspace| keyspace.name() == Some(index.of.as_str()))?;
        let value = self.record.value().ok()?;
        let grammar = Grammar::parse(&index.key).ok()?;
        let own = keyspace.grammar()?;
        let own_values = own.read(self.record.entry.key.as_str()).ok()?;
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
        let keyspace = self.keyspace()?;
        let retention = resource.keyspaces.get(keyspace.name()?)?.retention.as_ref()?;
        let retaining = Retaining::of(keyspace, retention, now)?;
        let passed = retaining.passed(self.record.entry.key.as_str())?;
        Some(format!("{passed} lies before {}, where retention begins", retaining.border()))
    }
}

/// That a key has more records than would be kept.
pub(crate) fn too_deep(records: u64, history: u64) -> String {
    format!("its key has {records} records, and {history} would be kept")
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

/// What a misfit has against no change in particular.
pub(crate) fn against_all(misfit: &Misfit) -> Against {
    against(misfit, "")
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
