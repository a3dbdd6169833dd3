// Made of the contract acme.type@v1 by `pleach contract codegen`: do not edit.

use pleach_stores as stores;

/// Names that are keywords, names that collide,
/// and shapes that no Rust type has.
#[derive(Clone, Debug)]
pub struct Type {
    /// Named like a keyword
    pub r#fn: FnStore,
    /// Not always there
    pub optional: Option<OptionalStore>,
}

impl Type {
    /// The id of the contract.
    pub const ID: &'static str = "acme.type@v1";
    /// The digest of the contract that this code was made of.
    pub const DIGEST: &'static str = "4j4-p9E3gAAw5O_gycBiAEveROb_8jonegny0yqz6NE";

    /// Binds the code to the resources of a service.
    ///
    /// # Errors
    /// If the service is of another contract.
    pub fn bind(service: &stores::Service) -> Result<Self, stores::KvError> {
        Ok(Self {
            r#fn: FnStore::bind(service.kv("fn")?)?,
            optional: service.find("optional").map(OptionalStore::bind).transpose()?,
        })
    }
}

/// Named like a keyword
#[derive(Clone, Debug)]
pub struct FnStore {
    store: stores::KvStore,
    any: stores::Keyspace<Option3>,
    constant: stores::Keyspace<Option2>,
    r#match: stores::Keyspace<Rope>,
    perhaps: stores::Keyspace<Perhaps>,
    store2: stores::Keyspace<Tree>,
}

impl FnStore {
    fn bind(store: stores::KvStore) -> Result<Self, stores::KvError> {
        let store = store.of_contract(Type::DIGEST)?;
        Ok(Self { any: store.keyspace("any")?, constant: store.keyspace("constant")?, r#match: store.keyspace("match")?, perhaps: store.keyspace("perhaps")?, store2: store.keyspace("store")?, store })
    }

    /// The resource itself, for batches and for retention.
    pub fn store(&self) -> &stores::KvStore {
        &self.store
    }

    /// The keyspace `any`.
    pub fn any(&self) -> &stores::Keyspace<Option3> {
        &self.any
    }

    /// A page of the access path `of`: at most 100 entries.
    ///
    /// # Errors
    /// What is wrong with a value or an option, or what the engine could not do.
    pub async fn any_of(&self, options2: &str, options: stores::QueryOptions<'_>)
        -> Result<stores::QueryPage<Option3>, stores::KvError> {
        self.any.query_with("of", &[stores::key::Value::Text(std::borrow::Cow::Borrowed(options2))], options).await
    }

    /// The keyspace `constant`.
    pub fn constant(&self) -> &stores::Keyspace<Option2> {
        &self.constant
    }

    /// The keyspace `match`.
    pub fn r#match(&self) -> &stores::Keyspace<Rope> {
        &self.r#match
    }

    /// A page of the access path `all`: at most 7 entries.
    ///
    /// # Errors
    /// What is wrong with a value or an option, or what the engine could not do.
    pub async fn match_all(&self, options: stores::QueryOptions<'_>)
        -> Result<stores::QueryPage<Rope>, stores::KvError> {
        self.r#match.query_with("all", &[], options).await
    }

    /// The keyspace `perhaps`.
    pub fn perhaps(&self) -> &stores::Keyspace<Perhaps> {
        &self.perhaps
    }

    /// The keyspace `store`.
    pub fn store2(&self) -> &stores::Keyspace<Tree> {
        &self.store2
    }

    /// A page of the access path `bind`: at most 100 entries.
    ///
    /// # Errors
    /// What is wrong with a value or an option, or what the engine could not do.
    pub async fn store2_bind(&self, self_value: &str, r#match: i64, options: stores::QueryOptions<'_>)
        -> Result<stores::QueryPage<Tree>, stores::KvError> {
        self.store2.query_with("bind", &[stores::key::Value::Text(std::borrow::Cow::Borrowed(self_value)), stores::key::Value::Int(r#match)], options).await
    }

    /// A page of the access path `type`, in the order of `match`: at most 100 entries.
    ///
    /// # Errors
    /// What is wrong with a value or an option, or what the engine could not do.
    pub async fn store2_type(&self, self_value: &str, options: stores::QueryOptions<'_>)
        -> Result<stores::QueryPage<Tree>, stores::KvError> {
        self.store2.query_with("type", &[stores::key::Value::Text(std::borrow::Cow::Borrowed(self_value))], options).await
    }
}

/// A key of `any`: `x.{options}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FnAnyKey<'k> {
    /// `{options}`: 1 to 64 letters, digits or `_`.
    pub options: std::borrow::Cow<'k, str>,
}

impl<'k> FnAnyKey<'k> {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'k>]) -> Option<Self> {
        match values {
            [stores::key::Value::Text(options)] => Some(Self { options: options.clone() }),
            _ => None,
        }
    }
}

impl stores::KeyOf for FnAnyKey<'_> {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 1] = [stores::key::Value::Text(std::borrow::Cow::Borrowed(&self.options))];
        stores::KeyOf::key(&values, grammar)
    }
}

/// A key of `constant`: `only.one`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FnConstantKey {
}

impl FnConstantKey {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'_>]) -> Option<Self> {
        match values {
            [] => Some(Self {  }),
            _ => None,
        }
    }
}

impl stores::KeyOf for FnConstantKey {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 0] = [];
        stores::KeyOf::key(&values, grammar)
    }
}

