use std::fmt;
use std::str::FromStr;

use super::problem::{Code, Problem, excerpt};

/// How a keyspace is read: by the values of some segments, and perhaps a range of one more.
///
/// Written as the names of segments with commas between, the last with `..` if it is a range:
/// `tenant,case,at..` reads the events of a case between two times. `*` reads the whole keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessPath {
    equal: Vec<Box<str>>,
    range: Option<Box<str>>,
}

impl AccessPath {
    /// The whole keyspace.
    pub fn all() -> Self {
        Self::default()
    }

    /// Reads the notation.
    ///
    /// # Errors
    /// What is malformed, and where.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, Problem> {
        const HELP: &str =
            "write names with commas between, such as tenant,case,at.. with a range at the end";
        let text = text.as_ref();
        if text == "*" {
            return Ok(Self::all());
        }
        let (mut path, mut at) = (Self::default(), 0);
        for part in text.split(',') {
            let name = part.strip_suffix("..").unwrap_or(part);
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !is_name {
                let message = format!("{} is no name of a segment", excerpt(part));
                return Err(Problem::new(Code::PathForm, at, message, HELP));
            }
            if path.range.is_some() {
                return Err(Problem::new(Code::PathForm, at, "nothing can follow a range", HELP));
            }
            if path.equal.iter().any(|other| **other == *name) {
                let message = format!("the segment {name} is there twice");
                return Err(Problem::new(Code::PathTwice, at, message, "leave one of them out"));
            }
            if name.len() == part.len() {
                path.equal.push(name.into());
            } else {
                path.range = Some(name.into());
            }
            at += part.len() + 1;
        }
        Ok(path)
    }

    /// The segments whose values are given.
    pub fn equal(&self) -> impl Iterator<Item = &str> {
        self.equal.iter().map(AsRef::as_ref)
    }

    /// The segment of which a range is read.
    pub fn range(&self) -> Option<&str> {
        self.range.as_deref()
    }

    /// All its segments, with the place of each in its text.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut next = 0;
        self.equal().chain(self.range()).map(move |name| {
            let at = next;
            next += name.len() + 1;
            (at, name)
        })
    }
}

impl fmt::Display for AccessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.equal().map(str::to_owned).collect();
        names.extend(self.range().map(|name| format!("{name}..")));
        f.write_str(if names.is_empty() { "*" } else { "" })?;
        f.write_str(&names.join(","))
    }
}

impl FromStr for AccessPath {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        Self::parse(text)
    }
}
