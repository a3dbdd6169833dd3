use std::fmt;

use serde::Serialize;

use super::problem::Problem;
use super::{Grammar, Kind, Time, Value};

/// What a key says, part by part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The grammar it was read by.
    pub grammar: String,
    /// The key.
    pub key: String,
    /// Whose data it is, if the grammar says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its parts, in their order; a rest of no tokens is not among them.
    pub parts: Vec<Part>,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The byte of the key where it begins.
    pub at: usize,
    /// What stands there.
    pub text: String,
    /// The name of its segment; a literal has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its type, as it is written in a grammar, or `literal`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its value as people write it; a literal has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether it says whose data it is.
    pub tenant: bool,
    /// What more can be told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Grammar {
    /// Tells what a key says, part by part.
    ///
    /// # Errors
    /// Which segment the key does not fit, where, and what was expected there.
    pub fn explain(&self, key: &str) -> Result<Explanation, Problem> {
        let mut parts = Vec::new();
        for step in self.steps(key) {
            let (segment, at, text) = step?;
            let value = segment.kind().read(text).ok_or_else(|| self.refused(at, text, segment))?;
            if text.is_empty() {
                continue;
            }
            let is_literal = matches!(segment.kind(), Kind::Literal(_));
            parts.push(Part {
                at,
                text: text.to_owned(),
                name: segment.name().map(str::to_owned),
                kind: if is_literal { "literal".into() } else { segment.kind().to_string() },
                value: (!is_literal).then(|| value.to_string()),
                tenant: segment.is_tenant(),
                note: note(&value),
            });
        }
        let tenant = parts.iter().find(|part| part.tenant).and_then(|part| part.value.clone());
        Ok(Explanation { grammar: self.to_string(), key: key.to_owned(), tenant, parts })
    }
}

fn note(value: &Value<'_>) -> Option<String> {
    let milliseconds = match value {
        Value::Ulid(ulid) => ulid >> 80,
        // The seventh version of UUIDs begins with a time, too.
        Value::Uuid(uuid) if (uuid >> 76) & 15 == 7 => uuid >> 80,
        _ => return None,
    };
    let time = Time::from_milliseconds(i64::try_from(milliseconds).ok()?)?;
    Some(format!("made {time}"))
}

/// A line for each part: where, what stands there, and what it is.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.parts.iter().map(|part| part.text.len()).max().unwrap_or(0);
        for part in &self.parts {
            write!(f, "{:>4}  {:<width$}  {part}", part.at, part.text)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

/// What it is, in a line: `case, a ulid, made 2026-07-05T10:15:30Z`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = &self.name else { return f.write_str("literal") };
        write!(f, "{name}: {}", self.kind)?;
        if let Some(value) = self.value.as_ref().filter(|value| **value != self.text) {
            write!(f, " = {value}")?;
        }
        if let Some(note) = &self.note {
            write!(f, ", {note}")?;
        }
        f.write_str(if self.tenant { ", the tenant" } else { "" })
    }
}