/// A key of `match`: `m.{at:date}.{id:uuid}.{kind:a|b}.{rest...}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FnMatchKey<'k> {
    /// `{at:date}`: a date, such as 20260705.
    pub at: stores::key::Date,
    /// `{id:uuid}`: a UUID in lower case, such as 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b.
    pub id: u128,
    /// `{kind:a|b}`: one of a, b.
    pub kind: std::borrow::Cow<'k, str>,
    /// `{rest...}`: tokens of at most 256 bytes in all, or none.
    pub rest: std::borrow::Cow<'k, str>,
}

impl<'k> FnMatchKey<'k> {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'k>]) -> Option<Self> {
        match values {
            [stores::key::Value::Date(at), stores::key::Value::Uuid(id), stores::key::Value::Text(kind), stores::key::Value::Text(rest)] => Some(Self { at: *at, id: *id, kind: kind.clone(), rest: rest.clone() }),
            _ => None,
        }
    }
}

impl stores::KeyOf for FnMatchKey<'_> {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 4] = [stores::key::Value::Date(self.at), stores::key::Value::Uuid(self.id), stores::key::Value::Text(std::borrow::Cow::Borrowed(&self.kind)), stores::key::Value::Text(std::borrow::Cow::Borrowed(&self.rest))];
        stores::KeyOf::key(&values, grammar)
    }
}

/// A key of `perhaps`: `p.{n:uint}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FnPerhapsKey {
    /// `{n:uint}`: 20 digits, a number from 0 to 18446744073709551615.
    pub n: u64,
}

impl FnPerhapsKey {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'_>]) -> Option<Self> {
        match values {
            [stores::key::Value::Uint(n)] => Some(Self { n: *n }),
            _ => None,
        }
    }
}

impl stores::KeyOf for FnPerhapsKey {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 1] = [stores::key::Value::Uint(self.n)];
        stores::KeyOf::key(&values, grammar)
    }
}

/// A key of `store`: `s.{self}.{match:int(4)}.{hash:hash(4)}.{blob:bytes}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FnStoreKey<'k> {
    /// `{self}`: 1 to 64 letters, digits or `_`.
    pub self_value: std::borrow::Cow<'k, str>,
    /// `{match:int(4)}`: `0` and 4 digits, or `-` and 4 digits for a number below zero.
    pub r#match: i64,
    /// `{hash:hash(4)}`: 8 hexadecimal digits in lower case.
    pub hash: std::borrow::Cow<'k, [u8]>,
    /// `{blob:bytes}`: 1 to 64 bytes in the digits 0-9 = A-Z _ a-z, six bits each.
    pub blob: std::borrow::Cow<'k, [u8]>,
}

