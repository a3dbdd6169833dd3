use std::collections::{BTreeMap, BTreeSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};
use serde_json::Number;

use super::layout::Comment;
use super::{Field, INDEX_BYTES, Limits, Node, NodeKind, child, json, number, report_duplicates};
use crate::problem::{Code, Position, Problem, Problems};

/// Reads a YAML text. Where it is not YAML, reading ends; other problems are collected.
pub(super) fn read(text: &str, problems: &mut Problems) -> Result<Node, Box<Problem>> {
    let mut builder = Builder { open: Vec::new(), root: None, limits: Limits::default(), problems };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let message = format!("this is not YAML: {}", error.info());
            let fix = "correct the indentation and quotes; or write the contract as JSON";
            builder.here(Problem::new(Code::TextSyntax, "", message, fix), position_of(*error.marker()))
        })?;
        let position = position_of(span.start);
        builder.take(event, position).map_err(|problem| builder.here(*problem, position))?;
    }
    builder.root.ok_or_else(|| {
        let fix = "begin with `pleach contract new`";
        Box::new(Problem::new(Code::TextSyntax, "", "the document is empty", fix))
    })
}

fn position_of(marker: Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

/// A list or an object that has not ended yet.
enum Open {
    List(Position, Vec<Node>),
    /// With the name of the field whose value comes next.
    Object(Position, Vec<Field>, Option<(String, Position)>),
}

struct Builder<'a> {
    open: Vec<Open>,
    root: Option<Node>,
    limits: Limits,
    problems: &'a mut Problems,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, position: Position) -> Result<(), Box<Problem>> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => Err(refused("a second document")),
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(_) => Err(refused("an alias")),
            Event::Scalar(text, style, anchor, tag) => {
                check_plain(anchor, tag.is_some())?;
                self.scalar(text.into_owned(), style, position)
            }
            Event::SequenceStart(anchor, tag) => {
                check_plain(anchor, tag.is_some())?;
                self.enter()?;
                self.check_no_name()?;
                self.open.push(Open::List(position, Vec::new()));
                Ok(())
            }
            Event::MappingStart(anchor, tag) => {
                check_plain(anchor, tag.is_some())?;
                self.enter()?;
                self.check_no_name()?;
                self.open.push(Open::Object(position, Vec::new(), None));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let node = match self.open.pop() {
                    Some(Open::List(position, items)) => Node { position, kind: NodeKind::List(items) },
                    Some(Open::Object(position, fields, _)) => {
                        report_duplicates(&fields, || path(&self.open), self.problems);
                        Node { position, kind: NodeKind::Object(fields) }
                    }
                    None => return Ok(()),
                };
                self.place(node);
                Ok(())
            }
        }
    }

    /// A list or an object cannot be the name of a field.
    fn check_no_name(&self) -> Result<(), Box<Problem>> {
        if let Some(Open::Object(_, _, None)) = self.open.last() {
            let message = "the name of a field must be a text";
            return Err(Box::new(Problem::new(Code::TextSyntax, "", message, "put it into quotes")));
        }
        Ok(())
    }

    fn scalar(&mut self, text: String, style: ScalarStyle, position: Position) -> Result<(), Box<Problem>> {
        if let Some(Open::Object(_, _, name @ None)) = self.open.last_mut() {
            *name = Some((text, position));
            return Ok(());
        }
        self.enter()?;
        let kind =
            if style == ScalarStyle::Plain { self.plain(text, position) } else { NodeKind::Text(text) };
        self.place(Node { position, kind });
        Ok(())
    }

    /// What an unquoted text stands for, by the core schema of YAML 1.2.
    fn plain(&mut self, text: String, position: Position) -> NodeKind {
        match text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => return NodeKind::Null,
            "true" | "True" | "TRUE" => return NodeKind::Bool(true),
            "false" | "False" | "FALSE" => return NodeKind::Bool(false),
            _ => {}
        }
        match plain_number(&text) {
            None => NodeKind::Text(text),
            Some(Ok(number)) => NodeKind::Number(number),
            Some(Err(message)) => {
                let fix = "write a number that a 64-bit program can hold, or put it into quotes";
                let problem = self.here(Problem::new(Code::TextNumber, "", message, fix), position);
                self.problems.push(*problem);
                NodeKind::Number(0.into())
            }
        }
    }

    /// Counts a value.
    fn enter(&mut self) -> Result<(), Box<Problem>> {
        let tokens = self.open.iter().map(|open| match open {
            Open::List(..) => 1 + INDEX_BYTES,
            Open::Object(_, _, Some((name, _))) => 1 + name.len(),
            Open::Object(_, _, None) => 0,
        });
        self.limits.enter(self.open.len(), tokens.sum())
    }

    /// The problem at what is being read.
    fn here(&self, problem: Problem, position: Position) -> Box<Problem> {
        Box::new(Problem { path: path(&self.open), ..problem.at(position) })
    }

    fn place(&mut self, value: Node) {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(_, items)) => items.push(value),
            Some(Open::Object(_, fields, name)) => {
                if let Some((name, position)) = name.take() {
                    fields.push(Field { name, position, value });
                }
            }
        }
    }
}

