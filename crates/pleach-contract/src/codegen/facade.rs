use std::collections::BTreeMap;

use super::keys::{self, KeyField};
use super::names::{Names, pascal, snake};
use super::source::Source;
use crate::document::{Access, Contract, KvResource};
use crate::key::Grammar;

/// Writes the type that gives typed access to all resources of a contract, and one for each of them.
#[derive(Debug)]
pub(super) struct Facade<'c> {
    pub(super) contract: &'c Contract,
    /// The type of each schema, by its name.
    pub(super) named: &'c BTreeMap<String, String>,
    pub(super) name: String,
}

/// A resource as the facade has it.
#[derive(Debug)]
struct Store<'c> {
    alias: &'c str,
    resource: &'c KvResource,
    field: String,
    typed: String,
}

/// A keyspace as its store has it; without a name if the resource declares none.
#[derive(Debug)]
struct Space {
    declared: Option<String>,
    field: String,
    value: String,
    grammar: Option<Grammar>,
}

impl Facade<'_> {
    pub(super) fn write(&self, source: &mut Source, names: &mut Names) {
        let mut fields = Names::default();
        let kv = self.contract.resources.kv.iter();
        let stores = kv.map(|(alias, resource)| Store {
            alias,
            resource,
            field: fields.take(snake(alias)),
            typed: names.take(format!("{}Store", pascal(alias))),
        });
        let stores: Vec<Store<'_>> = stores.collect();
        self.write_facade(source, &stores);
        for store in &stores {
            self.write_store(source, store, names);
        }
    }

    fn write_facade(&self, source: &mut Source, stores: &[Store<'_>]) {
        let name = &self.name;
        source.line("");
        source.doc(&self.contract.description);
        source.line("#[derive(Clone, Debug)]");
        if stores.is_empty() {
            source.line(&format!("pub struct {name};"));
        } else {
            source.open(&format!("pub struct {name} {{"));
            for store in stores {
                source.doc(&store.resource.purpose);
                source.line(&format!("pub {}: {},", store.field, store.declared()));
            }
            source.close("}");
        }
        source.line("");
        source.open(&format!("impl {name} {{"));
        source.doc("The id of the contract.");
        source.line(&format!("pub const ID: &'static str = {:?};", self.contract.id.as_str()));
        source.doc("The digest of the contract that this code was made of.");
        source.line(&format!("pub const DIGEST: &'static str = {:?};", self.contract.digest().as_str()));
        if !stores.is_empty() {
            write_bind(source, stores);
        }
        source.close("}");
    }

    fn write_store(&self, source: &mut Source, store: &Store<'_>, names: &mut Names) {
        let mut methods = Names::with(&["bind", "store"]);
        let spaces = self.spaces(store.resource, &mut methods);
        let typed = &store.typed;
        source.line("");
        source.doc(&store.resource.purpose);
        source.line("#[derive(Clone, Debug)]");
        source.open(&format!("pub struct {typed} {{"));
        source.line("store: stores::KvStore,");
        for space in &spaces {
            source.line(&format!("{}: stores::Keyspace<{}>,", space.field, space.value));
        }
        source.close("}");
        source.line("");
        source.open(&format!("impl {typed} {{"));
        source.open("fn bind(store: stores::KvStore) -> Result<Self, stores::KvError> {");
        source.line(&format!("let store = store.of_contract({}::DIGEST)?;", self.name));
        let bound = spaces.iter().map(|space| match &space.declared {
            Some(name) => format!("{}: store.keyspace({name:?})?", space.field),
            None => format!("{}: store.entries()?", space.field),
        });
        let bound: Vec<String> = bound.chain(["store".to_owned()]).collect();
        source.line(&format!("Ok(Self {{ {} }})", bound.join(", ")));
        source.close("}");
        source.line("");
        source.doc("The resource itself, for batches and for retention.");
        source.open("pub fn store(&self) -> &stores::KvStore {");
        source.line("&self.store");
        source.close("}");
        for space in &spaces {
            write_space(source, space);
            self.write_accesses(source, store.resource, space, &mut methods);
        }
        source.close("}");
        for space in &spaces {
            if let (Some(name), Some(grammar)) = (&space.declared, &space.grammar) {
                let key = names.take(format!("{}{}Key", pascal(store.alias), pascal(name)));
                keys::write(source, &key, name, grammar);
            }
        }
    }

    fn spaces(&self, resource: &KvResource, methods: &mut Names) -> Vec<Space> {
        let typed =
            |schema: &str| self.named.get(schema).cloned().unwrap_or_else(|| "serde_json::Value".into());
        let declared = resource.keyspaces.iter().map(|(name, keyspace)| Space {
            declared: Some(name.clone()),
            field: methods.take(snake(name)),
            value: typed(&keyspace.schema.schema),
            grammar: Grammar::parse(&keyspace.key).ok(),
        });
        let mut spaces: Vec<Space> = declared.collect();
        if spaces.is_empty() {
            let (field, value) = (methods.take("entries".into()), typed(&resource.schema.schema));
            spaces.push(Space { declared: None, field, value, grammar: None });
        }
        spaces
    }

    fn write_accesses(&self, source: &mut Source, resource: &KvResource, space: &Space, methods: &mut Names) {
        let (Some(name), Some(grammar)) = (&space.declared, &space.grammar) else { return };
        let Some(keyspace) = resource.keyspaces.get(name) else { return };
        for (access_name, access) in &keyspace.access {
            let plain = space.field.trim_start_matches("r#");
            let method = methods.take(format!("{plain}_{}", snake(access_name)));
            write_access(source, space, (access_name.as_str(), access), grammar, &method);
        }
    }
}

