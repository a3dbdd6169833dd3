//! From text to a tree that knows where everything stands.

mod json;
mod layout;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::problem::{Code, Position, Problem, Problems};

pub use layout::format_text;

/// The most bytes of a document.
pub const DOCUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How deep values may be nested in a document.
pub const DOCUMENT_DEPTH_MAX: usize = 64;

/// The most values in a document, those inside others included.
pub const DOCUMENT_NODES_MAX: usize = 200_000;

/// The most bytes that the paths of all values of a document may have together: much is kept by path, and a long name that
/// holds many values is in the paths of all of them.
pub const DOCUMENT_PATHS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The most characters of a number.
pub const NUMBER_CHARS_MAX: usize = 64;

/// How a contract is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// JSON as RFC 8259 has it.
    Json,
    /// YAML 1.2 with the core schema, without anchors, aliases and tags.
    Yaml,
}

/// A value and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) position: Position,
    pub(crate) kind: NodeKind,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Field>),
}

/// A field of an object.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) position: Position,
    pub(crate) value: Node,
}

/// Reads a text. What comes back without a tree cannot be read at all; a tree may come with problems, too.
pub(crate) fn read(bytes: &[u8], notation: Notation) -> (Option<Node>, Problems) {
    let mut problems = Problems::default();
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let message = format!("the document has {} bytes, the most is {DOCUMENT_BYTES_MAX}", bytes.len());
        let fix = "cut it into contracts of their own, or move examples out of its schemas";
        problems.push(Problem::new(Code::TextSize, "", message, fix));
        return (None, problems);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let message = format!("the document is not UTF-8 from byte {} on", error.valid_up_to());
            problems.push(Problem::new(Code::TextEncoding, "", message, "save it as UTF-8"));
            return (None, problems);
        }
    };
    let read = match notation {
        Notation::Json => json::read(text, &mut problems),
        Notation::Yaml => yaml::read(text, &mut problems),
    };
    match read {
        Ok(node) => (Some(node), problems),
        Err(problem) => {
            problems.push(*problem);
            (None, problems)
        }
    }
}

/// Where things are in the text of a contract.
#[derive(Debug)]
pub struct Places(Option<Node>);

impl Places {
    /// Those of a text; of one that cannot be read, none.
    #[must_use]
    pub fn of(bytes: &[u8], notation: Notation) -> Self {
        Self(read(bytes, notation).0)
    }

    /// The place of what a JSON Pointer leads to, or of the nearest thing above it.
    #[must_use]
    pub fn position(&self, pointer: &str) -> Option<Position> {
        self.0.as_ref().map(|node| node.position_of(pointer))
    }
}

impl Node {
    /// The node as a JSON value. Of two fields of one name the first counts; that is a problem by then.
    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(number) => Value::Number(number.clone()),
            NodeKind::Text(text) => Value::String(text.clone()),
            NodeKind::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            NodeKind::Object(fields) => {
                let mut map = Map::new();
                for field in fields {
                    map.entry(field.name.clone()).or_insert_with(|| field.value.value());
                }
                Value::Object(map)
            }
        }
    }

    /// A value without a text, as if it had been written at the first character. It must be within the limits.
    pub(crate) fn of(value: &Value) -> Self {
        let kind = match value {
            Value::Null => NodeKind::Null,
            Value::Bool(value) => NodeKind::Bool(*value),
            Value::Number(number) => NodeKind::Number(number.clone()),
            Value::String(text) => NodeKind::Text(text.clone()),
            Value::Array(items) => NodeKind::List(items.iter().map(Self::of).collect()),
            Value::Object(map) => NodeKind::Object(
                map.iter()
                    .map(|(name, value)| Field {
                        name: name.clone(),
                        position: Position::default(),
                        value: Self::of(value),
                    })
                    .collect(),
            ),
        };
        Self { position: Position::default(), kind }
    }

    /// What the value is called in messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.kind {
            NodeKind::Null => "null",
            NodeKind::Bool(_) => "true or false",
            NodeKind::Number(_) => "a number",
            NodeKind::Text(_) => "a text",
            NodeKind::List(_) => "a list",
            NodeKind::Object(_) => "an object",
        }
    }

    /// The position of what a JSON Pointer leads to, or of the nearest thing above it.
    pub(crate) fn position_of(&self, pointer: &str) -> Position {
        let (mut node, mut position) = (self, self.position);
        for token in pointer.split('/').skip(1) {
            let token = unescaped(token);
            let found = match &node.kind {
                NodeKind::Object(fields) => fields
                    .iter()
                    .find(|field| field.name == token)
                    .map(|field| (&field.value, field.position)),
                NodeKind::List(items) => token
                    .parse()
                    .ok()
                    .and_then(|index: usize| items.get(index))
                    .map(|item| (item, item.position)),
                NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) => None,
            };
            let Some(found) = found else { break };
            (node, position) = found;
        }
        position
    }
}

