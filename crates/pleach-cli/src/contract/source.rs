use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use pleach_contract::{Contract, DOCUMENT_BYTES_MAX, Notation, Parsed, Problems};

use crate::failure::Problem;

/// A contract as it was found in a file or on stdin.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file as it was named; `-` is stdin.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) notation: Notation,
}

impl Source {
    /// Reads a file, or stdin for `-`.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let bytes = if path == Path::new("-") {
            limited(io::stdin().lock()).context(Problem::invalid("cannot read the contract from stdin"))?
        } else {
            let read = File::open(path).and_then(limited);
            read.map_err(|error| {
                let problem = Problem::unreadable(&error, format!("cannot read the contract {name}"));
                anyhow::Error::new(error)
                    .context(problem.help("name a file that can be read, or `-` for stdin"))
            })?
        };
        Ok(Self::of(name, path, bytes))
    }

    /// A text that was found elsewhere, in the notation that `path` says.
    pub(super) fn of(name: String, path: &Path, bytes: Vec<u8>) -> Self {
        let notation = notation(path, &bytes);
        Self { name, path: path.to_owned(), bytes, notation }
    }

    /// What the contract is, or everything that is wrong with it.
    pub(crate) fn parse(&self) -> Result<Parsed, Problems> {
        Contract::parse(&self.bytes, self.notation)
    }

    /// A line of it, from 1, if it is one that can be shown.
    pub(crate) fn line(&self, number: usize) -> Option<&str> {
        const SHOWN_CHARS_MAX: usize = 200;
        let line = std::str::from_utf8(&self.bytes).ok()?.lines().nth(number.checked_sub(1)?)?;
        (line.chars().count() <= SHOWN_CHARS_MAX && !line.trim().is_empty()).then_some(line)
    }
}

/// Reads one byte more than a contract may have, so that a larger one is told apart.
fn limited(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// By the name of the file, else by how it begins.
fn notation(path: &Path, bytes: &[u8]) -> Notation {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Notation::Json,
        Some("yaml" | "yml") => Notation::Yaml,
        _ => match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => Notation::Json,
            _ => Notation::Yaml,
        },
    }
}
