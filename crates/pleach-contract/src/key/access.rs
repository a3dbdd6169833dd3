use std::ops::{Bound, RangeBounds};

use pleach_engine::KeyRange;

use super::coding::{is_slug_byte, is_token_byte};
use super::problem::{Code, Problem, excerpt};
use super::{AccessPath, Grammar, Kind, Segment, Value};

/// Sorts after a dot and before every byte that can follow a slug: what ends the keys that go on with a dot.
const AFTER_DOT: char = '/';

/// An access path that the order of keys serves: its keys are one range.
///
/// Of the keys of its grammar, the range has exactly those that were asked for. Keys of other keyspaces in the same
/// bucket can lie between them: [`Grammar::has`] tells them apart.
#[derive(Clone, Debug)]
pub struct Access<'g> {
    grammar: &'g Grammar,
    /// For each segment with a given value, in the order of the keys: which of the path's values it is.
    equal: Vec<usize>,
    has_range: bool,
}

/// Which values of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Between<'v> {
    /// All.
    All,
    /// Those between two.
    Bounds(Bound<Value<'v>>, Bound<Value<'v>>),
    /// Those that start with a text.
    StartsWith(&'v str),
}

impl<'v> Between<'v> {
    /// Those in a range of the language, such as `Value::Int(1)..Value::Int(5)`.
    pub fn range(range: impl RangeBounds<Value<'v>>) -> Self {
        Self::Bounds(range.start_bound().cloned(), range.end_bound().cloned())
    }

    /// `value` and those after it.
    pub fn since(value: impl Into<Value<'v>>) -> Self {
        Self::Bounds(Bound::Included(value.into()), Bound::Unbounded)
    }

    /// Those before `value`.
    pub fn before(value: impl Into<Value<'v>>) -> Self {
        Self::Bounds(Bound::Unbounded, Bound::Excluded(value.into()))
    }
}

impl Grammar {
    /// Checks that the order of keys serves `path`.
    ///
    /// # Errors
    /// If it does not: what stands in the way, and which index or which order of segments would serve it.
    pub fn access(&self, path: &AccessPath) -> Result<Access<'_>, Problem> {
        let names: Vec<&str> = self.named().filter_map(Segment::name).collect();
        if let Some((at, name)) = path.places().find(|(_, name)| !names.contains(name)) {
            let message = format!("{self} has no segment {name}");
            return Err(Problem::new(Code::PathUnknown, at, message, format!("it has {}", names.join(", "))));
        }
        let given: Vec<&str> = path.equal().collect();
        let leading = &names[..given.len()];
        let in_the_way = leading.iter().find(|name| !given.contains(name));
        let in_the_way = in_the_way.or_else(|| {
            let next = names.get(given.len());
            next.filter(|next| path.range().is_some_and(|range| range != **next))
        });
        if let Some(first) = in_the_way {
            return Err(self.out_of_order(path, first));
        }
        if let Some(name) = path.range() {
            self.check_range(path, name)?;
        }
        let place = |name: &&str| given.iter().position(|other| other == name);
        let equal = leading.iter().filter_map(place).collect();
        Ok(Access { grammar: self, equal, has_range: path.range().is_some() })
    }

    fn check_range(&self, path: &AccessPath, name: &str) -> Result<(), Problem> {
        let Some(index) = self.segments().iter().position(|segment| segment.name() == Some(name)) else {
            return Ok(());
        };
        let segment = &self.segments()[index];
        if segment.kind().is_ordered(index + 1 == self.segments().len()) {
            return Ok(());
        }
        let at = path.places().last().map_or(0, |(at, _)| at);
        let message =
            format!("keys are not in the order of {segment}: `-` sorts before the dot that ends it");
        Err(Problem::new(Code::PathRange, at, message, "make it a slug, or the last segment")
            .of_segment(segment))
    }

    fn out_of_order(&self, path: &AccessPath, first: &str) -> Problem {
        let is_used = |name: &str| path.places().any(|(_, used)| used == name);
        let last =
            self.named().filter_map(Segment::name).filter(|name| is_used(name)).last().unwrap_or(first);
        let message = if path.range() == Some(first) {
            format!(
                "a range of {first} stands before {last} in the keys, so it ends what their order can serve"
            )
        } else {
            format!("keys are ordered by {first} first, which {path} does not give")
        };
        let at = path.places().find(|(_, name)| self.place(name) > self.place(first)).map_or(0, |(at, _)| at);
        let wanted: Vec<&str> = path.places().map(|(_, name)| name).collect();
        let index = format!("declare an index on {}", wanted.join(", "));
        let help = match self.reordered(path) {
            Some(other) => format!("{index}; or order the segments so: {other}"),
            None => index,
        };
        let segment = self.segments().iter().find(|segment| segment.name() == Some(first));
        let problem = Problem::new(Code::PathOrder, at, message, help);
        segment.into_iter().fold(problem, Problem::of_segment)
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.segments().iter().position(|segment| segment.name() == Some(name))
    }

    /// The same segments in an order that serves `path`. Literals go with the segment they stand before.
    fn reordered(&self, path: &AccessPath) -> Option<Self> {
        let mut units: Vec<(Option<&str>, Vec<String>)> = Vec::new();
        let mut unit = Vec::new();
        for segment in self.segments() {
            unit.push(segment.to_string());
            if segment.name().is_some() {
                units.push((segment.name(), std::mem::take(&mut unit)));
            }
        }
        let rank = |name: Option<&str>| match name {
            Some(name) if path.equal().any(|equal| equal == name) => 0,
            name if name.is_some() && name == path.range() => 1,
            _ => 2,
        };
        units.sort_by_key(|(name, _)| rank(*name));
        let tokens: Vec<String> = units.into_iter().flat_map(|(_, unit)| unit).chain(unit).collect();
        let other = Self::parse(tokens.join(".")).ok()?;
        other.access(path).is_ok().then_some(other)
    }
}

