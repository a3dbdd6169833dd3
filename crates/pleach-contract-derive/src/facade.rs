use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Attribute, DeriveInput, Error, Ident, Path, Result};

use crate::attribute::Said;
use crate::expand::{Declared, documentation};
use crate::setting::Setting;

/// Where the macro is, unless it is said.
const STORES_PATH: &str = "::pleach::stores";

/// The version of a store that says none, as the document has it.
const FIRST_VERSION: &str = "v1";

/// What `#[contract(state = "…")]` asks for: a type with a method for each state store.
pub(crate) struct Facade {
    name: Ident,
    stores: Path,
}

impl Facade {
    /// Takes it out of what the contract says of itself.
    pub(crate) fn take(said: &mut Said, attribute: &Attribute) -> Result<Option<Self>> {
        let is_placed = said.has("stores");
        let stores = said.take_path("stores", STORES_PATH, attribute)?;
        let Some(name) = said.take_text("state") else {
            let message =
                "\"stores\" says where the code of the state is: add `state = \"…\"`, the name of its type";
            return if is_placed { Err(Error::new_spanned(attribute, message)) } else { Ok(None) };
        };
        let Ok(name) = syn::parse_str(&name) else {
            let message = format!("\"state\" is the name of a type to make, and \"{name}\" cannot be one");
            return Err(Error::new_spanned(attribute, message));
        };
        Ok(Some(Self { name, stores }))
    }

    /// The call of the macro that makes it.
    pub(crate) fn tokens(&self, input: &DeriveInput, declared: &[&Declared<'_>]) -> Result<TokenStream> {
        let Self { name, stores } = self;
        let about = format!("What `{}` keeps for each of its users and devices.", input.ident);
        let (visibility, declared) =
            (&input.vis, declared.iter().map(|one| store(one)).collect::<Result<Vec<_>>>()?);
        Ok(quote! {
            #stores::state_facade! {
                #[doc = #about]
                #visibility struct #name { #(#declared)* }
            }
        })
    }
}

/// A store as the macro takes it.
fn store(one: &Declared<'_>) -> Result<TokenStream> {
    let mut said = one.said.clone();
    let (method, name, value) = (&one.field.ident, &one.name, &one.field.ty);
    let kind = Ident::new(&said.take_text("kind").unwrap_or_default(), Span::call_site());
    let version = said.take_text("stateVersion").unwrap_or_else(|| FIRST_VERSION.into());
    let about = documentation(&one.field.attrs).unwrap_or_else(|| format!("The {kind} store `{name}`."));
    let mut variants: Vec<Ident> = Vec::new();
    let mut older = Vec::new();
    if let Some(Setting::Object(versions)) = said.take("acceptedVersions") {
        for (version, setting) in &versions {
            let Setting::Schema(ty) = setting else { continue };
            let variant = Ident::new(&pascal(version), Span::call_site());
            if variants.contains(&variant) {
                let message = format!("two older versions would be the variant {variant}: rename one");
                return Err(Error::new_spanned(method, message));
            }
            older.push(quote!(#variant(#ty) = #version));
            variants.push(variant);
        }
    }
    let or = (!older.is_empty()).then(|| {
        let word = method.as_ref().map(|method| pascal(&method.unraw().to_string())).unwrap_or_default();
        let enumeration = Ident::new(&format!("Old{word}"), Span::call_site());
        quote!(, or #enumeration { #(#older),* })
    });
    Ok(quote!(#[doc = #about] #kind #method(#name, #version): #value #or;))
}

/// `preferences.v1` as `PreferencesV1`: a name or a version as a name of Rust.
fn pascal(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.map(|word| [&word[..1].to_uppercase(), &word[1..]].concat()).collect();
    match name.as_str() {
        "" => "Unnamed".into(),
        "Self" => "SelfValue".into(),
        _ if name.starts_with(|first: char| first.is_ascii_digit()) => format!("N{name}"),
        _ => name,
    }
}
