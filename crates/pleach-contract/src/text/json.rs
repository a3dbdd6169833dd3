use std::fmt;

use super::{Field, Limits, Node, NodeKind, child, number, report_duplicates};
use crate::problem::{Code, Position, Problem, Problems};

/// Reads a JSON text. Where it is not JSON, reading ends; other problems are collected.
pub(super) fn read(text: &str, problems: &mut Problems) -> Result<Node, Box<Problem>> {
    let position = Position { line: 1, column: 1 };
    let mut reader =
        Reader { rest: text, position, path: String::new(), limits: Limits::default(), problems };
    let node = reader.value(0)?;
    reader.skip_space();
    if reader.rest.is_empty() { Ok(node) } else { Err(reader.unexpected("the end of the document")) }
}

struct Reader<'a> {
    rest: &'a str,
    position: Position,
    /// The JSON Pointer to what is being read.
    path: String,
    limits: Limits,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    // The depth is bounded by `Limits::enter`, so the recursion is, too.
    fn value(&mut self, depth: usize) -> Result<Node, Box<Problem>> {
        self.skip_space();
        let position = self.position;
        self.limits.enter(depth, self.path.len()).map_err(|problem| self.here(*problem))?;
        let kind = match self.rest.chars().next() {
            Some('{') => NodeKind::Object(self.object(depth)?),
            Some('[') => NodeKind::List(self.list(depth)?),
            Some('"') => NodeKind::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { position, kind })
    }

    /// The value of a field or an item.
    fn inner(&mut self, token: impl fmt::Display, depth: usize) -> Result<Node, Box<Problem>> {
        let outer = self.path.len();
        self.path += &child("", token);
        let value = self.value(depth + 1)?;
        self.path.truncate(outer);
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Field>, Box<Problem>> {
        self.advance(1);
        let mut fields = Vec::new();
        if self.accept('}') {
            return Ok(fields);
        }
        loop {
            self.skip_space();
            let position = self.position;
            if !self.rest.starts_with('"') {
                return Err(self.unexpected("a field name in double quotes"));
            }
            let name = self.string()?;
            self.expect(':')?;
            let value = self.inner(&name, depth)?;
            fields.push(Field { name, position, value });
            if self.accept('}') {
                report_duplicates(&fields, || self.path.clone(), self.problems);
                return Ok(fields);
            }
            self.expect_one_of(',', "`,` or `}`")?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Box<Problem>> {
        self.advance(1);
        let mut items = Vec::new();
        if self.accept(']') {
            return Ok(items);
        }
        loop {
            items.push(self.inner(items.len(), depth)?);
            if self.accept(']') {
                return Ok(items);
            }
            self.expect_one_of(',', "`,` or `]`")?;
        }
    }

    fn string(&mut self) -> Result<String, Box<Problem>> {
        let mut end = None;
        let mut escaped = false;
        for (index, byte) in self.rest.bytes().enumerate().skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    end = Some(index + 1);
                    break;
                }
                _ => {}
            }
        }
        let Some(end) = end else { return Err(self.unexpected("the closing quote of this text")) };
        // Escapes, surrogates and control characters are serde_json's to judge.
        let parsed = serde_json::from_str(&self.rest[..end]);
        let Ok(parsed) = parsed else {
            return Err(self.unexpected("a text without bad escapes or control characters"));
        };
        self.advance(end);
        Ok(parsed)
    }

    fn number(&mut self) -> Result<NodeKind, Box<Problem>> {
        let end = self
            .rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter))
            .unwrap_or(self.rest.len());
        let lexeme = &self.rest[..end];
        if !is_json_number(lexeme) {
            return Err(self.unexpected("a number"));
        }
        let number = number(lexeme).unwrap_or_else(|message| {
            let fix = "write a number that a 64-bit program can hold";
            self.problems.push(*self.here(Problem::new(Code::TextNumber, "", message, fix)));
            0.into()
        });
        self.advance(end);
        Ok(NodeKind::Number(number))
    }

    fn word(&mut self) -> Result<NodeKind, Box<Problem>> {
        let words =
            [("true", NodeKind::Bool(true)), ("false", NodeKind::Bool(false)), ("null", NodeKind::Null)];
        for (word, kind) in words {
            if self.rest.starts_with(word) {
                self.advance(word.len());
                return Ok(kind);
            }
        }
        Err(self.unexpected("a value"))
    }

    fn accept(&mut self, letter: char) -> bool {
        self.skip_space();
        let there = self.rest.starts_with(letter);
        if there {
            self.advance(letter.len_utf8());
        }
        there
    }

    fn expect(&mut self, letter: char) -> Result<(), Box<Problem>> {
        self.expect_one_of(letter, &format!("`{letter}`"))
    }

    fn expect_one_of(&mut self, letter: char, wanted: &str) -> Result<(), Box<Problem>> {
        if self.accept(letter) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    fn skip_space(&mut self) {
        let end = self.rest.find(|letter| !" \t\r\n".contains(letter)).unwrap_or(self.rest.len());
        self.advance(end);
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        for letter in passed.chars() {
            if letter == '\n' {
                self.position = Position { line: self.position.line + 1, column: 1 };
            } else {
                self.position.column += 1;
            }
        }
        self.rest = rest;
    }

    fn unexpected(&self, wanted: &str) -> Box<Problem> {
        let found = match self.rest.chars().next() {
            None => "the end of the document".into(),
            Some(letter) => format!("`{}`", letter.escape_default()),
        };
        let message = format!("expected {wanted}, found {found}");
        let fix = "correct the JSON; comments and trailing commas are not JSON, YAML has comments";
        self.here(Problem::new(Code::TextSyntax, "", message, fix))
    }

    /// The problem at what is being read.
    fn here(&self, problem: Problem) -> Box<Problem> {
        Box::new(Problem { path: self.path.clone(), ..problem.at(self.position) })
    }
}

/// Whether it is a number in the grammar of JSON.
pub(super) fn is_json_number(lexeme: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = lexeme.strip_prefix('-').unwrap_or(lexeme);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
