use std::fmt;

use pleach_contract::Contract;
use pleach_contract::key::Grammar;
use serde::Serialize;

use crate::failure::Problem;

/// Something in a contract that has keys of its own.
#[derive(Debug, Serialize)]
pub(super) struct Member {
    resource: String,
    kind: &'static str,
    name: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {} of {}", self.kind, self.name, self.resource)
    }
}

/// Everything in a contract that has keys, or in one of its resources. There is at least one.
pub(super) fn members(
    contract: &Contract,
    resource: Option<&str>,
    file: &str,
) -> anyhow::Result<Vec<(Member, Grammar)>> {
    let all = &contract.resources.kv;
    if let Some(alias) = resource.filter(|alias| !all.contains_key(*alias)) {
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        let problem = Problem::invalid(format!("{file} has no resource {alias}"));
        return Err(problem.help(format!("its resources are: {}", known.join(", "))).into());
    }
    let mut found = Vec::new();
    for (alias, resource) in all.iter().filter(|(alias, _)| resource.is_none_or(|wanted| wanted == *alias)) {
        let mut add = |kind, name: &str, key: &str| {
            let member = Member { resource: alias.clone(), kind, name: name.to_owned() };
            // A contract that was read has no key that is not a grammar.
            found.extend(Grammar::parse(key).ok().map(|grammar| (member, grammar)));
        };
        resource.keyspaces.iter().for_each(|(name, keyspace)| add("keyspace", name, &keyspace.key));
        resource.indexes.iter().for_each(|(name, index)| add("index", name, &index.key));
        for (name, relationship) in &resource.relationships {
            add("relationship", name, &relationship.forward);
            add("relationship", name, &relationship.reverse);
        }
        resource.counters.iter().for_each(|(name, counter)| add("counter", name, &counter.key));
    }
    if found.is_empty() {
        let problem = Problem::invalid(format!("{file} does not say what keys look like"));
        return Err(problem.help("declare keyspaces, or give a grammar with --grammar").into());
    }
    Ok(found)
}