impl<'k> FnStoreKey<'k> {
    /// The key of the values that `Keyspace::values` reads of one; none if they are of another keyspace.
    pub fn of(values: &[stores::key::Value<'k>]) -> Option<Self> {
        match values {
            [stores::key::Value::Text(self_value), stores::key::Value::Int(r#match), stores::key::Value::Bytes(hash), stores::key::Value::Bytes(blob)] => Some(Self { self_value: self_value.clone(), r#match: *r#match, hash: hash.clone(), blob: blob.clone() }),
            _ => None,
        }
    }
}

impl stores::KeyOf for FnStoreKey<'_> {
    fn key(&self, grammar: Option<&stores::key::Grammar>) -> Result<stores::Key, stores::InvalidKey> {
        let values: [stores::key::Value<'_>; 4] = [stores::key::Value::Text(std::borrow::Cow::Borrowed(&self.self_value)), stores::key::Value::Int(self.r#match), stores::key::Value::Bytes(std::borrow::Cow::Borrowed(&self.hash)), stores::key::Value::Bytes(std::borrow::Cow::Borrowed(&self.blob))];
        stores::KeyOf::key(&values, grammar)
    }
}

/// Not always there
#[derive(Clone, Debug)]
pub struct OptionalStore {
    store: stores::KvStore,
    entries: stores::Keyspace<Tree>,
}

impl OptionalStore {
    fn bind(store: stores::KvStore) -> Result<Self, stores::KvError> {
        let store = store.of_contract(Type::DIGEST)?;
        Ok(Self { entries: store.entries()?, store })
    }

    /// The resource itself, for batches and for retention.
    pub fn store(&self) -> &stores::KvStore {
        &self.store
    }

    /// All its entries.
    pub fn entries(&self) -> &stores::Keyspace<Tree> {
        &self.entries
    }
}

stores::state_facade! {
    /// What `acme.type@v1` keeps for each of its users and devices.
    pub struct TypeState {
        /// The map store `Self`.
        map self_value("Self", "3"): Tree, or OldSelfValue {
            N2(Rope) = "2",
            SelfValue(Tree) = "Self",
            V1(Option3) = "v-1",
            V12(Perhaps) = "v.1",
        };
        /// The value store `Self2`.
        value self2("Self2", "v1"): Rope, or OldSelf2 {
            V0(Tree) = "v0",
        };
        /// The value store `fn`.
        value r#fn("fn", "v1"): Option2;
        /// The map store `self`.
        map self_value2("self", "v1"): Option3;
    }
}

/// `Option2Color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Option2Color {
    /// `red`.
    #[serde(rename = "red")]
    Red,
    /// `green`.
    #[serde(rename = "green")]
    Green,
}

/// `Option2Text`.
pub type Option2Text = String;

/// `Option2ListItem`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Option2ListItem {
    /// `crate`.
    #[serde(rename = "crate")]
    pub crate_value: bool,
}

impl Option2ListItem {
    /// With what must be there, and nothing else.
    pub fn new(crate_value: bool) -> Self {
        Self { crate_value }
    }
}

/// `Option2Items`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Option2Items {
    /// `crate`.
    #[serde(rename = "crate")]
    pub crate_value: bool,
}

impl Option2Items {
    /// With what must be there, and nothing else.
    pub fn new(crate_value: bool) -> Self {
        Self { crate_value }
    }
}

/// `Option2Only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Option2Only {
    /// `exactly`.
    #[serde(rename = "exactly")]
    Exactly,
}

