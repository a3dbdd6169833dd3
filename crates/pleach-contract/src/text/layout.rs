use std::collections::BTreeMap;

use super::{Field, Node, NodeKind, Notation, read, yaml};
use crate::problem::{Position, Problems};

/// The fields of the format in the order in which they are laid out; others keep theirs, after these.
const ORDER: [&str; 46] = [
    "format",
    "id",
    "kind",
    "displayName",
    "description",
    "docs",
    "purpose",
    "of",
    "from",
    "to",
    "key",
    "forward",
    "reverse",
    "segment",
    "bucket",
    "keep",
    "schema",
    "role",
    "stateVersion",
    "acceptedVersions",
    "required",
    "history",
    "tier",
    "ttlMs",
    "maxValueBytes",
    "retention",
    "access",
    "values",
    "when",
    "pointer",
    "equals",
    "given",
    "range",
    "limit",
    "unique",
    "maxLagMs",
    "onDelete",
    "shards",
    "members",
    "schemas",
    "state",
    "resources",
    "keyspaces",
    "indexes",
    "relationships",
    "counters",
];

/// The longest list or object that is written in one line, in characters.
const LINE_CHARS_MAX: usize = 72;

/// Writes a contract anew: fields in the order of the format, the same indentation everywhere, comments kept.
///
/// # Errors
///
/// What keeps the text from being read. A contract with other problems can be laid out.
pub fn format_text(bytes: &[u8], notation: Notation) -> Result<String, Problems> {
    let (node, problems) = read(bytes, notation);
    let Some(mut node) = node.filter(|_| !problems.has_errors()) else { return Err(problems) };
    let mut writer = Writer::default();
    if notation == Notation::Yaml {
        // Before fields move, as a comment is about what it stands beside or above.
        writer.attach(yaml::comments(&String::from_utf8_lossy(bytes)), &node);
    }
    sort(&mut node, Place::Struct);
    match notation {
        Notation::Json => {
            writer.json(&node, 0);
            writer.text.push('\n');
        }
        Notation::Yaml => writer.yaml_document(&node),
    }
    Ok(writer.text)
}

/// What kind of object it is, as far as the order of its fields goes.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// The fields are those of the format.
    Struct,
    /// The fields are names of the author, and what is inside are structs.
    Names,
    /// Not ours to order: a schema, or a value.
    Foreign,
}

fn sort(node: &mut Node, place: Place) {
    let NodeKind::Object(fields) = &mut node.kind else { return };
    if place == Place::Struct {
        // A stable sort, so that what is not known stays in its order.
        fields.sort_by_key(|field| ORDER.iter().position(|name| *name == field.name).unwrap_or(ORDER.len()));
    }
    for field in fields {
        let inner = match (place, field.name.as_str()) {
            (Place::Foreign, _) | (Place::Struct, "schemas" | "equals") => Place::Foreign,
            (Place::Names, _) => Place::Struct,
            (
                Place::Struct,
                "state" | "kv" | "acceptedVersions" | "keyspaces" | "indexes" | "relationships",
            ) => Place::Names,
            (Place::Struct, "counters" | "atomic" | "access" | "values") => Place::Names,
            (Place::Struct, _) => Place::Struct,
        };
        sort(&mut field.value, inner);
    }
}

/// A comment, and the line it was in.
#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) line: usize,
    /// With its `#`.
    pub(super) text: String,
    /// Whether something stands before it in its line.
    pub(super) trails: bool,
}

#[derive(Default)]
struct Writer {
    text: String,
    /// Comments by the position of the field or item they are about: those above it, and the one beside it.
    comments: BTreeMap<Position, (Vec<String>, String)>,
    /// Those that are about nothing that follows.
    last: Vec<String>,
}

