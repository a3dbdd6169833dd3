use std::fmt;
use std::str::FromStr;

use pleach_engine::{Key, RESERVED_PREFIX};

use super::problem::{Code, GrammarError, Problem, excerpt};
use super::{Kind, Value, notation};

/// The longest text of a grammar, in bytes.
pub const GRAMMAR_BYTES_MAX: usize = 4096;
/// The most segments of a grammar, literals included.
pub const SEGMENTS_MAX: usize = 32;
/// The longest name of a segment, in bytes.
pub const NAME_BYTES_MAX: usize = 32;
/// The most values of an enum.
pub const VARIANTS_MAX: usize = 64;
/// The longest slug or token, in bytes, if the grammar does not say.
pub const TEXT_BYTES_DEFAULT: usize = 64;
/// The longest rest, in bytes, if the grammar does not say.
pub const REST_BYTES_DEFAULT: usize = 256;
/// The most bytes of a binary value, if the grammar does not say.
pub const BYTES_DEFAULT: usize = 64;
/// How long a hash is, in bytes, if the grammar does not say: as SHA-256 gives it.
pub const HASH_BYTES_DEFAULT: usize = 32;
/// The name of the segment that says whose data it is.
pub const TENANT: &str = "tenant";

/// What the keys of a keyspace look like: literal tokens, and segments with a name and a type.
///
/// Keys of one grammar sort as the values of their segments do, from the first segment to the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grammar {
    text: Box<str>,
    segments: Box<[Segment]>,
    key_bytes_max: usize,
}

/// A token of a grammar: a literal, or a value with a name and a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    name: Option<Box<str>>,
    kind: Kind,
}

impl Grammar {
    /// Reads the notation, such as `t.{tenant}.order.{at:time}.{id:ulid}`.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, GrammarError> {
        notation::parse(text.as_ref())
    }

    /// Of segments that were checked.
    pub(super) fn of(segments: Vec<Segment>, key_bytes_max: usize) -> Self {
        let text: Vec<String> = segments.iter().map(Segment::to_string).collect();
        Self { text: text.join(".").into(), segments: segments.into(), key_bytes_max }
    }

    /// Its text, in the one form that grammars of the same meaning share.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its segments, literals included.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Its segments that have a value, in the order of [`Self::build`] and [`Self::read`].
    pub fn named(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.kind.has_value())
    }

    /// The segment that says whose data it is, if there is one.
    pub fn tenant(&self) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.is_tenant())
    }

    /// The longest key that it can build, in bytes.
    pub fn key_bytes_max(&self) -> usize {
        self.key_bytes_max
    }

    /// The key of these values, one for each segment that has a name, in their order.
    ///
    /// # Errors
    /// Which value cannot stand in its segment, and why.
    pub fn build(&self, values: &[Value<'_>]) -> Result<Key, Problem> {
        let mut text = String::with_capacity(self.key_bytes_max.min(128));
        let mut left = values.iter();
        for segment in &self.segments {
            let at = text.len();
            if at > 0 {
                text.push('.');
            }
            match &segment.kind {
                Kind::Literal(literal) => text.push_str(literal),
                _ => segment.write(left.next().ok_or_else(|| self.wrong_count(values))?, &mut text)?,
            }
            // A rest of no tokens has no dot before it, either.
            if matches!(segment.kind, Kind::Rest { .. }) && text.len() == at + 1 {
                text.truncate(at);
            }
        }
        if left.next().is_some() {
            return Err(self.wrong_count(values));
        }
        Key::parse(&text).map_err(|error| {
            Problem::new(Code::KeyReserved, 0, error.to_string(), error.help()).of_segment(&self.segments[0])
        })
    }

    /// The values that a key is made of, one for each segment that has a name, in their order.
    ///
    /// # Errors
    /// Which segment the key does not fit, where, and what was expected there.
    pub fn read<'k>(&self, key: &'k str) -> Result<Vec<Value<'k>>, Problem> {
        let mut values = Vec::with_capacity(self.segments.len());
        for step in self.steps(key) {
            let (segment, at, token) = step?;
            match &segment.kind {
                Kind::Literal(literal) if **literal == *token => {}
                kind => values.push(kind.read(token).ok_or_else(|| self.refused(at, token, segment))?),
            }
        }
        Ok(values)
    }

    /// Whether it has this key.
    pub fn has(&self, key: &str) -> bool {
        self.read(key).is_ok()
    }

    /// Goes through a key beside the segments: the segment, where its text begins, its text.
    pub(super) fn steps<'g, 'k>(&'g self, key: &'k str) -> Steps<'g, 'k> {
        Steps { grammar: self, key, at: 0, index: 0, ended: false }
    }

    fn wrong_count(&self, values: &[Value<'_>]) -> Problem {
        let expected = self.named().count();
        let names: Vec<&str> = self.named().filter_map(Segment::name).collect();
        let message = format!("there are {} values for {expected} segments", values.len());
        Problem::new(Code::ValueCount, 0, message, format!("give one for each of: {}", names.join(", ")))
    }

    /// Why `token` does not fit `segment`; not on the way of keys that fit.
    pub(super) fn refused(&self, at: usize, token: &str, segment: &Segment) -> Problem {
        let (code, help) = match &segment.kind {
            Kind::Literal(_) => (Code::KeyLiteral, format!("keys here have the form {self}")),
            Kind::Slug { .. } if token.contains('-') => (
                Code::KeySegment,
                "a slug takes no `-`, which sorts before the dot that ends it: use `_`, or the type `token`"
                    .into(),
            ),
            _ => (Code::KeySegment, format!("keys here have the form {self}")),
        };
        let message = format!("expected {}, found {}", segment.expects(), excerpt(token));
        Problem::new(code, at, message, help).of_segment(segment)
    }
}

