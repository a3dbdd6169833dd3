use std::fmt;

use pleach_engine::ErrorKind;
use serde::Serialize;

/// What is wrong, for programs. Codes are API: they do not change, and `docs/keys.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "`meaning` says it, for the documentation and for people")]
pub enum Code {
    GrammarEmpty,
    GrammarLong,
    GrammarSegments,
    GrammarToken,
    GrammarCharacter,
    GrammarBrace,
    GrammarMixed,
    GrammarName,
    GrammarNameTwice,
    GrammarType,
    GrammarLimit,
    GrammarEnum,
    GrammarEnumOrder,
    GrammarRest,
    GrammarReserved,
    GrammarKeyLong,
    KeyToken,
    KeyLiteral,
    KeySegment,
    KeyEnds,
    KeyGoesOn,
    KeyReserved,
    ValueCount,
    ValueType,
    ValueForm,
    PathForm,
    PathUnknown,
    PathTwice,
    PathOrder,
    PathRange,
    FilterWildcard,
    KeyspaceOverlap,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 32] = [
        Self::GrammarEmpty,
        Self::GrammarLong,
        Self::GrammarSegments,
        Self::GrammarToken,
        Self::GrammarCharacter,
        Self::GrammarBrace,
        Self::GrammarMixed,
        Self::GrammarName,
        Self::GrammarNameTwice,
        Self::GrammarType,
        Self::GrammarLimit,
        Self::GrammarEnum,
        Self::GrammarEnumOrder,
        Self::GrammarRest,
        Self::GrammarReserved,
        Self::GrammarKeyLong,
        Self::KeyToken,
        Self::KeyLiteral,
        Self::KeySegment,
        Self::KeyEnds,
        Self::KeyGoesOn,
        Self::KeyReserved,
        Self::ValueCount,
        Self::ValueType,
        Self::ValueForm,
        Self::PathForm,
        Self::PathUnknown,
        Self::PathTwice,
        Self::PathOrder,
        Self::PathRange,
        Self::FilterWildcard,
        Self::KeyspaceOverlap,
    ];

    /// Its name, the same in every output.
    pub const fn as_str(self) -> &'static str {
        self.describe().0
    }

    /// What it means, in a line.
    pub const fn meaning(self) -> &'static str {
        self.describe().1
    }

    const fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::GrammarEmpty => ("grammar-empty", "A grammar without a segment."),
            Self::GrammarLong => ("grammar-long", "The text of a grammar is longer than 4096 bytes."),
            Self::GrammarSegments => ("grammar-segments", "A grammar has more than 32 segments."),
            Self::GrammarToken => ("grammar-token", "Nothing stands between two dots, or at an end."),
            Self::GrammarCharacter => ("grammar-character", "A literal has a character that no key takes."),
            Self::GrammarBrace => ("grammar-brace", "A brace is not closed, not opened, or inside another."),
            Self::GrammarMixed => ("grammar-mixed", "A token is partly literal and partly in braces."),
            Self::GrammarName => ("grammar-name", "The name of a segment is missing, too long or malformed."),
            Self::GrammarNameTwice => ("grammar-name-twice", "Two segments have one name."),
            Self::GrammarType => ("grammar-type", "There is no such type."),
            Self::GrammarLimit => {
                ("grammar-limit", "The number in parentheses is not one that this type takes.")
            }
            Self::GrammarEnum => ("grammar-enum", "A value of an enum is empty, malformed, or there twice."),
            Self::GrammarEnumOrder => {
                ("grammar-enum-order", "A value of an enum goes on with `-` where another ends.")
            }
            Self::GrammarRest => {
                ("grammar-rest", "The rest is not last, stands alone, or follows a `token`.")
            }
            Self::GrammarReserved => ("grammar-reserved", "Keys would start with `_kv`, which is reserved."),
            Self::GrammarKeyLong => ("grammar-key-long", "The longest key would have more than 1024 bytes."),
            Self::KeyToken => ("key-token", "The text is no key: an empty token, or a character none takes."),
            Self::KeyLiteral => ("key-literal", "A key has something else where a literal must stand."),
            Self::KeySegment => ("key-segment", "A token of a key is no value of its segment."),
            Self::KeyEnds => ("key-ends", "A key ends before a segment that it must have."),
            Self::KeyGoesOn => ("key-goes-on", "A key goes on after its last segment."),
            Self::KeyReserved => ("key-reserved", "A key starts with `_kv`, which is reserved."),
            Self::ValueCount => ("value-count", "There are more or fewer values than segments."),
            Self::ValueType => ("value-type", "A value is of another type than its segment."),
            Self::ValueForm => ("value-form", "A value is too long, too large or malformed for its segment."),
            Self::PathForm => ("path-form", "The text of an access path is malformed."),
            Self::PathUnknown => ("path-unknown", "An access path names a segment that is not there."),
            Self::PathTwice => ("path-twice", "An access path names a segment twice."),
            Self::PathOrder => ("path-order", "The order of the segments cannot serve an access path."),
            Self::PathRange => ("path-range", "A range over a segment whose keys are not in its order."),
            Self::FilterWildcard => {
                ("filter-wildcard", "A wildcard stands where the grammar does not allow one.")
            }
            Self::KeyspaceOverlap => ("keyspace-overlap", "Two keyspaces could hold the same key."),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Something that is wrong with a grammar, a key, a value or an access path: what, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is wrong, for programs.
    pub code: Code,
    /// Where, as a byte of the text it is about: the grammar, the key, or the key that was to be built.
    pub at: usize,
    /// The segment of the grammar at fault, as it is written there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    /// What is wrong, for people.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Problem {
    pub(super) fn new(code: Code, at: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, at, segment: None, message: message.into(), help: help.into() }
    }

    pub(super) fn of_segment(self, segment: impl fmt::Display) -> Self {
        Self { segment: Some(segment.to_string()), ..self }
    }

    /// What the caller does next.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {} ({})", self.at, self.message, self.code)
    }
}

impl std::error::Error for Problem {}

/// Everything that is wrong with the text of a grammar, in the order of the text; at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarError {
    /// The problems.
    pub problems: Vec<Problem>,
}

impl GrammarError {
    /// What the caller does next.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for GrammarError {}

/// Enough of `text` to recognise it in a message.
pub(super) fn excerpt(text: &str) -> String {
    const EXCERPT_CHARS_MAX: usize = 48;
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
