use super::names::{Names, snake};
use super::source::Source;
use crate::key::{Grammar, Kind, Segment};

/// A segment that has a value, as a field.
#[derive(Debug)]
pub(super) struct KeyField<'g> {
    segment: &'g Segment,
    pub(super) name: String,
}

/// The fields of the keys of a grammar.
pub(super) fn fields<'g>(grammar: &'g Grammar) -> Vec<KeyField<'g>> {
    let mut names = Names::default();
    let named = grammar.named();
    named
        .map(|segment| KeyField { segment, name: names.take(snake(segment.name().unwrap_or_default())) })
        .collect()
}

impl KeyField<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.segment.name() == Some(name)
    }

    fn form(&self) -> Form {
        const fn plain(variant: &'static str, typed: &'static str) -> Form {
            Form { variant, field: typed, argument: typed, is_borrowed: false }
        }
        match self.segment.kind() {
            Kind::Ulid => plain("Ulid", "u128"),
            Kind::Uuid => plain("Uuid", "u128"),
            Kind::Uint { .. } => plain("Uint", "u64"),
            Kind::Int { .. } => plain("Int", "i64"),
            Kind::Time { .. } => plain("Time", "stores::key::Time"),
            Kind::Date => plain("Date", "stores::key::Date"),
            Kind::Hash { .. } | Kind::Bytes { .. } => Form {
                variant: "Bytes",
                field: "std::borrow::Cow<'k, [u8]>",
                argument: "&[u8]",
                is_borrowed: true,
            },
            Kind::Literal(_) | Kind::Slug { .. } | Kind::Token { .. } | Kind::Enum(_) | Kind::Rest { .. } => {
                Form {
                    variant: "Text",
                    field: "std::borrow::Cow<'k, str>",
                    argument: "&str",
                    is_borrowed: true,
                }
            }
        }
    }

    /// Its type as an argument of a function.
    pub(super) fn argument(&self) -> &'static str {
        self.form().argument
    }

    /// The value of the segment, of what `place` holds or refers to.
    pub(super) fn value(&self, place: &str) -> String {
        let Form { variant, is_borrowed, .. } = self.form();
        match is_borrowed {
            true => format!("stores::key::Value::{variant}(std::borrow::Cow::Borrowed({place}))"),
            false => format!("stores::key::Value::{variant}({place})"),
        }
    }
}

/// How the values of a segment are written in Rust.
#[derive(Debug)]
struct Form {
    /// The variant of `key::Value`.
    variant: &'static str,
    field: &'static str,
    argument: &'static str,
    is_borrowed: bool,
}

/// Writes the type of the keys of a keyspace.
pub(super) fn write(source: &mut Source, name: &str, keyspace: &str, grammar: &Grammar) {
    let fields = fields(grammar);
    let lifetime = if fields.iter().any(|field| field.form().is_borrowed) { "<'k>" } else { "" };
    let anonymous = if lifetime.is_empty() { "" } else { "<'_>" };
    source.line("");
    source.doc(&format!("A key of `{keyspace}`: `{grammar}`."));
    source.line("#[derive(Clone, Debug, PartialEq, Eq)]");
    source.open(&format!("pub struct {name}{lifetime} {{"));
    for field in &fields {
        source.doc(&format!("`{}`: {}.", field.segment, field.segment.kind().expects()));
        source.line(&format!("pub {}: {},", field.name, field.form().field));
    }
    source.close("}");
    source.line("");
    source.open(&format!("impl{lifetime} {name}{lifetime} {{"));
    source.doc(
        "The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.",
    );
    // Without a borrowed field the values may live as long as they like.
    let values = if lifetime.is_empty() { "'_" } else { "'k" };
    source.open(&format!("pub fn of(values: &[stores::key::Value<{values}>]) -> Option<Self> {{"));
    let patterns: Vec<String> = fields
        .iter()
        .map(|field| format!("stores::key::Value::{}({})", field.form().variant, field.name))
        .collect();
    let taken = fields.iter().map(|field| match field.form().is_borrowed {
        true => format!("{}: {}.clone()", field.name, field.name),
        false => format!("{}: *{}", field.name, field.name),
    });
    let taken: Vec<String> = taken.collect();
    source.open("match values {");
    source.line(&format!("[{}] => Some(Self {{ {} }}),", patterns.join(", "), taken.join(", ")));
    source.line("_ => None,");
    source.close("}");
    source.close("}");
    source.close("}");
    source.line("");
    source.open(&format!("impl stores::KeyOf for {name}{anonymous} {{"));
    source.open(
        "fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {",
    );
    let value = |field: &KeyField<'_>| match field.form().is_borrowed {
        true => field.value(&format!("&self.{}", field.name)),
        false => field.value(&format!("self.{}", field.name)),
    };
    let values: Vec<String> = fields.iter().map(value).collect();
    source.line(&format!(
        "let values: [stores::key::Value<'_>; {}] = [{}];",
        values.len(),
        values.join(", ")
    ));
    source.line("stores::KeyOf::key(&values, grammar)");
    source.close("}");
    source.close("}");
}
