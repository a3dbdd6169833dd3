use pleach_contract::{Contract, KvResource};
use pleach_engine::Capabilities;

use crate::plan::Shortfall;

/// What a contract declares and is not kept: first what the engine cannot do, then what nothing maintains yet.
pub(crate) fn shortfalls(contract: &Contract, can: &Capabilities) -> Vec<Shortfall> {
    let mut found = incapacities(contract, can);
    found.extend(contract.resources.kv.iter().flat_map(|(alias, resource)| unmaintained(alias, resource)));
    found
}

/// Members that a contract declares and that Pleach does not maintain. They block nothing: their keys are reserved, and a
/// contract that declares them now is ready for the day they are kept.
fn unmaintained(alias: &str, resource: &KvResource) -> Vec<Shortfall> {
    let indexes = resource.indexes.keys().map(|name| ("index", "indexes", name));
    let relationships = resource.relationships.keys().map(|name| ("relationship", "relationships", name));
    let counters = resource.counters.keys().map(|name| ("counter", "counters", name));
    let all = indexes.chain(relationships).chain(counters);
    let short = |(kind, field, name): (&str, &str, &String)| Shortfall {
        path: format!("/resources/kv/{alias}/{field}/{name}"),
        message: format!("{kind} `{name}` is declared but Pleach does not maintain it yet"),
        fix: format!("do not read through it: keep your own {kind} for now, or leave it out"),
        blocks: false,
    };
    all.map(short).collect()
}

/// What of a contract an engine cannot keep.
fn incapacities(contract: &Contract, can: &Capabilities) -> Vec<Shortfall> {
    let mut found = Vec::new();
    for (alias, resource) in &contract.resources.kv {
        let at = |rest: &str| format!("/resources/kv/{alias}{rest}");
        let mut short = |path: String, message: String, fix: &str| {
            found.push(Shortfall { path, message, fix: fix.to_owned(), blocks: true });
        };
        if resource.history > u64::from(can.history_max) {
            let message =
                format!("the engine keeps {} records of a key, not {}", can.history_max, resource.history);
            short(at("/history"), message, "ask for a shorter history");
        }
        if let Some(bytes) = resource.max_value_bytes.filter(|bytes| *bytes > u64::from(can.value_bytes_max))
        {
            let message = format!("the engine takes values of {} bytes, not {bytes}", can.value_bytes_max);
            short(at("/maxValueBytes"), message, "ask for smaller values, or leave the limit to the engine");
        }
        let resolution = u64::try_from(can.ttl_resolution.as_millis()).unwrap_or(u64::MAX);
        let ttl = |path: String, ms: u64| {
            let message = format!("the engine counts time in {resolution} ms, and {ms} ms is shorter");
            (ms > 0 && ms < resolution).then_some((path, message))
        };
        let own = resource.keyspaces.iter().filter(|(_, keyspace)| keyspace.ttl_ms != resource.ttl_ms);
        let own: Vec<_> =
            own.map(|(name, keyspace)| (at(&format!("/keyspaces/{name}/ttlMs")), keyspace.ttl_ms)).collect();
        for (path, ms) in std::iter::once((at("/ttlMs"), resource.ttl_ms)).chain(own.iter().cloned()) {
            if let Some((path, message)) = ttl(path, ms) {
                short(path, message, "ask for a longer time to live");
            }
        }
        if resource.history > 1 && !can.expired_history {
            for (path, _) in own.iter().filter(|(_, ms)| *ms > 0) {
                let message =
                    "the engine lets no value expire alone in a bucket that keeps history".to_owned();
                short(path.clone(), message, "give the whole resource this `ttlMs`, or a history of 1");
            }
        }
        if !resource.atomic.is_empty() && can.batch_operations_max < 2 {
            let message = "the engine commits nothing together".to_owned();
            short(at("/atomic"), message, "choose another engine");
        }
    }
    found
}
