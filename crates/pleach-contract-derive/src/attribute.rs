use proc_macro2::Span;
use quote::ToTokens;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseBuffer, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, LitBool, LitInt, LitStr, Meta, Path, Result, Token, Type, token};

use crate::setting::Setting;
use crate::vocabulary::{Form, Known, Vocabulary};

/// What an attribute says, by the names of the document.
#[derive(Clone, Default)]
pub(crate) struct Said(Vec<(String, Setting)>);

impl Said {
    /// Reads an attribute by what it takes.
    pub(crate) fn read(attribute: &Attribute, vocabulary: &Vocabulary) -> Result<Self> {
        let known: Vec<&Known> = vocabulary.known.iter().copied().flatten().collect();
        let place = format!("#[{}]", vocabulary.name);
        let read = |input: ParseStream<'_>| fields(input, &known, &place, attribute);
        match &attribute.meta {
            Meta::Path(_) => {
                missing(&[], &known, &place, attribute)?;
                Ok(Self::default())
            }
            Meta::List(list) => list.parse_args_with(read).map(Self),
            Meta::NameValue(_) => {
                let message = format!("{place} takes its fields in parentheses: {}", listed(&known));
                Err(Error::new_spanned(attribute, message))
            }
        }
    }

    /// Takes a field out of it.
    pub(crate) fn take(&mut self, field: &str) -> Option<Setting> {
        let place = self.0.iter().position(|(name, _)| name == field)?;
        Some(self.0.remove(place).1)
    }

    /// Takes a text out of it.
    pub(crate) fn take_text(&mut self, field: &str) -> Option<String> {
        match self.take(field)? {
            Setting::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Takes a path out of it that says where code is, which is at `usual` if it says nothing.
    pub(crate) fn take_path(&mut self, field: &str, usual: &str, attribute: &Attribute) -> Result<Path> {
        let path = self.take_text(field).unwrap_or_else(|| usual.into());
        syn::parse_str(&path).map_err(|_| {
            let usual = usual.trim_start_matches(':');
            let message = format!("\"{field}\" is a path such as \"{usual}\", and \"{path}\" is none");
            Error::new_spanned(attribute, message)
        })
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.0.iter().any(|(name, _)| name == field)
    }

    pub(crate) fn add(&mut self, field: &str, setting: Setting) {
        self.0.push((field.into(), setting));
    }

    /// What is left, as an object of the document.
    pub(crate) fn into_object(self) -> Setting {
        Setting::Object(self.0)
    }
}

/// Reads `name = value, name(…), …` until the end.
fn fields(
    input: ParseStream<'_>,
    known: &[&Known],
    place: &str,
    owner: &dyn ToTokens,
) -> Result<Vec<(String, Setting)>> {
    let mut said: Vec<(String, Setting)> = Vec::new();
    while !input.is_empty() {
        let name = Ident::parse_any(input)?;
        let Some(known) = known.iter().find(|known| name == known.name) else {
            return Err(Error::new(name.span(), unknown(&name.to_string(), known, place)));
        };
        if said.iter().any(|(field, _)| field == known.field) {
            return Err(Error::new(name.span(), format!("{place} has \"{name}\" twice: keep one")));
        }
        said.push((known.field.into(), known.form.read(&name, input, place)?));
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    missing(&said, known, place, owner)?;
    Ok(said)
}

fn missing(said: &[(String, Setting)], known: &[&Known], place: &str, owner: &dyn ToTokens) -> Result<()> {
    let is_said = |known: &Known| said.iter().any(|(field, _)| field == known.field);
    match known.iter().find(|known| known.is_required && !is_said(known)) {
        None => Ok(()),
        Some(Known { name, form, .. }) => {
            let message = format!("{place} needs \"{name}\": add `{name}{}`", form.example());
            Err(Error::new_spanned(owner, message))
        }
    }
}

impl Form {
    fn read(self, name: &Ident, input: ParseStream<'_>, place: &str) -> Result<Setting> {
        let inner = format!("\"{name}\" of {place}");
        Ok(match self {
            Self::Text => Setting::Text(self.value::<LitStr>(name, input)?.value()),
            Self::Choice(words) => Setting::Text(chosen(name, &self.value::<LitStr>(name, input)?, words)?),
            Self::Number => Setting::Number(self.value::<LitInt>(name, input)?.base10_parse()?),
            Self::Flag if !input.peek(Token![=]) => Setting::Flag(true),
            Self::Flag => Setting::Flag(self.value::<LitBool>(name, input)?.value()),
            Self::Scalar => self.value::<Scalar>(name, input)?.0,
            Self::Texts => Setting::Texts(self.value::<Texts>(name, input)?.0),
            Self::Schema => Setting::Schema(Box::new(self.value::<Type>(name, input)?)),
            Self::Schemas => self.by_name(name, input, |key, input| {
                Self::Schema.value::<Type>(key, input).map(|schema| Setting::Schema(Box::new(schema)))
            })?,
            Self::TextsByName => {
                self.by_name(name, input, |key, input| Self::Text.read(key, input, &inner))?
            }
            Self::Groups => self.by_name(name, input, |key, input| {
                let members = Self::Texts.read(key, input, &inner)?;
                Ok(Setting::Object(vec![("members".into(), members)]))
            })?,
            Self::Fields(known) => {
                let known: Vec<&Known> = known.iter().collect();
                Setting::Object(fields(&self.inside(name, input)?, &known, &inner, name)?)
            }
            Self::FieldsByName(known) => self.by_name(name, input, |key, input| {
                let place = format!("\"{key}\" of {inner}");
                let known: Vec<&Known> = known.iter().collect();
                Ok(Setting::Object(fields(&self.inside(key, input)?, &known, &place, key)?))
            })?,
        })
    }

    /// How it is written, after its name.
    fn example(self) -> &'static str {
        match self {
            Self::Text | Self::Choice(_) => " = \"…\"",
            Self::Number => " = 5",
            Self::Flag => "",
            Self::Scalar => " = \"OPEN\"",
            Self::Texts => " = [\"…\"]",
            Self::Schema => " = Type",
            Self::Schemas => "(v1 = Type)",
            Self::TextsByName => "(name = \"…\")",
            Self::Groups => "(name = [\"…\", \"…\"])",
            Self::Fields(_) => "(…)",
            Self::FieldsByName(_) => "(name(…))",
        }
    }

    fn is_not(self, name: &Ident, span: Span) -> Error {
        Error::new(span, format!("\"{name}\" is written as `{name}{}`", self.example()))
    }

    /// What stands after `=`.
    fn value<T: Parse>(self, name: &Ident, input: ParseStream<'_>) -> Result<T> {
        if !input.peek(Token![=]) {
            return Err(self.is_not(name, name.span()));
        }
        input.parse::<Token![=]>()?;
        input.parse().map_err(|error| self.is_not(name, error.span()))
    }

    /// What stands in parentheses.
    fn inside<'i>(self, name: &Ident, input: &ParseBuffer<'i>) -> Result<ParseBuffer<'i>> {
        if !input.peek(token::Paren) {
            return Err(self.is_not(name, name.span()));
        }
        let content;
        syn::parenthesized!(content in input);
        Ok(content)
    }

