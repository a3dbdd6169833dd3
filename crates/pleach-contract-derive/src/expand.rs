use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Field, Fields, Ident, Lit, Meta, Path, Result, Type};

use crate::attribute::Said;
use crate::facade::Facade;
use crate::setting::Setting;
use crate::vocabulary::{
    CONTRACT, COUNTER, INDEX, KEYSPACE, KV, RELATIONSHIP, RESOURCE, RESOURCE_FIELD, STATE, Vocabulary,
};

/// Where the code is that the derives call, unless `crate = "…"` says it.
const CONTRACT_PATH: &str = "::pleach::contract";

/// The code that `#[derive(Contract)]` stands for.
pub(crate) fn contract(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input, "contract")?;
    let mut problems = Collected::default();
    let head = problems.take(head(input));
    let declared = problems.take(declared(fields, &[STATE, KV, RESOURCE_FIELD]));
    let (Some(Head { builder, contract, facade }), Some(declared)) = (head, declared) else {
        return Err(problems.end());
    };
    let stores: Vec<&Declared<'_>> = declared.iter().filter(|one| one.kind == STATE.name).collect();
    let buckets: Vec<&Declared<'_>> = declared.iter().filter(|one| one.kind != STATE.name).collect();
    different(&stores)?;
    different(&buckets)?;
    let facade = facade.map(|facade| facade.tokens(input, &stores)).transpose()?;
    let steps = declared.into_iter().map(step);
    let steps: Vec<TokenStream> = steps.collect();
    let ident = &input.ident;
    let read = read(ident, fields);
    Ok(quote! {
        #read
        const _: () = {
            use #contract as _contract;
            #[automatically_derived]
            impl _contract::ContractType for #ident {
                fn builder() -> _contract::ContractBuilder {
                    let builder = #builder;
                    #(let builder = #steps;)*
                    builder
                }
            }
        };
        #facade
    })
}

/// The code that `#[derive(Resource)]` stands for.
pub(crate) fn resource(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input, "resource")?;
    let mut problems = Collected::default();
    let said = problems.take(the_attribute(input, &RESOURCE).and_then(|found| {
        let mut said = Said::read(found, &RESOURCE)?;
        let contract = said.take_path("crate", CONTRACT_PATH, found)?;
        Ok((said, contract))
    }));
    let declared = problems.take(declared(fields, &[KEYSPACE, INDEX, RELATIONSHIP, COUNTER]));
    let (Some((mut said, contract)), Some(declared)) = (said, declared) else { return Err(problems.end()) };
    different(&declared.iter().collect::<Vec<_>>())?;
    let (Some(purpose), Some(Setting::Schema(schema))) = (said.take_text("purpose"), said.take("schema"))
    else {
        return Err(Error::new_spanned(&input.ident, "#[resource] needs \"purpose\" and \"schema\""));
    };
    for (kind, plural) in [
        (KEYSPACE.name, "keyspaces"),
        (INDEX.name, "indexes"),
        (RELATIONSHIP.name, "relationships"),
        (COUNTER.name, "counters"),
    ] {
        let members = declared.iter().filter(|one| one.kind == kind);
        let members = members.map(|one| Ok((one.name.clone(), one.member(&schema)?)));
        let members = members.collect::<Result<Vec<_>>>()?;
        if !members.is_empty() {
            said.add(plural, Setting::Object(members));
        }
    }
    let kv = kv(&quote!(alias), &purpose, &schema, &said.into_object());
    let ident = &input.ident;
    let read = read(ident, fields);
    Ok(quote! {
        #read
        const _: () = {
            use #contract as _contract;
            #[automatically_derived]
            impl _contract::ResourceType for #ident {
                fn declare(
                    builder: _contract::ContractBuilder,
                    alias: &str,
                ) -> _contract::ContractBuilder {
                    #kv
                }
            }
        };
    })
}

/// A field, and what its attribute says of it.
pub(crate) struct Declared<'a> {
    pub(crate) field: &'a Field,
    /// The name of its attribute.
    kind: &'static str,
    /// Its name in the document.
    pub(crate) name: String,
    pub(crate) said: Said,
}

