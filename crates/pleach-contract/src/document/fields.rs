use std::collections::BTreeMap;

use crate::problem::{Code, Problem, Problems};
use crate::text::{Node, NodeKind, child};

/// An object that is being read. Every look at a field ticks it off; [`Fields::end`] reports those nobody knew.
pub(super) struct Fields<'a> {
    path: &'a str,
    fields: BTreeMap<&'a str, &'a Node>,
    known: Vec<&'static str>,
    problems: &'a mut Problems,
}

impl<'a> Fields<'a> {
    /// Begins to read an object.
    pub(super) fn of(node: &'a Node, path: &'a str, problems: &'a mut Problems) -> Option<Self> {
        let NodeKind::Object(list) = &node.kind else {
            report_type(node, path, "an object", problems);
            return None;
        };
        let mut fields = BTreeMap::new();
        for field in list {
            fields.entry(field.name.as_str()).or_insert(&field.value);
        }
        Some(Self { path, fields, known: Vec::new(), problems })
    }

    pub(super) fn path(&self, name: &str) -> String {
        child(self.path, name)
    }

    pub(super) fn problems(&mut self) -> &mut Problems {
        self.problems
    }

    /// A field that may be there.
    pub(super) fn optional(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        self.fields.get(name).copied()
    }

    /// A field that must be there.
    pub(super) fn required(&mut self, name: &'static str, fix: &str) -> Option<&'a Node> {
        let found = self.optional(name);
        if found.is_none() {
            let message = format!("the field `{name}` is missing");
            self.problems.push(Problem::new(Code::FieldMissing, self.path, message, fix));
        }
        found
    }

    /// A text that must be there and say something.
    pub(super) fn text(&mut self, name: &'static str, fix: &str) -> Option<String> {
        let node = self.required(name, fix)?;
        let path = self.path(name);
        text(node, &path, self.problems).filter(|text| {
            let empty = text.trim().is_empty();
            if empty {
                let message = format!("`{name}` is empty");
                self.problems.push(Problem::new(Code::FieldEmpty, path.clone(), message, fix));
            }
            !empty
        })
    }

    /// A text that may be there.
    pub(super) fn optional_text(&mut self, name: &'static str) -> Option<String> {
        let node = self.optional(name)?;
        text(node, &self.path(name), self.problems)
    }

    /// A whole number within limits, or its default.
    pub(super) fn number(&mut self, name: &'static str, (min, max): (u64, u64)) -> Option<u64> {
        let node = self.optional(name)?;
        let path = self.path(name);
        let NodeKind::Number(number) = &node.kind else {
            report_type(node, &path, "a whole number", self.problems);
            return None;
        };
        let found = number.as_u64().filter(|number| (min..=max).contains(number));
        if found.is_none() {
            let message = format!("`{name}` is {number}, and must be a whole number from {min} to {max}");
            self.problems.push(Problem::new(
                Code::FieldRange,
                path,
                message,
                format!("choose one from {min} to {max}"),
            ));
        }
        found
    }

    /// True or false, or its default.
    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        let Some(node) = self.optional(name) else { return default };
        if let NodeKind::Bool(value) = node.kind {
            return value;
        }
        report_type(node, &self.path(name), "true or false", self.problems);
        default
    }

    /// One word of several.
    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let node = self.optional(name)?;
        let path = self.path(name);
        let word = text(node, &path, self.problems)?;
        let found = choices.iter().find(|(choice, _)| *choice == word);
        if found.is_none() {
            let all: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
            let message = format!("`{name}` is `{word}`, and must be one of: {}", all.join(", "));
            let fix = match nearest(&word, all.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("choose one of: {}", all.join(", ")),
            };
            self.problems.push(Problem::new(Code::FieldChoice, path, message, fix));
        }
        found.map(|(_, value)| *value)
    }

    /// A word of several that must be there.
    pub(super) fn required_choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let all: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        self.required(name, &format!("add it with one of: {}", all.join(", ")))?;
        self.choice(name, choices)
    }

    /// A list of texts; none is an empty one.
    pub(super) fn texts(&mut self, name: &'static str) -> Vec<String> {
        let Some(node) = self.optional(name) else { return Vec::new() };
        let path = self.path(name);
        let NodeKind::List(items) = &node.kind else {
            report_type(node, &path, "a list", self.problems);
            return Vec::new();
        };
        let numbered = items.iter().enumerate();
        numbered.filter_map(|(index, item)| text(item, &child(&path, index), self.problems)).collect()
    }

    /// An object of things by name; none is an empty one.
    pub(super) fn map<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&Node, &str, &mut Problems) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let Some(node) = self.optional(name) else { return BTreeMap::new() };
        let path = self.path(name);
        let NodeKind::Object(fields) = &node.kind else {
            report_type(node, &path, "an object of things by name", self.problems);
            return BTreeMap::new();
        };
        let mut things = BTreeMap::new();
        for field in fields {
            let thing = read(&field.value, &child(&path, &field.name), self.problems);
            if let Some(thing) = thing {
                things.entry(field.name.clone()).or_insert(thing);
            }
        }
        things
    }

    /// Reports the fields that nobody asked for.
    pub(super) fn end(self) {
        for name in self.fields.keys().filter(|name| !self.known.contains(name)) {
            let fix = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("remove it; the fields here are: {}", self.known.join(", ")),
            };
            let message = format!("there is no field `{name}` here");
            self.problems.push(Problem::new(Code::FieldUnknown, child(self.path, name), message, fix));
        }
    }
}

/// A text, or a problem.
pub(super) fn text(node: &Node, path: &str, problems: &mut Problems) -> Option<String> {
    if let NodeKind::Text(text) = &node.kind {
        return Some(text.clone());
    }
    report_type(node, path, "a text", problems);
    None
}

pub(super) fn report_type(node: &Node, path: &str, wanted: &str, problems: &mut Problems) {
    let message = format!("this is {}, and must be {wanted}", node.type_name());
    let fix = match (&node.kind, wanted) {
        (NodeKind::Null, _) => "leave the field out where it has no value".into(),
        (NodeKind::Bool(_) | NodeKind::Number(_), "a text") => "put it into quotes".into(),
        _ => format!("write {wanted} here"),
    };
    problems.push(Problem::new(Code::FieldType, path, message, fix));
}

/// The known word that is most like this one, if one is.
pub(crate) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    const WORD_CHARS_MAX: usize = 64;
    if word.len() > WORD_CHARS_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let scored = known.map(|candidate| (strsim::levenshtein(&lower, &candidate.to_lowercase()), candidate));
    scored
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}
