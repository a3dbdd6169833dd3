use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::document::{Contract, ContractKind, FORMAT, Parsed, StoreKind};
use crate::problem::{Code, Problem, Problems};
use crate::schema::Validators;
use crate::text::child;

/// Makes a contract in Rust: schemas come from types, everything else is said. [`ContractBuilder::build`] reads the
/// document that comes of it like any other, so both ways give the same contract and the same problems.
///
/// ```
/// use pleach_contract::{ContractBuilder, ContractKind, StoreKind};
/// use schemars::JsonSchema;
/// use serde_json::json;
///
/// #[derive(JsonSchema)]
/// struct Draft {
///     title: String,
/// }
///
/// let built = ContractBuilder::new("acme.notes@v1", ContractKind::App)
///     .describe("Notes", "Notes that follow their author")
///     .schema::<Draft>()
///     .state("drafts", StoreKind::Map, "Draft", json!({}))
///     .kv("drafts", "Drafts by id", "Draft", json!({"history": 5}))
///     .build()
///     .expect("it has no problems");
/// assert_eq!(built.contract.resources.kv["drafts"].history, 5);
/// ```
#[derive(Clone, Debug)]
pub struct ContractBuilder {
    head: Map<String, Value>,
    schemas: Map<String, Value>,
    state: Map<String, Value>,
    kv: Map<String, Value>,
    /// What the document cannot show, as of two things of one name it has only the last.
    problems: Problems,
}

impl ContractBuilder {
    /// A contract of this id.
    #[must_use]
    pub fn new(id: &str, kind: ContractKind) -> Self {
        let mut head = Map::new();
        head.insert("format".into(), FORMAT.into());
        head.insert("id".into(), id.into());
        head.insert("kind".into(), json!(kind));
        Self { head, schemas: Map::new(), state: Map::new(), kv: Map::new(), problems: Problems::default() }
    }

    /// Says what it is called and what it is for.
    #[must_use]
    pub fn describe(mut self, display_name: &str, description: &str) -> Self {
        self.head.insert("displayName".into(), display_name.into());
        self.head.insert("description".into(), description.into());
        self
    }

    /// Says anything else that people should know, as Markdown.
    #[must_use]
    pub fn docs(mut self, docs: &str) -> Self {
        self.head.insert("docs".into(), docs.into());
        self
    }

    /// Adds the schema of a type under the type's name; doing so again changes nothing.
    #[must_use]
    pub fn schema<T: JsonSchema>(self) -> Self {
        self.schema_value(&schema_name::<T>(), schema_of::<T>())
    }

    /// Adds a schema under a name. Another schema of that name is a problem that [`ContractBuilder::build`] tells.
    #[must_use]
    pub fn schema_value(mut self, name: &str, schema: Value) -> Self {
        if self.schemas.get(name).is_some_and(|other| *other != schema) {
            self.clash("/schemas", name, "rename one of the types, as by `#[schemars(rename = \"…\")]`");
        }
        self.schemas.insert(name.into(), schema);
        self
    }

    /// Adds a state store; `more` has its other fields, as the document names them.
    #[must_use]
    pub fn state(mut self, name: &str, kind: StoreKind, schema: &str, more: Value) -> Self {
        let store = with(json!({"kind": kind, "schema": {"schema": schema}}), more);
        if self.state.insert(name.into(), store).is_some() {
            self.clash("/state", name, "give each its own name");
        }
        self
    }

    /// Adds a KV resource; `more` has its other fields, as the document names them.
    #[must_use]
    pub fn kv(mut self, alias: &str, purpose: &str, schema: &str, more: Value) -> Self {
        let resource = with(json!({"purpose": purpose, "schema": {"schema": schema}}), more);
        if self.kv.insert(alias.into(), resource).is_some() {
            self.clash("/resources/kv", alias, "give each its own alias");
        }
        self
    }

    fn clash(&mut self, path: &str, name: &str, fix: &str) {
        let message = format!("there are two different things of the name `{name}`");
        self.problems.push(Problem::new(Code::NameClash, child(path, name), message, fix));
    }

    /// The document as it was said, without defaults.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut document = self.head.clone();
        document.insert("schemas".into(), Value::Object(self.schemas.clone()));
        document.insert("state".into(), Value::Object(self.state.clone()));
        document.insert("resources".into(), json!({"kv": self.kv}));
        Value::Object(document)
    }

    /// Reads and checks the document.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn build(&self) -> Result<Parsed, Problems> {
        Contract::of_value(&self.document(), self.problems.clone(), &Validators::default())
    }
}

/// The name that the schema of a type has in a contract.
#[must_use]
pub fn schema_name<T: JsonSchema>() -> String {
    T::schema_name().into_owned()
}

/// The schema of a type, as a contract has it: without a title and without naming its draft.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.retain(|keyword, _| keyword != "title");
    }
    schema
}

fn with(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}