impl Access<'_> {
    /// The keys with these values, in the order of the path, that are `between` in the segment of its range.
    /// A path without a range takes [`Between::All`].
    ///
    /// # Errors
    /// Which value does not fit its segment.
    pub fn range(&self, equal: &[Value<'_>], between: &Between<'_>) -> Result<KeyRange, Problem> {
        if equal.len() != self.equal.len() {
            let message = format!("there are {} values for {} segments", equal.len(), self.equal.len());
            return Err(Problem::new(Code::ValueCount, 0, message, "give one for each segment of the path"));
        }
        if !self.has_range && *between != Between::All {
            let help = "declare the access path with a range, such as tenant,at..";
            return Err(Problem::new(Code::PathRange, 0, "this access path has no range", help));
        }
        let Fixed { text, open, is_last } = self.fixed(equal)?;
        match open {
            None => Ok(KeyRange::only(text)),
            Some(segment) if matches!(segment.kind(), Kind::Rest { .. }) => {
                rest_range(&text, segment, between)
            }
            Some(segment) => {
                let prefix = if text.is_empty() { text } else { text + "." };
                segment_range(&prefix, segment, is_last, between)
            }
        }
    }

    /// The keys with these values, in the order of the path.
    ///
    /// # Errors
    /// Which value does not fit its segment.
    pub fn keys(&self, equal: &[Value<'_>]) -> Result<KeyRange, Problem> {
        self.range(equal, &Between::All)
    }

    fn fixed(&self, equal: &[Value<'_>]) -> Result<Fixed<'_>, Problem> {
        let mut text = String::new();
        let mut left = self.equal.iter();
        let last = self.grammar.segments().len() - 1;
        for (index, segment) in self.grammar.segments().iter().enumerate() {
            let value = match segment.kind() {
                Kind::Literal(literal) => {
                    push_dot(&mut text);
                    text.push_str(literal);
                    continue;
                }
                _ => left.next().and_then(|place| equal.get(*place)),
            };
            let Some(value) = value else {
                return Ok(Fixed { text, open: Some(segment), is_last: index == last });
            };
            text = with(text, segment, value)?;
        }
        Ok(Fixed { text, open: None, is_last: true })
    }
}

/// What the keys of some values have in common.
#[derive(Debug)]
struct Fixed<'g> {
    /// What all begin with, without the dot after it.
    text: String,
    /// The segment that follows, if they are not one key.
    open: Option<&'g Segment>,
    /// Whether that is the last.
    is_last: bool,
}

fn push_dot(text: &mut String) {
    if !text.is_empty() {
        text.push('.');
    }
}

/// A key that goes on with this value; a rest of no tokens adds nothing.
fn with(mut text: String, segment: &Segment, value: &Value<'_>) -> Result<String, Problem> {
    let length = text.len();
    push_dot(&mut text);
    let start = text.len();
    segment.write(value, &mut text)?;
    if text.len() == start {
        text.truncate(length);
    }
    Ok(text)
}

fn segment_range(
    prefix: &str,
    segment: &Segment,
    is_last: bool,
    between: &Between<'_>,
) -> Result<KeyRange, Problem> {
    let whole = KeyRange::prefix(prefix);
    let (start, end) = match between {
        Between::All => return Ok(whole),
        Between::StartsWith(text) => return starts_with(prefix, segment, text),
        Between::Bounds(start, end) => (start, end),
    };
    let key = |value: &Value<'_>, after: bool| {
        let mut text = prefix.to_owned();
        segment.write(value, &mut text)?;
        text.extend(after.then_some(AFTER_DOT));
        Ok(text.into_bytes())
    };
    // In the last segment a value is the end of one key; elsewhere it is the beginning of many.
    let start = match start {
        Bound::Unbounded => whole.start,
        Bound::Included(value) => Bound::Included(key(value, false)?),
        Bound::Excluded(value) if is_last => Bound::Excluded(key(value, false)?),
        Bound::Excluded(value) => Bound::Included(key(value, true)?),
    };
    let end = match end {
        Bound::Unbounded => whole.end,
        Bound::Included(value) if is_last => Bound::Included(key(value, false)?),
        Bound::Included(value) => Bound::Excluded(key(value, true)?),
        Bound::Excluded(value) => Bound::Excluded(key(value, false)?),
    };
    Ok(KeyRange { start, end })
}

/// Keys whose rest is so; the key without a rest is the first of them.
fn rest_range(before: &str, segment: &Segment, between: &Between<'_>) -> Result<KeyRange, Problem> {
    let whole = KeyRange::between(before, format!("{before}{AFTER_DOT}"));
    let (start, end) = match between {
        Between::All => return Ok(whole),
        Between::StartsWith("") => return Ok(whole),
        Between::StartsWith(text) => return starts_with(&format!("{before}."), segment, text),
        Between::Bounds(start, end) => (start, end),
    };
    let key = |value: &Value<'_>| Ok(with(before.to_owned(), segment, value)?.into_bytes());
    let bound = |bound: &Bound<Value<'_>>, open: Bound<Vec<u8>>| {
        Ok(match bound {
            Bound::Unbounded => open,
            Bound::Included(value) => Bound::Included(key(value)?),
            Bound::Excluded(value) => Bound::Excluded(key(value)?),
        })
    };
    Ok(KeyRange { start: bound(start, whole.start)?, end: bound(end, whole.end)? })
}

fn starts_with(prefix: &str, segment: &Segment, text: &str) -> Result<KeyRange, Problem> {
    let allowed: fn(u8) -> bool = match segment.kind() {
        Kind::Slug { .. } => is_slug_byte,
        Kind::Token { .. } | Kind::Enum(_) => is_token_byte,
        Kind::Rest { .. } => |byte| is_token_byte(byte) || byte == b'.',
        kind => {
            let message = format!("values of {segment} do not start with a text");
            let help = format!("give bounds of the type {}", kind.word());
            return Err(Problem::new(Code::ValueType, prefix.len(), message, help).of_segment(segment));
        }
    };
    if !text.bytes().all(allowed) {
        let message = format!("no value of {segment} starts with {}", excerpt(text));
        let help = format!("it takes {}", segment.kind().expects());
        return Err(Problem::new(Code::ValueForm, prefix.len(), message, help).of_segment(segment));
    }
    Ok(KeyRange::prefix(format!("{prefix}{text}")))
}