    /// Things by name, in parentheses. A name that Rust does not take is written as a text.
    fn by_name(
        self,
        name: &Ident,
        input: &ParseBuffer<'_>,
        mut read: impl FnMut(&Ident, ParseStream<'_>) -> Result<Setting>,
    ) -> Result<Setting> {
        let content = self.inside(name, input)?;
        let mut things: Vec<(String, Setting)> = Vec::new();
        while !content.is_empty() {
            let (key, text) = if content.peek(LitStr) {
                let text: LitStr = content.parse()?;
                (Ident::new("name", text.span()), text.value())
            } else {
                let key = Ident::parse_any(&content)?;
                let text = key.unraw().to_string();
                (key, text)
            };
            if things.iter().any(|(other, _)| *other == text) {
                return Err(Error::new(key.span(), format!("\"{name}\" has \"{text}\" twice: keep one")));
            }
            things.push((text, read(&key, &content)?));
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        Ok(Setting::Object(things))
    }
}

struct Scalar(Setting);

impl Parse for Scalar {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let ahead = input.lookahead1();
        Ok(Self(if ahead.peek(LitStr) {
            Setting::Text(input.parse::<LitStr>()?.value())
        } else if ahead.peek(LitBool) {
            Setting::Flag(input.parse::<LitBool>()?.value())
        } else if ahead.peek(LitInt) {
            Setting::Number(input.parse::<LitInt>()?.base10_parse()?)
        } else {
            return Err(ahead.error());
        }))
    }
}

struct Texts(Vec<String>);

impl Parse for Texts {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let content;
        syn::bracketed!(content in input);
        let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?;
        Ok(Self(texts.iter().map(LitStr::value).collect()))
    }
}

fn chosen(name: &Ident, word: &LitStr, words: &[&str]) -> Result<String> {
    let text = word.value();
    if words.contains(&text.as_str()) {
        return Ok(text);
    }
    let near = suggestion(&text, words.iter().copied());
    let message = format!("\"{name}\" cannot be \"{text}\": {near}it is one of {}", words.join(", "));
    Err(Error::new(word.span(), message))
}

fn unknown(name: &str, known: &[&Known], place: &str) -> String {
    let near = suggestion(name, known.iter().map(|known| known.name));
    format!("{place} has no field \"{name}\": {near}it takes {}", listed(known))
}

fn listed(known: &[&Known]) -> String {
    let names: Vec<&str> = known.iter().map(|known| known.name).collect();
    names.join(", ")
}

/// `did you mean …? `, if one of the words is like this one.
pub(crate) fn suggestion<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> String {
    let near = known.map(|candidate| (strsim::levenshtein(word, candidate), candidate));
    let nearest = near.filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4).min();
    nearest.map_or_else(String::new, |(_, candidate)| format!("did you mean \"{candidate}\"? "))
}
