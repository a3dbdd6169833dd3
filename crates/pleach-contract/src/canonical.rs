use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::document::Contract;

/// Texts for people, which are not part of what a contract demands.
const PROSE: [&str; 3] = ["description", "displayName", "docs"];

/// The lists of a document that are sets: which parts of a resource have them, and in which field. The segments that an access
/// path has under `given` are no set: callers pass values in that order.
const SETS: [(&str, &str); 2] = [("/keyspaces", "from"), ("/atomic", "members")];

/// Which contract it is: SHA-256 of its canonical form, as base64url without padding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest as it is written: 43 characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Contract {
    /// The digest: the same for every way of writing down the same demands. It does not depend on the order of fields and
    /// sets, on defaults that are written out, on texts for people, or on schemas that nothing names.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest_of(&self.projection())
    }

    /// The digest by the rules of earlier versions, which kept the order of `members` and `from`. Stores have it on record.
    #[must_use]
    pub fn digest_as_written(&self) -> Digest {
        digest_of(&self.projection_as_written())
    }

    /// Whether a digest is that of this contract, by the rules of today or by those of earlier versions.
    #[must_use]
    pub fn is_called(&self, digest: &str) -> bool {
        self.digest().as_str() == digest || self.digest_as_written().as_str() == digest
    }

    /// What is digested.
    #[must_use]
    pub fn projection(&self) -> Value {
        let mut value = self.projection_as_written();
        for resource in things(&mut value, "/resources/kv") {
            for (kind, field) in SETS {
                for part in things(resource, kind) {
                    sort(part, field);
                }
            }
        }
        value
    }

    /// What is digested, with sets in the order in which they are written.
    fn projection_as_written(&self) -> Value {
        let used = self.used_schemas();
        let mut value = self.to_value();
        remove_all(&mut value, &PROSE);
        if let Some(schemas) = value.get_mut("schemas").and_then(Value::as_object_mut) {
            schemas.retain(|name, _| used.contains(name.as_str()));
            if schemas.is_empty() {
                remove_all(&mut value, &["schemas"]);
            }
        }
        for store in things(&mut value, "/state") {
            remove_all(store, &PROSE);
        }
        for resource in things(&mut value, "/resources/kv") {
            // A tier is another way to write `ttlMs`, which is there by now.
            remove_all(resource, &["tier"]);
            for kind in ["/keyspaces", "/indexes", "/relationships", "/counters", "/atomic"] {
                for part in things(resource, kind) {
                    remove_all(part, &PROSE);
                    remove_all(part, &["tier"]);
                }
            }
        }
        value
    }

    /// The canonical form: sorted fields, no white space, defaults written out, without what is not digested.
    #[must_use]
    pub fn canonical(&self) -> String {
        canonical(&self.projection())
    }
}

/// The digest of any JSON value in its canonical form.
pub(crate) fn digest_of(value: &Value) -> Digest {
    Digest(URL_SAFE_NO_PAD.encode(Sha256::digest(canonical(value).as_bytes())))
}

/// JSON with sorted fields, lists in their order, and no white space. A whole number has no fraction.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64()).and_then(crate::text::whole);
            text.push_str(&whole.as_ref().unwrap_or(number).to_string());
        }
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

fn things<'v>(value: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Value> + use<'v> {
    let object = value.pointer_mut(pointer).and_then(Value::as_object_mut);
    object.into_iter().flat_map(|object| object.values_mut())
}

/// Puts a list of texts into their order.
fn sort(value: &mut Value, field: &str) {
    if let Some(list) = value.get_mut(field).and_then(Value::as_array_mut) {
        list.sort_by(|one, two| one.as_str().cmp(&two.as_str()));
    }
}

fn remove_all(value: &mut Value, names: &[&str]) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| !names.contains(&name.as_str()));
    }
}