impl Writer {
    fn json(&mut self, node: &Node, depth: usize) {
        if let Some(line) = one_line(node, depth, json_scalar, true) {
            self.text.push_str(&line);
            return;
        }
        match &node.kind {
            NodeKind::Object(fields) => {
                self.text.push('{');
                for (index, field) in fields.iter().enumerate() {
                    self.text.push_str(if index > 0 { ",\n" } else { "\n" });
                    self.indent(depth + 1);
                    self.text.push_str(&json_text(&field.name));
                    self.text.push_str(": ");
                    self.json(&field.value, depth + 1);
                }
                self.text.push('\n');
                self.indent(depth);
                self.text.push('}');
            }
            NodeKind::List(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.text.push_str(if index > 0 { ",\n" } else { "\n" });
                    self.indent(depth + 1);
                    self.json(item, depth + 1);
                }
                self.text.push('\n');
                self.indent(depth);
                self.text.push(']');
            }
            _ => self.text.push_str(&json_scalar(node)),
        }
    }

    fn yaml_document(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Object(fields) if !fields.is_empty() => self.fields(fields, 0),
            NodeKind::List(items) if !items.is_empty() => self.items(items, 0),
            _ => {
                self.text.push_str(&yaml_scalar(node, 0));
                self.text.push('\n');
            }
        }
        let last = std::mem::take(&mut self.last);
        self.lines(&last, 0);
    }

    fn fields(&mut self, fields: &[Field], depth: usize) {
        for Field { name, position, value } in fields {
            let (above, beside) = self.comments.remove(position).unwrap_or_default();
            // The large parts of a contract stand apart.
            if depth == 0 && matches!(name.as_str(), "schemas" | "state" | "resources") {
                self.text.push('\n');
            }
            self.lines(&above, depth);
            self.indent(depth);
            self.text.push_str(&plain_or_quoted(name));
            self.text.push(':');
            self.value(value, depth, &beside);
        }
    }

    fn items(&mut self, items: &[Node], depth: usize) {
        for item in items {
            let (above, beside) = self.comments.remove(&item.position).unwrap_or_default();
            self.lines(&above, depth);
            self.indent(depth);
            self.text.push('-');
            self.value(item, depth, &beside);
        }
    }

    /// Comments in lines of their own.
    fn lines(&mut self, comments: &[String], depth: usize) {
        for comment in comments {
            self.indent(depth);
            self.text.push_str(comment);
            self.text.push('\n');
        }
    }

    /// Writes what stands after `name:` or `-`, with the end of its line.
    fn value(&mut self, value: &Node, depth: usize, beside: &str) {
        let beside = if beside.is_empty() { String::new() } else { format!(" {beside}") };
        let line = one_line(value, depth, |node| yaml_scalar(node, depth), false);
        if let Some(line) = line.filter(|_| !self.is_commented(value)) {
            self.text.push_str(&format!(" {line}{beside}\n"));
            return;
        }
        match &value.kind {
            NodeKind::Object(fields) => {
                self.text.push_str(&format!("{beside}\n"));
                self.fields(fields, depth + 1);
            }
            NodeKind::List(items) => {
                self.text.push_str(&format!("{beside}\n"));
                self.items(items, depth + 1);
            }
            // A text of several lines begins with `|`, after which a comment may stand.
            _ => {
                let scalar = yaml_scalar(value, depth);
                let (first, rest) = scalar.split_once('\n').unwrap_or((&scalar, ""));
                self.text.push_str(&format!(" {first}{beside}\n"));
                if !rest.is_empty() {
                    self.text.push_str(rest);
                    self.text.push('\n');
                }
            }
        }
    }

    /// Gives each comment to the field or item that it stands beside, or else to the next one.
    fn attach(&mut self, comments: Vec<Comment>, node: &Node) {
        let mut positions = Vec::new();
        collect(node, &mut positions);
        for Comment { line, text, trails } in comments {
            let next = positions.partition_point(|position| position.line < line);
            match positions.get(next) {
                None => self.last.push(text),
                Some(position) => {
                    let (above, beside) = self.comments.entry(*position).or_default();
                    if trails && position.line == line && beside.is_empty() {
                        *beside = text;
                    } else {
                        above.push(text);
                    }
                }
            }
        }
    }

    /// Whether a comment is about something inside a value.
    fn is_commented(&self, node: &Node) -> bool {
        let mut positions = Vec::new();
        if !self.comments.is_empty() {
            collect(node, &mut positions);
        }
        positions.iter().any(|position| self.comments.contains_key(position))
    }

    fn indent(&mut self, depth: usize) {
        self.text.extend(std::iter::repeat_n("  ", depth));
    }
}

