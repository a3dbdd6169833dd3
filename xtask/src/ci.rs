use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::metadata::Metadata;
use crate::{tidy, tools};

/// Runs everything a change must pass, in the order in which failures are cheapest to find.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = Metadata::load(root)?;
    let mut done: Vec<(String, Duration)> = Vec::new();
    for step in steps(&metadata) {
        println!("── {}: {}", step.name, step.shown());
        let (result, took) = timed(|| step.run(root));
        result.with_context(|| failure(&step, took))?;
        println!("── {}: ok in {}", step.name, seconds(took));
        done.push((step.name, took));
    }
    println!("\neverything passed in {}", seconds(done.iter().map(|(_, took)| *took).sum()));
    for (name, took) in done {
        println!("  {:>8}  {name}", seconds(took));
    }
    Ok(())
}

/// One thing that can fail.
#[derive(Debug)]
struct Step {
    name: String,
    job: Job,
}

#[derive(Debug)]
enum Job {
    /// Cargo with these arguments, and with this in its environment.
    Cargo(Vec<String>, Option<(&'static str, &'static str)>),
    Tidy,
    /// Sees to it that the programs are there that the tests start.
    Tools,
}

impl Step {
    fn cargo(name: impl Into<String>, arguments: &str) -> Self {
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        Self { name: name.into(), job: Job::Cargo(arguments, None) }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        if let Job::Cargo(_, variable) = &mut self.job {
            *variable = Some((name, value));
        }
        self
    }

    /// The command that runs this step alone.
    fn shown(&self) -> String {
        match &self.job {
            Job::Cargo(arguments, None) => format!("cargo {}", arguments.join(" ")),
            Job::Cargo(arguments, Some((name, value))) => {
                format!("{name}=\"{value}\" cargo {}", arguments.join(" "))
            }
            Job::Tidy => "cargo xtask tidy".into(),
            Job::Tools => tools::shown(),
        }
    }

    fn run(&self, root: &Path) -> Result<()> {
        let (arguments, variable) = match &self.job {
            Job::Cargo(arguments, variable) => (arguments, variable),
            Job::Tidy => return tidy::run(root),
            Job::Tools => return tools::install(root),
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        // Every step builds a thing once: keeping what an incremental build needs only fills the disk.
        command.args(arguments).current_dir(root).env("CARGO_INCREMENTAL", "0");
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        let status = command.status().context("cannot start cargo")?;
        if !status.success() {
            bail!("it ended with {status}");
        }
        Ok(())
    }
}

/// The crate whose feature is a peer that takes longer to build than all the rest: it is checked without.
const BENCH: &str = "pleach-bench";

/// The crate whose tests mostly wait for servers and for time to pass: more of them run at once.
const NATS: &str = "pleach-nats";

/// Everything but the crate that is slow to build, with all features.
const MOST: &str = "--workspace --exclude pleach-bench --all-features";

/// The steps. All share one target directory and one profile, so that nothing is built twice.
fn steps(metadata: &Metadata) -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("format", "fmt --all --check"),
        Step { name: "tidy".into(), job: Job::Tidy },
        Step { name: "tools".into(), job: Job::Tools },
        Step::cargo("lints", &format!("clippy {MOST} --all-targets -- -D warnings")),
    ];
    steps.extend(feature_steps(metadata));
    steps.extend([
        Step::cargo("tests", &format!("test {MOST} --exclude {NATS} --all-targets")),
        Step::cargo("nats tests", &format!("test --package {NATS} --all-targets -- --test-threads 16")),
        Step::cargo("doc tests", &format!("test {MOST} --doc")),
        Step::cargo("docs", &format!("doc {MOST} --no-deps")).with("RUSTDOCFLAGS", "-D warnings"),
        Step::cargo("bench lints", &format!("clippy --package {BENCH} --all-targets -- -D warnings")),
        Step::cargo("bench tests", &format!("test --package {BENCH}")),
        // A small run checks every answer of every engine; its figures mean nothing.
        Step::cargo("bench", &format!("run --quiet --package {BENCH} -- --small")),
        Step::cargo("bench of state", &format!("run --quiet --package {BENCH} -- state --small")),
        Step::cargo("bench on nats", &format!("run --quiet --package {BENCH} -- nats --small")),
        Step::cargo(
            "bench on a cluster",
            &format!("run --quiet --package {BENCH} -- nats --small --cluster"),
        ),
    ]);
    steps
}