/// `Option2State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Option2State {
    /// `self`.
    #[serde(rename = "self")]
    SelfValue,
    /// `Self`.
    #[serde(rename = "Self")]
    SelfValue2,
    /// Nothing but spaces.
    #[serde(rename = "")]
    Unnamed,
    /// `2`.
    #[serde(rename = "2")]
    N2,
    /// `a b`.
    #[serde(rename = "a b")]
    AB,
    /// `a-b`.
    #[serde(rename = "a-b")]
    AB2,
}

/// Named like a type of the language.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Option2 {
    /// Nothing but spaces.
    #[serde(rename = "", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub unnamed: Option<()>,
    /// `2nd`.
    #[serde(rename = "2nd", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub n2nd: Option<serde_json::Value>,
    /// `Self`.
    #[serde(rename = "Self", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub self_value: Option<i64>,
    /// `again`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub again: Option<Option2Color>,
    /// `alias`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub alias: Option<Option2Text>,
    /// `color`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub color: Option<Option2Color>,
    /// `dueAt`.
    #[serde(rename = "dueAt")]
    pub due_at: Option<String>,
    /// `due_at`.
    #[serde(rename = "due_at", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub due_at2: Option<f64>,
    /// `list`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub list: Option<Vec<Option2ListItem>>,
    /// `maybe`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub maybe: Option<Option<Option2Color>>,
    /// `mixed`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub mixed: Option<serde_json::Value>,
    /// `nested`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub nested: Option<Option2Items>,
    /// `only`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub only: Option<Option2Only>,
    /// `other`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub other: Option<bool>,
    /// `pairs`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub pairs: Option<std::collections::BTreeMap<String, i64>>,
    /// `self`.
    #[serde(rename = "self", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub self_value2: Option<u64>,
    /// `state`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<Option<Option2State>>,
    /// `tuple`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub tuple: Option<Vec<serde_json::Value>>,
    /// `type`.
    pub r#type: String,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other2: std::collections::BTreeMap<String, serde_json::Value>,
}

impl Option2 {
    /// With what must be there, and nothing else.
    pub fn new(due_at: Option<String>, r#type: String) -> Self {
        Self { due_at, r#type, unnamed: None, n2nd: None, self_value: None, again: None, alias: None, color: None, due_at2: None, list: None, maybe: None, mixed: None, nested: None, only: None, other: None, pairs: None, self_value2: None, state: None, tuple: None, other2: std::collections::BTreeMap::new() }
    }
}

/// `PerhapsValue`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PerhapsValue {
    /// `x`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub x: Option<i64>,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

/// `Perhaps`.
pub type Perhaps = Option<PerhapsValue>;

/// `Rope`.
pub type Rope = Vec<serde_json::Value>;

/// `TreeBranch`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TreeBranch {
    /// `tree`.
    pub tree: Box<Tree>,
    /// `weight`.
    pub weight: f64,
    /// Fields that the schema allows without naming them.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, String>,
}

impl TreeBranch {
    /// With what must be there, and nothing else.
    pub fn new(tree: Box<Tree>, weight: f64) -> Self {
        Self { tree, weight, other: std::collections::BTreeMap::new() }
    }
}

/// `Tree`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Tree {
    /// `children`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub children: Option<Vec<TreeBranch>>,
    /// `left`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub left: Option<Box<Tree>>,
    /// `name`.
    pub name: String,
}

impl Tree {
    /// With what must be there, and nothing else.
    pub fn new(name: String) -> Self {
        Self { name, children: None, left: None }
    }
}

/// `Option3`.
pub type Option3 = serde_json::Value;

