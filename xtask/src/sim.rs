use std::ops::Range;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The seeds that the test runs instead of its own: "first..end".
const SEEDS_VARIABLE: &str = "PLEACH_SIM_SEEDS";

/// How many seeds run if nobody says how many.
const SEEDS_DEFAULT: u64 = 20_000;

/// How many seeds run in one process: a failure is told at the end of it.
const CHUNK: u64 = 20_000;

/// Runs the simulation of the embedded engine in a release build, with the seeds that `arguments` name.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let seeds = parse(arguments)?;
    let mut first = seeds.start;
    while first < seeds.end {
        let end = seeds.end.min(first.saturating_add(CHUNK));
        println!("── seeds {first} to {}", end - 1);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let test = "test --release --package pleach-embedded --lib --quiet";
        let status = Command::new(cargo)
            .args(test.split_whitespace())
            .arg("whatever_fails_the_store_keeps_what_it_acknowledged")
            .env(SEEDS_VARIABLE, format!("{first}..{end}"))
            .env("RUST_BACKTRACE", "0")
            .current_dir(root)
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            bail!("a seed failed; the text above says which");
        }
        first = end;
    }
    Ok(())
}

/// The seeds to run: `--seed S` for one, or `--seeds N` from `--from S` on.
fn parse(arguments: &[&str]) -> Result<Range<u64>> {
    let (mut from, mut count) = (0_u64, SEEDS_DEFAULT);
    for pair in arguments.chunks(2) {
        let &[name, value] = pair else { bail!("{} needs a number", pair[0]) };
        let number: u64 = value.parse().with_context(|| format!("{name} needs a number, not `{value}`"))?;
        match name {
            "--seeds" => count = number,
            "--from" => from = number,
            "--seed" => (from, count) = (number, 1),
            other => bail!("cargo xtask sim does not know `{other}`"),
        }
    }
    Ok(from..from.saturating_add(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_named_one_by_one_or_by_their_number() {
        assert_eq!(parse(&[]).unwrap(), 0..SEEDS_DEFAULT);
        assert_eq!(parse(&["--seeds", "10"]).unwrap(), 0..10);
        assert_eq!(parse(&["--seeds", "10", "--from", "5"]).unwrap(), 5..15);
        assert_eq!(parse(&["--seed", "7"]).unwrap(), 7..8);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for arguments in [&["--seed"][..], &["--seed", "x"], &["--sseeds", "1"]] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
