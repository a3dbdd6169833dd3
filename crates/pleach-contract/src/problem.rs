use std::fmt;

use serde::Serialize;

/// The most problems that are listed for one document; past it, a last one says that there are more.
pub const PROBLEMS_MAX: usize = 100;

/// The most warnings that are listed for one document; past it, a last one says that there are more.
pub const WARNINGS_MAX: usize = 100;

macro_rules! codes {
    ($($name:ident $severity:ident $text:literal $meaning:literal,)*) => {
        /// What kind of problem it is. Codes are API: they keep their names and meanings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All codes, in the order of the reference.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it is printed.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }

            /// How serious it is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    TextSize Error "text.size" "The document is larger than `DOCUMENT_BYTES_MAX`.",
    TextEncoding Error "text.encoding" "The document is not UTF-8.",
    TextSyntax Error "text.syntax" "The text is not JSON, or not YAML.",
    TextDepth Error "text.depth" "Something is nested deeper than `DOCUMENT_DEPTH_MAX`.",
    TextNodes Error "text.nodes" "The document has more than `DOCUMENT_NODES_MAX` values.",
    TextPaths Error "text.paths" "The paths of all values have more than `DOCUMENT_PATHS_BYTES_MAX` bytes together.",
    TextDuplicate Error "text.duplicate" "An object has two fields of one name.",
    TextNumber Error "text.number" "A number is out of range, negative zero, or not finite.",
    TextAlias Error "text.alias" "YAML anchors, aliases, tags and further documents are not taken.",
    FormatUnknown Error "format.unknown" "The field `format` is not one that this version reads.",
    FieldMissing Error "field.missing" "A field that must be there is missing.",
    FieldUnknown Error "field.unknown" "A field is there that the format does not know.",
    FieldType Error "field.type" "A field holds another type of value than it takes.",
    FieldEmpty Error "field.empty" "A text that must say something is empty.",
    FieldChoice Error "field.choice" "A word is not one of those that can be chosen from.",
    FieldRange Error "field.range" "A number or a length is outside its limits.",
    IdForm Error "id.form" "The id is not of the form `acme.notes@v1`.",
    NameForm Error "name.form" "A name has characters it must not have, or is too long.",
    NameClash Error "name.clash" "Two names mean the same thing to the store, or one name means two things.",
    SchemaUnknown Error "schema.unknown" "A schema is named that `schemas` does not have.",
    SchemaUnused Warning "schema.unused" "A schema that nothing names.",
    SchemaInvalid Error "schema.invalid" "A schema is not valid JSON Schema.",
    SchemaDraft Error "schema.draft" "A schema is of another draft than 2019-09 or 2020-12.",
    SchemaReference Error "schema.reference" "A reference leaves its schema, is dynamic, or leads nowhere.",
    SchemaLoop Error "schema.loop" "A reference leads back to itself without descending into the value.",
    SchemaBudget Error "schema.budget" "A schema is too large, or could take too long to evaluate.",
    SchemaPattern Error "schema.pattern" "A pattern that cannot be matched in linear time, or is too large.",
    PatternSyntax Error "pattern.syntax" "A pattern is not a regular expression.",
    SchemaKeyword Warning "schema.keyword" "A keyword is unknown and looks like a known one; unknown keywords check nothing.",
    SchemaFormat Warning "schema.format" "A format is unknown, so values are not checked by it.",
    SchemaImpossible Warning "schema.impossible" "Conditions contradict each other, so no value can meet them all.",
    VersionCurrent Error "version.current" "The current version is listed among the accepted older ones.",
    KeyGrammar Error "key.grammar" "The key of a keyspace, index, relationship or counter is not a key grammar.",
    KeyAccess Error "key.access" "An access path that the order of the key's segments cannot serve.",
    KeyOverlap Error "key.overlap" "Two members of a resource could hold the same key.",
    KeySegment Error "key.segment" "A segment is named that the key does not have.",
    TtlTier Error "ttl.tier" "`ttlMs` is outside what the tier stands for.",
    TtlBucket Error "ttl.bucket" "A keyspace shall live longer than its resource lets anything live.",
    RoleSource Error "role.source" "A derived keyspace without what it is derived from, or a source with it.",
    RoleLoop Error "role.loop" "Keyspaces are derived from each other in a circle.",
    MemberUnknown Error "member.unknown" "A keyspace or other member is named that the resource does not have.",
    MemberRepeated Error "member.repeated" "A list that is a set names something twice.",
    KindResources Error "kind.resources" "A contract of kind `device` has KV resources, which only services, apps and agents have.",
    PointerForm Error "pointer.form" "A text is not a JSON Pointer.",
    ProblemsMore Error "problems.more" "There are more problems than `PROBLEMS_MAX`.",
    WarningsMore Warning "warnings.more" "There are more warnings than `WARNINGS_MAX`.",
}

impl Code {
    /// Whether contracts with this problem were accepted by earlier versions, so that stores may hold some.
    pub(crate) fn was_accepted_once(self) -> bool {
        matches!(self, Self::MemberRepeated | Self::KindResources)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How serious a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The contract can be used, and probably says something else than was meant.
    Warning,
    /// The contract cannot be used.
    Error,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// Something wrong with a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What kind of problem it is.
    pub code: Code,
    /// How serious it is.
    pub severity: Severity,
    /// Where it is, as a JSON Pointer; empty for the document as a whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
    /// Where it is in the text, if there is a text.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

impl Problem {
    /// A problem at a path.
    #[must_use]
    pub fn new(
        code: Code,
        path: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let (path, message, fix) = (path.into(), message.into(), fix.into());
        Self { code, severity: code.severity(), path, message, fix, position: None }
    }

    /// The same at a place in a text.
    #[must_use]
    pub fn at(self, position: Position) -> Self {
        Self { position: Some(position), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the document" } else { &self.path };
        if let Some(Position { line, column }) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        write!(f, "{place}: {} [{}]", self.message, self.code)
    }
}

/// All that is wrong with a contract, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(list))]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// Adds a problem, or forgets it if there are too many. Warnings are counted for themselves: they never hide an error.
    pub(crate) fn push(&mut self, problem: Problem) {
        let listed = self.list.iter().filter(|other| other.severity == problem.severity).count();
        let (max, more, what) = match problem.severity {
            Severity::Error => (PROBLEMS_MAX, Code::ProblemsMore, "problems"),
            Severity::Warning => (WARNINGS_MAX, Code::WarningsMore, "warnings"),
        };
        if listed < max {
            self.list.push(problem);
        } else if listed == max {
            let message = format!("there are more than {max} {what}");
            self.list.push(Problem::new(more, "", message, "correct these first, and check again"));
        }
    }

    /// Whether anything keeps the contract from being used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// The problems.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// The same without problems that earlier versions did not look for.
    pub(crate) fn without_later_rules(mut self) -> Self {
        self.list.retain(|problem| !problem.code.was_accepted_once());
        self
    }

    /// Gives every problem its place in the text, and puts them into the order of the text.
    pub(crate) fn located(mut self, place_of: impl Fn(&str) -> Option<Position>) -> Self {
        for problem in &mut self.list {
            problem.position = problem.position.or_else(|| place_of(&problem.path));
        }
        self.list.sort_by_key(|problem| {
            (matches!(problem.code, Code::ProblemsMore | Code::WarningsMore), problem.position)
        });
        self
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        let mut all = Self::default();
        problems.into_iter().for_each(|problem| all.push(problem));
        all
    }
}

fn summary(list: &[Problem]) -> String {
    let Some(first) = list.first() else { return "no problems".into() };
    let more = list.len() - 1;
    if more == 0 { first.to_string() } else { format!("{first}, and {more} more") }
}