/// Each feature alone, and none: a crate must not need a feature that it does not ask for.
fn feature_steps(metadata: &Metadata) -> Vec<Step> {
    let mut steps = Vec::new();
    for package in metadata.members() {
        if package.features.is_empty() || package.name == BENCH {
            continue;
        }
        let alone = format!("clippy --package {} --no-default-features", package.name);
        steps.push(Step::cargo(
            format!("{} without features", package.name),
            &format!("{alone} -- -D warnings"),
        ));
        for feature in package.features.keys().filter(|feature| *feature != "default") {
            let name = format!("{} with {feature} alone", package.name);
            steps.push(Step::cargo(name, &format!("{alone} --features {feature} -- -D warnings")));
        }
    }
    steps
}

fn failure(step: &Step, took: Duration) -> String {
    format!(
        "{} failed after {}; everything before it passed\n  to see it again: {}",
        step.name,
        seconds(took),
        step.shown()
    )
}

#[allow(clippy::disallowed_methods, reason = "steps are measured for people, with the clock of the machine")]
fn timed<T>(job: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = job();
    (result, started.elapsed())
}

fn seconds(took: Duration) -> String {
    format!("{:.1}s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Metadata {
        Metadata::parse(
            r#"{"packages": [
                {"name": "plain", "id": "plain", "license": "MIT", "dependencies": [], "features": {}},
                {"name": "rich", "id": "rich", "license": "MIT", "dependencies": [],
                 "features": {"default": ["a"], "a": [], "b": []}},
                {"name": "pleach-bench", "id": "bench", "license": "MIT", "dependencies": [],
                 "features": {"slow": []}},
                {"name": "foreign", "id": "foreign", "license": "MIT", "dependencies": [], "features": {"c": []}}],
              "workspace_members": ["plain", "rich", "bench"]}"#,
        )
        .unwrap()
    }

    #[test]
    fn each_feature_of_our_own_crates_is_checked_alone() {
        let shown: Vec<_> = feature_steps(&sample()).iter().map(Step::shown).collect();
        assert_eq!(
            shown,
            [
                "cargo clippy --package rich --no-default-features -- -D warnings",
                "cargo clippy --package rich --no-default-features --features a -- -D warnings",
                "cargo clippy --package rich --no-default-features --features b -- -D warnings",
            ]
        );
    }

    #[test]
    fn tests_doc_tests_and_docs_cover_the_whole_workspace() {
        let shown: Vec<_> = steps(&sample()).iter().map(Step::shown).collect();
        for command in [
            "cargo fmt --all --check",
            "cargo clippy --workspace --exclude pleach-bench --all-features --all-targets -- -D warnings",
            "cargo test --workspace --exclude pleach-bench --all-features --exclude pleach-nats --all-targets",
            "cargo test --package pleach-nats --all-targets -- --test-threads 16",
            "cargo test --workspace --exclude pleach-bench --all-features --doc",
            "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --exclude pleach-bench --all-features --no-deps",
            "cargo clippy --package pleach-bench --all-targets -- -D warnings",
            "cargo test --package pleach-bench",
            "cargo run --quiet --package pleach-bench -- --small",
            "cargo run --quiet --package pleach-bench -- state --small",
            "cargo run --quiet --package pleach-bench -- nats --small",
            "cargo xtask tidy",
        ] {
            assert!(shown.iter().any(|step| step == command), "no step runs {command}");
        }
    }

    #[test]
    fn the_peer_that_is_slow_to_build_is_never_built() {
        let shown: Vec<_> = steps(&sample()).iter().map(Step::shown).collect();
        for step in shown.iter().filter(|step| step.contains("--all-features")) {
            assert!(step.contains("--exclude pleach-bench"), "{step}");
        }
        assert!(!shown.iter().any(|step| step.contains("slow")), "{shown:?}");
    }

    #[test]
    fn a_failing_step_stops_with_the_command_that_shows_it_again() {
        let step = Step::cargo("lints", "no-such-subcommand-of-cargo");
        let error =
            step.run(Path::new(".")).with_context(|| failure(&step, Duration::from_secs(2))).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("lints failed after 2.0s"), "{text}");
        assert!(text.contains("to see it again: cargo no-such-subcommand-of-cargo"), "{text}");
    }
}