impl Store<'_> {
    fn declared(&self) -> String {
        if self.resource.required { self.typed.clone() } else { format!("Option<{}>", self.typed) }
    }
}

fn write_bind(source: &mut Source, stores: &[Store<'_>]) {
    source.line("");
    source.doc("Binds the code to the resources of a service.");
    source.doc("");
    source.doc("# Errors");
    source.doc("If the service is of another contract.");
    source.open("pub fn bind(service: &stores::Service) -> Result<Self, stores::KvError> {");
    source.open("Ok(Self {");
    for store in stores {
        let (field, typed, alias) = (&store.field, &store.typed, store.alias);
        let bound = match store.resource.required {
            true => format!("{typed}::bind(service.kv({alias:?})?)?"),
            false => format!("service.find({alias:?}).map({typed}::bind).transpose()?"),
        };
        source.line(&format!("{field}: {bound},"));
    }
    source.close("})");
    source.close("}");
}

fn write_space(source: &mut Source, space: &Space) {
    source.line("");
    match &space.declared {
        Some(name) => source.doc(&format!("The keyspace `{name}`.")),
        None => source.doc("All its entries."),
    }
    source.open(&format!("pub fn {}(&self) -> &stores::Keyspace<{}> {{", space.field, space.value));
    source.line(&format!("&self.{}", space.field));
    source.close("}");
}

fn write_access(
    source: &mut Source,
    space: &Space,
    (name, access): (&str, &Access),
    grammar: &Grammar,
    method: &str,
) {
    // Each segment has its name as an argument, unless that is taken.
    let mut names = Names::with(&["self", "options"]);
    let fields = keys::fields(grammar);
    let given = access.given.iter().filter_map(|segment| fields.iter().find(|field| field.is(segment)));
    let given: Vec<(&KeyField<'_>, String)> =
        given.map(|field| (field, names.take(field.name.trim_start_matches("r#").to_owned()))).collect();
    let arguments: String =
        given.iter().map(|(field, name)| format!("{name}: {}, ", field.argument())).collect();
    let values: Vec<String> = given.iter().map(|(field, name)| field.value(name)).collect();
    source.line("");
    let range = access.range.as_ref().map_or(String::new(), |range| format!(", in the order of `{range}`"));
    source.doc(&format!("A page of the access path `{name}`{range}: at most {} entries.", access.limit));
    source.doc("");
    source.doc("# Errors");
    source.doc("What is wrong with a value or an option, or what the engine could not do.");
    source.line(&format!("pub async fn {method}(&self, {arguments}options: stores::QueryOptions<'_>)"));
    source.open(&format!("    -> Result<stores::QueryPage<{}>, stores::KvError> {{", space.value));
    let given = format!("&[{}]", values.join(", "));
    source.line(&format!("self.{}.query_with({name:?}, {given}, options).await", space.field));
    source.close("}");
}