/// A walk through a key, segment by segment.
#[derive(Debug)]
pub(super) struct Steps<'g, 'k> {
    grammar: &'g Grammar,
    key: &'k str,
    at: usize,
    index: usize,
    ended: bool,
}

impl<'g, 'k> Iterator for Steps<'g, 'k> {
    type Item = Result<(&'g Segment, usize, &'k str), Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let segments = &self.grammar.segments;
        let Some(segment) = segments.get(self.index) else {
            return (!self.ended).then(|| {
                self.ended = true;
                Err(self.goes_on())
            });
        };
        let is_rest = matches!(segment.kind, Kind::Rest { .. });
        if self.index == 0 && self.key.starts_with(RESERVED_PREFIX) {
            self.index = segments.len();
            self.ended = true;
            return Some(Err(reserved(segment)));
        }
        if self.ended {
            self.index = segments.len();
            // The rest may be no tokens at all.
            return Some(if is_rest { Ok((segment, self.at, "")) } else { Err(self.ends(segment)) });
        }
        self.index += 1;
        let left = &self.key[self.at..];
        let start = self.at;
        let length = if is_rest { left.len() } else { left.find('.').unwrap_or(left.len()) };
        self.ended = start + length == self.key.len();
        self.at = if self.ended { self.key.len() } else { start + length + 1 };
        let token = &left[..length];
        if token.is_empty() {
            self.index = segments.len();
            self.ended = true;
            let help = format!("keys here have the form {}", self.grammar);
            let message = format!("expected {}, found nothing", segment.expects());
            return Some(Err(Problem::new(Code::KeyToken, start, message, help).of_segment(segment)));
        }
        Some(Ok((segment, start, token)))
    }
}

impl Steps<'_, '_> {
    fn ends(&self, segment: &Segment) -> Problem {
        let message = format!("expected {}, but the key ends", segment.expects());
        let help = format!("keys here have the form {}", self.grammar);
        Problem::new(Code::KeyEnds, self.key.len(), message, help).of_segment(segment)
    }

    fn goes_on(&self) -> Problem {
        let last = self.grammar.segments.last();
        let message =
            format!("expected the end of the key, found {}", excerpt(&self.key[self.at.saturating_sub(1)..]));
        let help = format!("keys here have the form {}", self.grammar);
        let problem = Problem::new(Code::KeyGoesOn, self.at.saturating_sub(1), message, help);
        last.into_iter().fold(problem, Problem::of_segment)
    }
}

fn reserved(segment: &Segment) -> Problem {
    let message = format!("the key starts with `{RESERVED_PREFIX}`, which is reserved");
    Problem::new(Code::KeyReserved, 0, message, "choose another beginning").of_segment(segment)
}

impl Segment {
    pub(super) fn literal(text: &str) -> Self {
        Self { name: None, kind: Kind::Literal(text.into()) }
    }

    pub(super) fn named(name: &str, kind: Kind) -> Self {
        Self { name: Some(name.into()), kind }
    }

    /// Its name; a literal has none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What it holds.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether it says whose data it is.
    pub fn is_tenant(&self) -> bool {
        self.name() == Some(TENANT)
    }

    /// What must stand here, for people.
    fn expects(&self) -> String {
        match &self.kind {
            Kind::Literal(literal) => format!("the literal {literal}"),
            kind => format!("{self}, {}", kind.expects()),
        }
    }

    /// Writes `value` at the end of a key.
    pub(super) fn write(&self, value: &Value<'_>, key: &mut String) -> Result<(), Problem> {
        let at = key.len();
        self.kind.write(value, key).map_err(|(code, what)| {
            let message = format!("{self} cannot hold this value: {what}");
            let help = format!("give it {}", self.kind.expects());
            Problem::new(code, at, message, help).of_segment(self)
        })
    }
}

/// As it is written in a grammar.
impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.kind) {
            (None, kind) => write!(f, "{kind}"),
            (Some(name), Kind::Slug { bytes_max: TEXT_BYTES_DEFAULT }) => write!(f, "{{{name}}}"),
            (Some(name), Kind::Rest { bytes_max: REST_BYTES_DEFAULT }) => write!(f, "{{{name}...}}"),
            (Some(name), Kind::Rest { bytes_max }) => write!(f, "{{{name}...({bytes_max})}}"),
            (Some(name), kind) => write!(f, "{{{name}:{kind}}}"),
        }
    }
}

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Grammar {
    type Err = GrammarError;

    fn from_str(text: &str) -> Result<Self, GrammarError> {
        Self::parse(text)
    }
}