impl Declared<'_> {
    /// A member of a resource, as an object of the document.
    fn member(&self, inherited: &Type) -> Result<Setting> {
        let mut said = self.said.clone();
        let ty = &self.field.ty;
        if self.kind == KEYSPACE.name {
            // With the schema of the resource come its versions; a schema of its own would begin anew.
            if !same(ty, inherited) {
                said.add("schema", Setting::Schema(Box::new(ty.clone())));
            }
        } else if !matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty()) {
            let message = format!("a value of #[{}] has no type of its own: write `()`", self.kind);
            return Err(Error::new_spanned(ty, message));
        }
        if let Some(text) = documentation(&self.field.attrs) {
            said.add("description", Setting::Text(text));
        }
        Ok(said.into_object())
    }
}

/// The builder with a field of a contract.
fn step(Declared { field, kind, name, mut said }: Declared<'_>) -> TokenStream {
    let ty = &field.ty;
    if kind == RESOURCE_FIELD.name {
        return quote!(<#ty as _contract::ResourceType>::declare(builder, #name));
    }
    if kind == KV.name {
        let purpose = said.take_text("purpose").unwrap_or_default();
        return kv(&quote!(#name), &purpose, ty, &said.into_object());
    }
    let store_kind = variant(&said.take_text("kind").unwrap_or_default());
    if let Some(text) = documentation(&field.attrs) {
        said.add("description", Setting::Text(text));
    }
    let more = said.into_object();
    let (schemas, tokens) = (more.schemas(), more.tokens());
    quote! {
        builder.schema::<#ty>()#(.schema::<#schemas>())*.state(
            #name,
            _contract::StoreKind::#store_kind,
            &_contract::schema_name::<#ty>(),
            #tokens,
        )
    }
}

fn kv(alias: &TokenStream, purpose: &str, schema: &Type, more: &Setting) -> TokenStream {
    let (schemas, tokens) = (more.schemas(), more.tokens());
    quote! {
        builder.schema::<#schema>()#(.schema::<#schemas>())*.kv(
            #alias,
            #purpose,
            &_contract::schema_name::<#schema>(),
            #tokens,
        )
    }
}

/// What a contract says of itself.
struct Head {
    /// The builder with it.
    builder: TokenStream,
    /// Where the code is that the derive calls.
    contract: Path,
    facade: Option<Facade>,
}

fn head(input: &DeriveInput) -> Result<Head> {
    let attribute = the_attribute(input, &CONTRACT)?;
    let mut said = Said::read(attribute, &CONTRACT)?;
    let contract = said.take_path("crate", CONTRACT_PATH, attribute)?;
    let facade = Facade::take(&mut said, attribute)?;
    let mut text = |field| said.take_text(field);
    let (id, kind, name) = (text("id"), text("kind").unwrap_or_default(), text("displayName"));
    let docs = text("docs").map(|docs| quote!(.docs(#docs)));
    let Some(description) = text("description").or_else(|| documentation(&input.attrs)) else {
        let message =
            "nothing says what the contract is for: document the struct, or add `description = \"…\"`";
        return Err(Error::new_spanned(attribute, message));
    };
    let kind = variant(&kind);
    let builder = quote! {
        _contract::ContractBuilder::new(#id, _contract::ContractKind::#kind)
            .describe(#name, #description)
            #docs
    };
    Ok(Head { builder, contract, facade })
}

/// Looks at every field once, so that the compiler does not warn of those that only stand for something.
fn read(ident: &Ident, fields: &Fields) -> TokenStream {
    let names = fields.iter().filter_map(|field| field.ident.as_ref());
    quote! {
        const _: () = {
            #[allow(dead_code, unused_variables, reason = "the fields stand for parts of the contract")]
            fn read(whole: &#ident) {
                #(let _ = &whole.#names;)*
            }
        };
    }
}

fn fields<'a>(input: &'a DeriveInput, what: &str) -> Result<&'a Fields> {
    if !input.generics.params.is_empty() {
        let message = format!("a {what} is one thing: its struct takes no parameters");
        return Err(Error::new_spanned(&input.generics, message));
    }
    match &input.data {
        Data::Struct(data) if !matches!(data.fields, Fields::Unnamed(_)) => Ok(&data.fields),
        _ => {
            let message = format!("a {what} is a struct with names for its fields");
            Err(Error::new_spanned(&input.ident, message))
        }
    }
}

fn the_attribute<'a>(input: &'a DeriveInput, vocabulary: &Vocabulary) -> Result<&'a Attribute> {
    let name = vocabulary.name;
    let mut found = input.attrs.iter().filter(|attribute| attribute.path().is_ident(name));
    let Some(first) = found.next() else {
        return Err(Error::new_spanned(&input.ident, format!("add #[{name}(…)] to say what it is")));
    };
    match found.next() {
        None => Ok(first),
        Some(second) => Err(Error::new_spanned(second, format!("#[{name}] is here twice: keep one"))),
    }
}

/// Reads the attributes of all fields, and reports everything that is wrong with them at once.
fn declared<'a>(fields: &'a Fields, vocabularies: &[Vocabulary]) -> Result<Vec<Declared<'a>>> {
    let mut problems = Collected::default();
    let declared: Vec<Declared<'a>> =
        fields.iter().filter_map(|field| problems.take(declare(field, vocabularies))).collect();
    problems.0.map_or(Ok(declared), Err)
}

