use super::contract::{Added, Comparison, Versions};
use super::schema::Root;
use super::{Diff, Finding, FindingCode, Question, Subject};
use crate::document::Contract;
use crate::text::child;

/// Compares a contract with every one that was accepted before it, in their order, the last one last.
///
/// What an older contract left behind may still be stored. A finding that is not against the last one says against which
/// it is. A property whose name was used before and dropped in between is told too.
#[must_use]
pub fn diff_over(older: &[&Contract], new: &Contract) -> Diff {
    let Some((last, earlier)) = older.split_last() else { return Diff::default() };
    let newest = Comparison::of(last, new);
    let (mut findings, mut more) = (newest.findings, newest.more);
    for old in earlier {
        let found = Comparison::of(old, new);
        more |= found.more;
        let against = old.digest();
        let of_old = |finding| Finding { against: Some(against.clone()), ..finding };
        let reused = newest.added.iter().filter_map(|added| reused(added, old, new));
        findings.extend(found.findings.into_iter().chain(reused).map(of_old));
    }
    Diff::of(findings, more)
}

/// What was added in the last step and had been there before.
fn reused(added: &Added, old: &Contract, new: &Contract) -> Option<Finding> {
    let before = root(old, &added.subject)?.find(&added.instance)?;
    let after = root(new, &added.subject)?.find(&added.instance)?;
    let name = added.instance.rsplit('/').next().unwrap_or_default();
    let (code, message) = if before == after {
        (FindingCode::PropertyReturned, format!("the property `{name}` was removed and is back"))
    } else {
        let message = format!("the name `{name}` was used before, and for something else");
        (FindingCode::PropertyReused, message)
    };
    let question = Question::Carries { pointer: added.instance.clone() };
    Some(Finding::new(code, added.path.clone(), added.subject.clone(), message).asking(question))
}

/// The schema of the values that a finding is about.
fn root<'c>(contract: &'c Contract, subject: &Subject) -> Option<Root<'c>> {
    let (versions, version) = match subject {
        Subject::Contract => return None,
        Subject::State { store, version } => (Versions::of_state(contract.state.get(store)?), version),
        Subject::Kv { alias, keyspace: None, version } => {
            (Versions::of_resource(contract.resources.kv.get(alias)?), version)
        }
        Subject::Kv { alias, keyspace: Some(name), version } => {
            (Versions::of_keyspace(contract.resources.kv.get(alias)?.keyspaces.get(name)?), version)
        }
    };
    let name = versions.schema_of(version.as_deref()?)?;
    Some(Root { schema: contract.schemas.get(name)?, path: child("/schemas", name) })
}