/// Tells a field that is null from one that is missing.
fn present<'de, T: serde::Deserialize<'de>, D: serde::Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The contract, as JSON.
pub const CONTRACT: &str = r##"{"description":"Names that are keywords, names that collide,\nand shapes that no Rust type has.\n","displayName":"Awkward","format":"pleach.contract.v1","id":"acme.type@v1","kind":"service","resources":{"kv":{"fn":{"history":1,"keyspaces":{"any":{"access":{"of":{"given":["options"],"limit":100}},"key":"x.{options}","role":"source","schema":{"schema":"option"},"ttlMs":0,"version":"v1"},"constant":{"key":"only.one","role":"source","schema":{"schema":"Option"},"ttlMs":0,"version":"v1"},"match":{"access":{"all":{"limit":7}},"key":"m.{at:date}.{id:uuid}.{kind:a|b}.{rest...}","role":"source","schema":{"schema":"Rope"},"ttlMs":0,"version":"v1"},"perhaps":{"key":"p.{n:uint}","role":"source","schema":{"schema":"Perhaps"},"ttlMs":0,"version":"v1"},"store":{"access":{"bind":{"given":["self","match"],"limit":100},"type":{"given":["self"],"limit":100,"range":"match"}},"key":"s.{self}.{match:int(4)}.{hash:hash(4)}.{blob:bytes}","role":"source","schema":{"schema":"Tree"},"ttlMs":0,"version":"v1"}},"purpose":"Named like a keyword","required":true,"schema":{"schema":"Option"},"ttlMs":0,"version":"v1"},"optional":{"history":1,"purpose":"Not always there","required":false,"schema":{"schema":"Tree"},"ttlMs":0,"version":"v1"}}},"schemas":{"Option":{"$defs":{"Color":{"enum":["red","green"]},"Text":{"type":"string"}},"description":"Named like a type of the language.","properties":{"":{"type":"null"},"2nd":{"type":["integer","string"]},"Self":{"type":"integer"},"again":{"$ref":"#/$defs/Color"},"alias":{"$ref":"#/$defs/Text"},"color":{"$ref":"#/$defs/Color"},"dueAt":{"type":["string","null"]},"due_at":{"type":"number"},"list":{"items":{"additionalProperties":false,"properties":{"crate":{"type":"boolean"}},"required":["crate"],"type":"object"},"type":"array"},"maybe":{"anyOf":[{"$ref":"#/$defs/Color"},{"type":"null"}]},"mixed":{"enum":[1,"two"]},"nested":{"allOf":[{"$ref":"#/properties/list/items"}]},"only":{"const":"exactly"},"other":{"type":"boolean"},"pairs":{"additionalProperties":{"type":"integer"},"type":"object"},"self":{"minimum":0,"type":"integer"},"state":{"enum":["self","Self","","2","a b","a-b",null]},"tuple":{"prefixItems":[{"type":"string"}],"type":"array"},"type":{"type":"string"}},"required":["type","dueAt"],"type":"object"},"Perhaps":{"properties":{"x":{"type":"integer"}},"type":["object","null"]},"Rope":{"items":{"anyOf":[{"type":"string"},{"$ref":"#"}]},"type":"array"},"Tree":{"$defs":{"Branch":{"additionalProperties":{"type":"string"},"properties":{"tree":{"$ref":"#"},"weight":{"type":"number"}},"required":["weight","tree"],"type":"object"}},"additionalProperties":false,"properties":{"children":{"items":{"$ref":"#/$defs/Branch"},"type":"array"},"left":{"$ref":"#"},"name":{"type":"string"}},"required":["name"],"type":"object"},"option":true},"state":{"Self":{"acceptedVersions":{"2":{"schema":"Rope"},"Self":{"schema":"Tree"},"v-1":{"schema":"option"},"v.1":{"schema":"Perhaps"}},"kind":"map","schema":{"schema":"Tree"},"stateVersion":"3"},"Self2":{"acceptedVersions":{"v0":{"schema":"Tree"}},"kind":"value","schema":{"schema":"Rope"},"stateVersion":"v1"},"fn":{"kind":"value","schema":{"schema":"Option"},"stateVersion":"v1"},"self":{"kind":"map","schema":{"schema":"option"},"stateVersion":"v1"}}}"##;
