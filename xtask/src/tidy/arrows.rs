use super::Finding;
use crate::metadata::Metadata;

/// Which of our crates each of our crates may depend on, for its code and for its tests. Arrows point
/// down only: an engine never sees what is built on it, and a door sees the library, not an engine.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("pleach-engine", &[]),
    ("pleach-contract", &["pleach-contract-derive", "pleach-engine"]),
    ("pleach-contract-derive", &[]),
    ("pleach-embedded", &["pleach-engine"]),
    ("pleach-nats", &["pleach-engine", "pleach-nats-testing"]),
    ("pleach-nats-testing", &[]),
    (
        "pleach-stores",
        &["pleach-engine", "pleach-contract", "pleach-embedded", "pleach-nats", "pleach-nats-testing"],
    ),
    (
        "pleach",
        &[
            "pleach-contract",
            "pleach-embedded",
            "pleach-engine",
            "pleach-nats",
            "pleach-nats-testing",
            "pleach-stores",
        ],
    ),
    ("pleach-cli", &["pleach", "pleach-contract", "pleach-nats-testing"]),
    (
        "pleach-bench",
        &[
            "pleach",
            "pleach-contract",
            "pleach-embedded",
            "pleach-engine",
            "pleach-nats",
            "pleach-nats-testing",
            "pleach-stores",
        ],
    ),
    ("xtask", &[]),
];

/// Finds arrows between our crates that the table does not allow.
pub(super) fn check(metadata: &Metadata) -> Vec<Finding> {
    let ours: Vec<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in metadata.members() {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
            let what = "the table in xtask/src/tidy/arrows.rs does not say what this crate may depend on";
            findings.push(Finding::new(&package.name, what));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            if ours.contains(&name) && name != package.name && !allowed.contains(&name) {
                findings.push(Finding::new(&package.name, format!("must not depend on {name}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    fn check_members(members: &[(&str, &[&str])]) -> Vec<String> {
        let package = |(name, dependencies): &(&str, &[&str])| {
            let dependencies: Vec<_> =
                dependencies.iter().map(|name| serde_json::json!({ "name": name })).collect();
            serde_json::json!({"name": name, "id": name, "dependencies": dependencies, "features": {}})
        };
        let packages: Vec<_> = members.iter().map(package).collect();
        let members: Vec<_> = members.iter().map(|(name, _)| *name).collect();
        let json = serde_json::json!({"packages": packages, "workspace_members": members});
        shown(&check(&Metadata::parse(&json.to_string()).unwrap()))
    }

    #[test]
    fn arrows_that_point_down_are_allowed() {
        let found = check_members(&[
            ("pleach-engine", &["bytes"]),
            ("pleach-embedded", &["pleach-engine", "quick_cache"]),
            ("pleach", &["pleach-engine", "pleach-embedded"]),
            ("pleach-cli", &["pleach", "clap"]),
            ("xtask", &["serde_json"]),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn arrows_that_point_up_or_past_the_library_are_found() {
        let found = check_members(&[
            ("pleach-engine", &["pleach"]),
            ("pleach", &[]),
            ("pleach-cli", &["pleach", "pleach-engine"]),
        ]);
        assert_eq!(
            found,
            ["pleach-engine: must not depend on pleach", "pleach-cli: must not depend on pleach-engine"]
        );
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_found() {
        let found = check_members(&[("pleach-extra", &[])]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("pleach-extra: the table"), "{found:?}");
    }
}
