use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// What the test reads instead of its own numbers.
const CASES_VARIABLE: &str = "PLEACH_VERDICTS_CASES";
const FROM_VARIABLE: &str = "PLEACH_VERDICTS_FROM";
const SEED_VARIABLE: &str = "PLEACH_VERDICTS_SEED";

/// How many cases are tried if nobody says how many.
const CASES_DEFAULT: u64 = 100_000;

/// Which cases are tried.
#[derive(Debug, PartialEq, Eq)]
enum Cases {
    /// So many, from this seed on: every case has the next seed.
    Many { from: u64, count: u64 },
    /// The one of this seed.
    One { seed: u64 },
}

/// Plays random contracts and data in a release build: no plan that is called safe may make anything unreadable.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let cases = parse(arguments)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let test = "test --release --package pleach-stores --test verdicts -- campaign:: --nocapture";
    let mut command = Command::new(cargo);
    command.args(test.split_whitespace()).env("RUST_BACKTRACE", "0").current_dir(root);
    match cases {
        Cases::Many { from, count } => {
            command.env(CASES_VARIABLE, count.to_string()).env(FROM_VARIABLE, from.to_string())
        }
        Cases::One { seed } => command.env(SEED_VARIABLE, seed.to_string()),
    };
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("a case failed; the text above has it, made smaller, and the command that plays it again");
    }
    Ok(())
}

/// `--cases N` from `--from SEED` on, or the one of `--seed SEED`.
fn parse(arguments: &[&str]) -> Result<Cases> {
    let (mut from, mut count, mut one) = (0, CASES_DEFAULT, None);
    for pair in arguments.chunks(2) {
        let &[name, value] = pair else { bail!("{} needs a number", pair[0]) };
        let number: u64 = value.parse().with_context(|| format!("{name} needs a number, not `{value}`"))?;
        match name {
            "--cases" => count = number,
            "--from" => from = number,
            "--seed" => one = Some(number),
            other => bail!("cargo xtask verdicts does not know `{other}`"),
        }
    }
    Ok(one.map_or(Cases::Many { from, count }, |seed| Cases::One { seed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_and_seeds_are_numbers() {
        assert_eq!(parse(&[]).unwrap(), Cases::Many { from: 0, count: CASES_DEFAULT });
        assert_eq!(parse(&["--cases", "10", "--from", "5"]).unwrap(), Cases::Many { from: 5, count: 10 });
        assert_eq!(parse(&["--seed", "7"]).unwrap(), Cases::One { seed: 7 });
        for arguments in [&["--cases"][..], &["--cases", "x"], &["--case", "1"]] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
