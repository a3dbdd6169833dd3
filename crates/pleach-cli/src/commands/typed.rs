use pleach::stores::{Read, Service};
use pleach::{BucketName, ErrorKind, Key};
use pleach_contract::ContractId;
use serde_json::{Value, json};

use crate::app::App;
use crate::contract::explain_key;
use crate::failure::Problem;
use crate::output::Output;
use crate::record::JSON_VERSION;

/// An entry as the contract of its bucket sees it.
struct Shown {
    revision: u64,
    version: String,
    /// The version that is written now, if the entry has an older one.
    current_version: Option<String>,
    writer: Option<String>,
    value: Value,
}

/// Shows an entry of a bucket that a contract owns. A value that the contract does not allow is an error.
pub(super) async fn show(app: &mut App, bucket: &BucketName, key: &Key) -> anyhow::Result<()> {
    let store = app.store().await?;
    let contracts = store.contracts();
    let Some(owner) = contracts.owner(bucket).await? else {
        let problem =
            Problem::new(ErrorKind::Unsupported, format!("no contract says what bucket {bucket} holds"));
        return Err(problem.help("leave out --typed, or put the bucket under a contract: `pleach contract plan FILE --adopt ALIAS=BUCKET`").into());
    };
    let lineage = ContractId::parse(&owner.lineage);
    let contract = match &lineage {
        Some(lineage) => contracts.desired(lineage).await?,
        None => None,
    };
    let Some(contract) = contract else {
        return Err(Problem::not_found(format!("the contract {} is not in force", owner.lineage)).into());
    };
    let service: Service = store.service(&contract).await?;
    let kv = service.kv(&owner.alias)?;
    let keyspace = kv.keyspace_of(key)?;
    let shown = match keyspace.get(key).await? {
        None => return Err(Problem::not_found(format!("{bucket}/{key} has no value")).into()),
        Some(Read::Current(typed)) => Shown {
            revision: typed.revision.get(),
            version: keyspace.version().to_owned(),
            current_version: None,
            writer: typed.envelope().map(|envelope| envelope.writer),
            value: typed.value,
        },
        Some(Read::MigrationRequired(old)) => Shown {
            revision: old.revision.get(),
            writer: old.envelope().map(|envelope| envelope.writer),
            version: old.version,
            current_version: Some(old.current_version),
            value: old.value,
        },
    };
    let name = keyspace.name().to_owned();
    if app.output.is_json() {
        return app.output.object(&json!({
            "v": JSON_VERSION, "bucket": bucket.as_str(), "key": key.as_str(), "revision": shown.revision,
            "lineage": owner.lineage, "resource": owner.alias, "keyspace": name, "version": shown.version,
            "migrationRequired": shown.current_version.is_some(), "writer": shown.writer, "value": shown.value,
        }));
    }
    let heading = format!("{} {} {name}", owner.lineage, owner.alias);
    print(&heading, &shown, &mut app.output)?;
    let grammar = contract.resources.kv.get(&owner.alias).and_then(|resource| resource.keyspaces.get(&name));
    if let Some(keyspace) = grammar {
        explain_key::print_parts(&keyspace.key, key.as_str(), &mut app.output)?;
    }
    app.output.line(format_args!("{:#}", shown.value))
}

fn print(heading: &str, shown: &Shown, output: &mut Output) -> anyhow::Result<()> {
    let heading = output.paint().bold(heading);
    let Shown { revision, version, .. } = shown;
    let older = match &shown.current_version {
        Some(current) => format!(", migration required: {current} is written now"),
        None => String::new(),
    };
    output.line(format_args!("{heading}  revision {revision}, version {version}{older}"))
}
