use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Directories of the root that hold what is made, not written.
const NOT_OURS: [&str; 3] = [".git", ".pleach", "target"];

/// The files of the project: all paths, and the text of those that are text.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Files and directories, relative to the root, with `/` between names.
    paths: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the files under `root`.
    pub(super) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add_directory(root, "")?;
        Ok(tree)
    }

    /// A tree of these files.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
            tree.paths.extend(ends.map(|end| path[..end].to_owned()));
            tree.texts.insert((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    /// Whether there is such a file or directory.
    pub(super) fn has(&self, path: &str) -> bool {
        self.paths.contains(path.trim_end_matches('/'))
    }

    /// Paths and texts of the files that are text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str) -> Result<()> {
        let cannot_read = || format!("cannot read {}", directory.display());
        for entry in fs::read_dir(directory).with_context(cannot_read)? {
            let entry = entry.with_context(cannot_read)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if prefix.is_empty() && NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().with_context(cannot_read)?;
            if kind.is_dir() {
                self.add_directory(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {path}"))?;
                if let Ok(text) = String::from_utf8(bytes) {
                    self.texts.insert(path.clone(), text);
                }
            }
            self.paths.insert(path);
        }
        Ok(())
    }
}