/// Where the fields and items inside a value begin, in the order of the text.
fn collect(node: &Node, positions: &mut Vec<Position>) {
    match &node.kind {
        NodeKind::List(items) => {
            for item in items {
                positions.push(item.position);
                collect(item, positions);
            }
        }
        NodeKind::Object(fields) => {
            for field in fields {
                positions.push(field.position);
                collect(&field.value, positions);
            }
        }
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) => {}
    }
}

/// A short list or object of plain values, or an empty one, in one line.
fn one_line(node: &Node, depth: usize, scalar: impl Fn(&Node) -> String, spaced: bool) -> Option<String> {
    const FIELDS_MAX: usize = 2;
    let is_scalar = |node: &Node| !matches!(node.kind, NodeKind::List(_) | NodeKind::Object(_));
    // Names and texts that are not plain in a block are not in a line either.
    let line = match &node.kind {
        NodeKind::List(items) if items.iter().all(is_scalar) => {
            format!("[{}]", items.iter().map(&scalar).collect::<Vec<_>>().join(", "))
        }
        NodeKind::Object(fields) if fields.is_empty() => "{}".into(),
        NodeKind::Object(fields) if depth > 0 && fields.len() <= FIELDS_MAX => {
            if !fields.iter().all(|field| is_scalar(&field.value)) {
                return None;
            }
            let name = |name: &str| if spaced { json_text(name) } else { plain_or_quoted(name) };
            let inside: Vec<String> = fields
                .iter()
                .map(|field| format!("{}: {}", name(&field.name), scalar(&field.value)))
                .collect();
            if spaced { format!("{{ {} }}", inside.join(", ")) } else { format!("{{{}}}", inside.join(", ")) }
        }
        NodeKind::List(_) | NodeKind::Object(_) => return None,
        _ => scalar(node),
    };
    let fits = is_scalar(node) || line.chars().count() + 2 * depth <= LINE_CHARS_MAX || line.len() == 2;
    (fits && !line.contains('\n')).then_some(line)
}

fn json_scalar(node: &Node) -> String {
    node.value().to_string()
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn yaml_scalar(node: &Node, depth: usize) -> String {
    match &node.kind {
        NodeKind::Text(text) => block(text, depth).unwrap_or_else(|| plain_or_quoted(text)),
        _ => json_scalar(node),
    }
}

/// A text of several lines as a block, if it is one that a block can hold unchanged.
fn block(text: &str, depth: usize) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let holds = body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.lines().all(|line| !line.ends_with([' ', '\t', '\r']))
        && body.chars().all(|letter| letter == '\n' || is_printable(letter));
    if !holds {
        return None;
    }
    let mark = if text.ends_with('\n') { "|" } else { "|-" };
    let pad = "  ".repeat(depth + 1);
    let lines: Vec<String> = body
        .split('\n')
        .map(|line| if line.is_empty() { String::new() } else { format!("{pad}{line}") })
        .collect();
    Some(format!("{mark}\n{}", lines.join("\n")))
}

/// A text without quotes where every reader of YAML takes it for a text, else in double quotes.
fn plain_or_quoted(text: &str) -> String {
    // What older readers take for true, false or a time.
    const WORDS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "true", "false"];
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && !text.ends_with(' ')
        && text.chars().all(|letter| letter.is_alphanumeric() || " _./@-;()".contains(letter))
        && !WORDS.contains(&text.to_lowercase().as_str())
        && text.to_lowercase() != "null";
    if plain {
        return text.to_owned();
    }
    json_text(text).chars().fold(String::new(), |mut quoted, letter| {
        match u32::from(letter) {
            _ if is_printable(letter) => quoted.push(letter),
            code @ 0..=0xffff => quoted.push_str(&format!("\\u{code:04x}")),
            code => quoted.push_str(&format!("\\U{code:08x}")),
        }
        quoted
    })
}

fn is_printable(letter: char) -> bool {
    !letter.is_control() && !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}'..='\u{ffff}')
}
