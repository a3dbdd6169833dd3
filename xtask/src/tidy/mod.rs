mod arrows;
mod leftovers;
mod licences;
mod machine;
mod paths;
mod reasons;
mod sizes;
mod tree;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::metadata::Metadata;
use tree::Tree;

/// Checks the rules of the house and lists everything that breaks one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let findings = findings(&Metadata::load(root)?, &Tree::load(root)?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: nothing to mend");
            Ok(())
        }
        1 => bail!("tidy found one thing to mend"),
        count => bail!("tidy found {count} things to mend"),
    }
}

fn findings(metadata: &Metadata, tree: &Tree) -> Vec<Finding> {
    [
        arrows::check(metadata),
        licences::check(metadata),
        sizes::check(tree),
        machine::check(tree),
        leftovers::check(tree),
        reasons::check(tree),
        paths::check(tree),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    place: String,
    what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// A finding at a line, counted from 0 as `enumerate` does.
    fn at_line(path: &str, index: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{path}:{}", index + 1), what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

#[cfg(test)]
fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}