/// A pointer one step further.
pub(crate) fn child(pointer: &str, token: impl fmt::Display) -> String {
    format!("{pointer}/{}", token.to_string().replace('~', "~0").replace('/', "~1"))
}

/// A token of a pointer as the name it stands for.
pub(crate) fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// What is counted and refused, however a document comes in.
#[derive(Debug, Default)]
struct Limits {
    nodes: usize,
    path_bytes: usize,
}

impl Limits {
    /// Counts a value at this depth, with a path of so many bytes.
    fn enter(&mut self, depth: usize, path_bytes: usize) -> Result<(), Box<Problem>> {
        self.nodes += 1;
        self.path_bytes += path_bytes;
        let (code, message, fix) = if depth > DOCUMENT_DEPTH_MAX {
            let message = format!("this is nested deeper than {DOCUMENT_DEPTH_MAX} levels");
            (Code::TextDepth, message, "name the inner schema in `$defs` and refer to it")
        } else if self.nodes > DOCUMENT_NODES_MAX {
            let message = format!("the document has more than {DOCUMENT_NODES_MAX} values");
            (Code::TextNodes, message, "cut it into contracts of their own")
        } else if self.path_bytes > DOCUMENT_PATHS_BYTES_MAX {
            let message =
                format!("the paths of all values have more than {DOCUMENT_PATHS_BYTES_MAX} bytes together");
            (Code::TextPaths, message, "shorten the names of fields that hold many others")
        } else {
            return Ok(());
        };
        Err(Box::new(Problem::new(code, "", message, fix)))
    }

    // The depth is bounded by `enter`, so the recursion is, too.
    fn check(&mut self, value: &Value, depth: usize, path_bytes: usize) -> Result<(), Box<Problem>> {
        self.enter(depth, path_bytes)?;
        let mut inner = |value: &Value, token: &dyn fmt::Display, token_bytes: usize| {
            self.check(value, depth + 1, path_bytes + 1 + token_bytes).map_err(|mut problem| {
                problem.path.insert_str(0, &child("", token));
                problem
            })
        };
        match value {
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(index, item)| inner(item, &index, INDEX_BYTES))
            }
            Value::Object(map) => map.iter().try_for_each(|(name, value)| inner(value, name, name.len())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }
}

/// About as many bytes as the number of an item takes in a path.
const INDEX_BYTES: usize = 6;

/// Whether a value that was not read from a text is within the limits of one.
pub(crate) fn check_limits(value: &Value) -> Result<(), Box<Problem>> {
    Limits::default().check(value, 0, 0)
}

/// Reports every field of an object whose name was there before.
fn report_duplicates(fields: &[Field], path: impl Fn() -> String, problems: &mut Problems) {
    let mut seen: BTreeMap<&str, Position> = BTreeMap::new();
    for Field { name, position, .. } in fields {
        if let Some(first) = seen.get(name.as_str()) {
            let message =
                format!("the field `{name}` is here a second time; the first is in line {}", first.line);
            let problem =
                Problem::new(Code::TextDuplicate, child(&path(), name), message, "keep one of them");
            problems.push(problem.at(*position));
        } else {
            seen.insert(name, *position);
        }
    }
}

/// Reads the digits of a number, in the grammar of JSON.
fn number(lexeme: &str) -> Result<Number, String> {
    if lexeme.len() > NUMBER_CHARS_MAX {
        return Err(format!(
            "a number of {} characters is too long, the most is {NUMBER_CHARS_MAX}",
            lexeme.len()
        ));
    }
    let negative = lexeme.starts_with('-');
    if !lexeme.contains(['.', 'e', 'E']) {
        let number = match negative {
            true => lexeme.parse::<i64>().ok().filter(|number| *number != 0).map(Number::from),
            false => lexeme.parse::<u64>().ok().map(Number::from),
        };
        return number.ok_or_else(|| match lexeme {
            "-0" => "negative zero is no number of a contract".into(),
            _ => format!("the whole number {lexeme} does not fit into 64 bits"),
        });
    }
    let float: f64 = lexeme.parse().map_err(|_| format!("{lexeme} is not a number"))?;
    let mantissa = lexeme.split(['e', 'E']).next().unwrap_or_default();
    if !float.is_finite() || (float == 0.0 && mantissa.contains(|digit| ('1'..='9').contains(&digit))) {
        return Err(format!("the number {lexeme} is out of range"));
    }
    if float == 0.0 && negative {
        return Err("negative zero is no number of a contract".into());
    }
    Ok(whole(float).unwrap_or_else(|| Number::from_f64(float).unwrap_or_else(|| Number::from(0))))
}

/// The whole number that a float is, where both are exact, so that `1.0` and `1` are one.
pub(crate) fn whole(float: f64) -> Option<Number> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    // The format of a whole float below 2^53 has no fraction and no exponent.
    (float.fract() == 0.0 && float.abs() < EXACT_MAX)
        .then(|| format!("{float:.0}").parse::<i64>().ok())?
        .map(Number::from)
}
