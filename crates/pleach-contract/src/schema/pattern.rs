use regex_syntax::ast::ErrorKind;
use regex_syntax::{Error, Parser};
use serde_json::Value;

use crate::problem::{Code, Problem};
use crate::text::{child, unescaped};

/// What is wrong with a pattern that was refused; `path` leads to it, or to the object that has it for a name.
pub(super) fn problem(schema: &Value, path: &str) -> Problem {
    let (path, pattern) = find(schema, path);
    match pattern.as_deref().and_then(syntax_error) {
        Some((what, character)) => {
            let message = format!("the pattern has a syntax error at character {character}: {what}");
            let fix = "correct the pattern; a character that is meant as itself is written with a backslash before it";
            Problem::new(Code::PatternSyntax, path, message, fix)
        }
        None => {
            let fix =
                "leave out look-around and back-references, and repeat less: patterns match in linear time";
            let message = "this is not a pattern that can be matched in linear time and little memory";
            Problem::new(Code::SchemaPattern, path, message, fix)
        }
    }
}

/// The pattern at a place, and the place itself.
fn find(schema: &Value, path: &str) -> (String, Option<String>) {
    match schema.pointer(path) {
        Some(Value::String(pattern)) => (path.to_owned(), Some(pattern.clone())),
        Some(Value::Object(named)) if path.ends_with("/patternProperties") => {
            match named.keys().find(|pattern| Parser::new().parse(pattern).is_err()) {
                Some(pattern) => (child(path, pattern), Some(pattern.clone())),
                None => (path.to_owned(), None),
            }
        }
        _ => (path.to_owned(), path.rsplit_once('/').map(|(_, name)| unescaped(name))),
    }
}

/// What is wrong with the syntax of a pattern, and at which character, from 1. None if it is in order, or if it asks for what
/// cannot be matched in linear time.
fn syntax_error(pattern: &str) -> Option<(String, usize)> {
    let Err(Error::Parse(error)) = Parser::new().parse(pattern) else { return None };
    let unsupported = matches!(
        error.kind(),
        ErrorKind::UnsupportedLookAround
            | ErrorKind::UnsupportedBackreference
            | ErrorKind::NestLimitExceeded(_)
    );
    (!unsupported).then(|| (error.kind().to_string(), error.span().start.column))
}
