use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// What `cargo metadata` says, as far as it matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// Every package of the build, ours and others'.
    pub(crate) packages: Vec<Package>,
    workspace_members: HashSet<String>,
}

/// A package.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    id: String,
    pub(crate) license: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

/// What a package asks for, for its code, its tests or its build.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--all-features"])
            .current_dir(root)
            .output()
            .context("cannot start cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Reads what cargo printed.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).context("cargo metadata printed something unexpected")
    }

    /// Our own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The packages of others.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !self.workspace_members.contains(&package.id))
    }
}
