use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::PathBuf;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;

use crate::failure::Problem;
use crate::output::Output;
use crate::size::Size;

/// The most bytes read for one value: as many as any engine takes.
const VALUE_INPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where a value comes from.
#[derive(Args, Debug)]
pub(crate) struct ValueArgs {
    /// The value; `-` or nothing reads it from stdin, byte for byte
    #[arg(allow_negative_numbers = true)]
    value: Option<OsString>,

    /// Reads the value from a file
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    file: Option<PathBuf>,
}

impl ValueArgs {
    /// A value that is given, in a file, or else on stdin.
    pub(crate) fn new(value: Option<OsString>, file: Option<PathBuf>) -> Self {
        Self { value, file }
    }

    /// Reads the value.
    pub(crate) fn read(self, output: &Output) -> anyhow::Result<Bytes> {
        match (self.value, self.file) {
            (_, Some(path)) => read_file(&path),
            (Some(value), None) if value != "-" => Ok(value.into_encoded_bytes().into()),
            _ => read_stdin(output),
        }
    }
}

fn read_file(path: &PathBuf) -> anyhow::Result<Bytes> {
    let message = || format!("cannot read the value from {}", path.display());
    let unreadable = |error: &io::Error| {
        Problem::unreadable(error, message()).help("name a file that can be read, or give the value itself")
    };
    let file = File::open(path).map_err(|error| {
        let context = unreadable(&error);
        anyhow::Error::new(error).context(context)
    })?;
    // A directory can be opened, but not read; what is too large has its own advice.
    read_limited(file).map_err(|error| {
        let context = error.downcast_ref().map_or_else(|| Problem::invalid(message()), unreadable);
        error.context(context)
    })
}

fn read_stdin(output: &Output) -> anyhow::Result<Bytes> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        output.note("reading the value from the terminal; Ctrl-D ends it");
    }
    read_limited(stdin.lock()).with_context(|| Problem::invalid("cannot read the value from stdin"))
}

fn read_limited(input: impl Read) -> anyhow::Result<Bytes> {
    let mut value = Vec::new();
    input.take(VALUE_INPUT_BYTES_MAX + 1).read_to_end(&mut value)?;
    if value.len() as u64 > VALUE_INPUT_BYTES_MAX {
        let message = format!("it is larger than {}", Size(VALUE_INPUT_BYTES_MAX));
        return Err(Problem::invalid(message).help("store it elsewhere and its address here").into());
    }
    Ok(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_end_is_refused_rather_than_read() {
        let error = read_limited(io::repeat(0)).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 64 MiB");
    }
}