/// The JSON Pointer to what is being read.
fn path(open: &[Open]) -> String {
    open.iter().fold(String::new(), |path, open| match open {
        Open::List(_, items) => child(&path, items.len()),
        Open::Object(_, _, Some((name, _))) => child(&path, name),
        Open::Object(_, _, None) => path,
    })
}

fn plain_number(text: &str) -> Option<Result<Number, String>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if [".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"].contains(&unsigned) {
        return Some(Err(format!("{text} is not a finite number")));
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        let Some(digits) = text.strip_prefix(prefix) else { continue };
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        let number = u64::from_str_radix(digits, radix).map(Number::from);
        return Some(number.map_err(|_| format!("the number {text} does not fit into 64 bits")));
    }
    let json = json_form(text);
    json::is_json_number(&json).then(|| number(&json))
}

/// A YAML number in the grammar of JSON: `+1`, `.5`, `1.` and `007` are numbers there, too.
fn json_form(text: &str) -> String {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if !unsigned.starts_with(|first: char| first == '.' || first.is_ascii_digit()) {
        return text.to_owned();
    }
    let split = unsigned.find(['e', 'E']).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at(split);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return text.to_owned();
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{dot}{fraction}{exponent}")
}

fn check_plain(anchor: usize, tagged: bool) -> Result<(), Box<Problem>> {
    match (anchor, tagged) {
        (0, false) => Ok(()),
        (_, true) => Err(refused("a tag")),
        (_, false) => Err(refused("an anchor")),
    }
}

fn refused(what: &str) -> Box<Problem> {
    let message = format!("{what} has no place in a contract");
    let fix = "write the value out; schemas share parts by `$ref` and `$defs`";
    Box::new(Problem::new(Code::TextAlias, "", message, fix))
}

/// The comments of a text that is YAML, in order.
pub(super) fn comments(text: &str) -> Vec<Comment> {
    // Where the last thing of each line ends, and which lines are inside a text of several lines.
    let mut ends: BTreeMap<usize, usize> = BTreeMap::new();
    let mut inside: BTreeSet<usize> = BTreeSet::new();
    for (event, span) in Parser::new_from_str(text).map_while(Result::ok) {
        let end = ends.entry(span.end.line()).or_default();
        *end = (*end).max(span.end.col());
        if let Event::Scalar(_, style, ..) = event {
            let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
            // A block ends where the next line begins.
            let last = if block { span.end.line() } else { span.end.line() + 1 };
            inside.extend(span.start.line() + 1..last);
        }
    }
    let mut comments = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        if inside.contains(&line) && !ends.contains_key(&line) {
            continue;
        }
        let after: String = content.chars().skip(ends.get(&line).copied().unwrap_or(0)).collect();
        let rest = after.trim_start_matches([' ', '\t', ':', ',', '-', ']', '}', '?', '[', '{']);
        if rest.starts_with('#') {
            let trails = !content.trim_start().starts_with('#');
            comments.push(Comment { line, text: rest.trim_end().to_owned(), trails });
        }
    }
    comments
}
