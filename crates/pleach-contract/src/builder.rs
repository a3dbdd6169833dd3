use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::document::{Contract, ContractKind, FORMAT, Parsed, StoreKind};
use crate::problem::Problems;

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
}

impl ContractBuilder {
    /// A contract of this id.
    #[must_use]
    pub fn new(id: &str, kind: ContractKind) -> Self {
        let mut head = Map::new();
        head.insert("format".into(), FORMAT.into());
        head.insert("id".into(), id.into());
        head.insert("kind".into(), json!(kind));
        Self { head, schemas: Map::new(), state: Map::new(), kv: Map::new() }
    }

    /// Says what it is called and what it is for.
    #[must_use]
    pub fn describe(mut self, display_name: &str, description: &str) -> Self {
        self.head.insert("displayName".into(), display_name.into());
        self.head.insert("description".into(), description.into());
        self
    }

    /// Adds the schema of a type under the type's name.
    #[must_use]
    pub fn schema<T: JsonSchema>(self) -> Self {
        let name = T::schema_name().into_owned();
        self.schema_value(&name, schema_of::<T>())
    }

    /// Adds a schema under a name.
    #[must_use]
    pub fn schema_value(mut self, name: &str, schema: Value) -> Self {
        self.schemas.insert(name.into(), schema);
        self
    }

    /// Adds a state store; `more` has its other fields, as the document names them.
    #[must_use]
    pub fn state(mut self, name: &str, kind: StoreKind, schema: &str, more: Value) -> Self {
        let store = with(json!({"kind": kind, "schema": {"schema": schema}}), more);
        self.state.insert(name.into(), store);
        self
    }

    /// Adds a KV resource; `more` has its other fields, as the document names them.
    #[must_use]
    pub fn kv(mut self, alias: &str, purpose: &str, schema: &str, more: Value) -> Self {
        let resource = with(json!({"purpose": purpose, "schema": {"schema": schema}}), more);
        self.kv.insert(alias.into(), resource);
        self
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
        Contract::from_value(&self.document())
    }
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
