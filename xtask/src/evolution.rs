use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// How many cases the test tries instead of its own number, and of which seed.
const CASES_VARIABLE: &str = "PLEACH_EVOLUTION_CASES";
const SEED_VARIABLE: &str = "PLEACH_EVOLUTION_SEED";

/// How many cases are tried if nobody says how many.
const CASES_DEFAULT: u64 = 100_000;

/// How many cases have one seed: a failure is told at the end of them.
const CHUNK: u64 = 50_000;

/// Tries the rules of evolution against the validator in a release build, with random schemas and values.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let (mut seed, mut left) = parse(arguments)?;
    while left > 0 {
        let cases = left.min(CHUNK);
        println!("── {cases} cases of seed {seed}");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let test =
            "test --release --package pleach-contract --lib evolution::tests::soundness -- --nocapture";
        let status = Command::new(cargo)
            .args(test.split_whitespace())
            .env(CASES_VARIABLE, cases.to_string())
            .env(SEED_VARIABLE, seed.to_string())
            .env("RUST_BACKTRACE", "0")
            .current_dir(root)
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            bail!(
                "a case failed; the text above says which\n  to see it again: cargo xtask evolution --cases {cases} --from {seed}"
            );
        }
        left -= cases;
        seed += 1;
    }
    Ok(())
}

/// The first seed and how many cases: `--cases N` from `--from SEED` on.
fn parse(arguments: &[&str]) -> Result<(u64, u64)> {
    let (mut from, mut cases) = (0, CASES_DEFAULT);
    for pair in arguments.chunks(2) {
        let &[name, value] = pair else { bail!("{} needs a number", pair[0]) };
        let number: u64 = value.parse().with_context(|| format!("{name} needs a number, not `{value}`"))?;
        match name {
            "--cases" => cases = number,
            "--from" => from = number,
            other => bail!("cargo xtask evolution does not know `{other}`"),
        }
    }
    Ok((from, cases))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_and_seeds_are_numbers() {
        assert_eq!(parse(&[]).unwrap(), (0, CASES_DEFAULT));
        assert_eq!(parse(&["--cases", "10", "--from", "5"]).unwrap(), (5, 10));
        for arguments in [&["--cases"][..], &["--cases", "x"], &["--case", "1"]] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
