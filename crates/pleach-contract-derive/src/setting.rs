use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

/// A part of the document as an attribute says it.
#[derive(Clone)]
pub(crate) enum Setting {
    Text(String),
    Number(u64),
    Flag(bool),
    Texts(Vec<String>),
    /// A reference to the schema of a type.
    Schema(Box<Type>),
    Object(Vec<(String, Setting)>),
}

impl Setting {
    /// An expression that makes it a JSON value.
    pub(crate) fn tokens(&self) -> TokenStream {
        let support = quote!(_contract::derive_support);
        match self {
            Self::Text(text) => quote!(#support::Value::from(#text)),
            Self::Number(number) => quote!(#support::Value::from(#number)),
            Self::Flag(flag) => quote!(#support::Value::from(#flag)),
            Self::Texts(texts) => quote!(#support::texts(&[#(#texts),*])),
            Self::Schema(schema) => quote!(#support::reference::<#schema>()),
            Self::Object(fields) => {
                let fields = fields.iter().map(|(name, setting)| {
                    let value = setting.tokens();
                    quote!((#name, #value))
                });
                quote!(#support::object([#(#fields),*]))
            }
        }
    }

    /// The types whose schemas it refers to.
    pub(crate) fn schemas(&self) -> Vec<&Type> {
        match self {
            Self::Schema(schema) => vec![schema],
            Self::Object(fields) => fields.iter().flat_map(|(_, setting)| setting.schemas()).collect(),
            Self::Text(_) | Self::Number(_) | Self::Flag(_) | Self::Texts(_) => Vec::new(),
        }
    }
}