fn declare<'a>(field: &'a Field, vocabularies: &[Vocabulary]) -> Result<Declared<'a>> {
    let found: Vec<(&Attribute, &Vocabulary)> = field
        .attrs
        .iter()
        .filter_map(|attribute| {
            let known = vocabularies.iter().find(|known| attribute.path().is_ident(known.name))?;
            Some((attribute, known))
        })
        .collect();
    let names: Vec<String> = vocabularies.iter().map(|known| format!("#[{}]", known.name)).collect();
    let ident = field.ident.as_ref();
    let (attribute, vocabulary) = match found.as_slice() {
        [one] => *one,
        [] => {
            let message = format!("nothing says what this field is: add one of {}", names.join(", "));
            return Err(Error::new_spanned(ident, message));
        }
        [_, second, ..] => {
            return Err(Error::new_spanned(second.0, "a field is one thing: keep one of its attributes"));
        }
    };
    let mut said = Said::read(attribute, vocabulary)?;
    let written = || ident.map(|ident| ident.unraw().to_string()).unwrap_or_default();
    let name = said.take_text("name").unwrap_or_else(written);
    Ok(Declared { field, kind: vocabulary.name, name, said })
}

/// Finds fields that would be one thing in the document.
fn different(declared: &[&Declared<'_>]) -> Result<()> {
    for (place, one) in declared.iter().enumerate() {
        if declared[..place].iter().any(|other| other.name == one.name) {
            let message = format!("another field is \"{}\" already: give each its own name", one.name);
            return Err(Error::new_spanned(&one.field.ident, message));
        }
    }
    Ok(())
}

/// What the comments `///` say: lines joined, paragraphs kept.
pub(crate) fn documentation(attributes: &[Attribute]) -> Option<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let text = lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n");
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.trim().replace('\n', " "));
    let paragraphs: Vec<String> = paragraphs.filter(|paragraph| !paragraph.is_empty()).collect();
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

/// `map` as `Map`: the word of the document as the variant of its enum.
fn variant(word: &str) -> Ident {
    let (first, rest) = word.split_at(word.len().min(1));
    Ident::new(&format!("{}{rest}", first.to_uppercase()), Span::call_site())
}

fn same(one: &Type, other: &Type) -> bool {
    quote!(#one).to_string() == quote!(#other).to_string()
}

/// Errors, told all at once.
#[derive(Default)]
struct Collected(Option<Error>);

impl Collected {
    fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => Some(value),
            (Err(error), Some(others)) => {
                others.combine(error);
                None
            }
            (Err(error), none) => {
                *none = Some(error);
                None
            }
        }
    }

    fn end(self) -> Error {
        self.0.unwrap_or_else(|| Error::new(Span::call_site(), "the derive found a problem"))
    }
}
