use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::metadata::Metadata;
use crate::{tidy, tools};

/// Runs everything a change must pass, in the order in which failures are cheapest to find.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = Metadata::load(root)?;
    let mut done: Vec<(String, Cost)> = Vec::new();
    for step in steps(&metadata) {
        println!("── {}: {}", step.name, step.shown());
        let (result, cost) = timed(|| step.run(root));
        result.with_context(|| failure(&step, cost.time))?;
        println!("── {}: ok in {}", step.name, seconds(cost.time));
        done.push((step.name, cost));
    }
    let sum = |of: fn(&Cost) -> Duration| seconds(done.iter().map(|(_, cost)| of(cost)).sum());
    println!("\neverything passed in {}", sum(|cost| cost.time));
    println!("  {:>8}  {:>9}  STEP", "TIME", "PROCESSOR");
    for (name, cost) in &done {
        println!("  {:>8}  {:>9}  {name}", seconds(cost.time), seconds(cost.processor));
    }
    println!("  {:>8}  {:>9}  all", sum(|cost| cost.time), sum(|cost| cost.processor));
    Ok(())
}

/// What a step took.
#[derive(Debug)]
struct Cost {
    time: Duration,
    /// The processor time of all its processes, which says more on a machine that has other work too. Zero where the system
    /// does not tell.
    processor: Duration,
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

/// The crate with a feature that is never checked: RocksDB takes longer to build than everything else.
const BENCH: &str = "pleach-bench";

/// How many tests run at once. Most wait for servers, disks, processes or time, so this is more than the machine has cores.
const TEST_THREADS: &str = "8";

/// The steps. Lints, tests, doc tests and docs select the same packages with the same features, so that cargo compiles every
/// dependency once for all of them. A step with another selection (`--package`, `--exclude`) would compile them again.
/// The benchmarks are run by tests of their crate for the same reason.
fn steps(metadata: &Metadata) -> Vec<Step> {
    let all = selection(metadata);
    let mut steps = vec![
        Step::cargo("format", "fmt --all --check"),
        Step { name: "tidy".into(), job: Job::Tidy },
        Step { name: "tools".into(), job: Job::Tools },
        Step::cargo("lints", &format!("clippy {all} --all-targets -- -D warnings")),
    ];
    steps.extend(feature_steps(metadata));
    steps.extend([
        Step::cargo("tests", &format!("test {all} --all-targets")).with("RUST_TEST_THREADS", TEST_THREADS),
        Step::cargo("doc tests", &format!("test {all} --doc")),
        Step::cargo("docs", &format!("doc {all} --no-deps")).with("RUSTDOCFLAGS", "-D warnings"),
    ]);
    steps
}

/// All our packages with all their features, except those of the benchmarks.
fn selection(metadata: &Metadata) -> String {
    let features: Vec<String> = checked_features(metadata)
        .flat_map(|(package, features)| features.map(move |feature| format!("{package}/{feature}")))
        .collect();
    format!("--workspace --features {}", features.join(","))
}

/// Our packages that have features to check, each with those features.
fn checked_features(metadata: &Metadata) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
    let packages = metadata.members().filter(|package| !package.features.is_empty() && package.name != BENCH);
    packages.map(|package| {
        let features = package.features.keys().map(String::as_str).filter(|feature| *feature != "default");
        (package.name.as_str(), features)
    })
}

/// Each feature alone, and none: a crate must not need a feature that it does not ask for.
fn feature_steps(metadata: &Metadata) -> Vec<Step> {
    let mut steps = Vec::new();
    for (package, features) in checked_features(metadata) {
        let alone = format!("clippy --package {package} --no-default-features");
        steps.push(Step::cargo(format!("{package} without features"), &format!("{alone} -- -D warnings")));
        for feature in features {
            let name = format!("{package} with {feature} alone");
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
fn timed<T>(job: impl FnOnce() -> T) -> (T, Cost) {
    let (started, before) = (Instant::now(), processor_time());
    let result = job();
    let processor = processor_time().saturating_sub(before);
    (result, Cost { time: started.elapsed(), processor })
}

/// The processor time of all children that have ended, and of theirs, from `/proc/self/stat`.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may have spaces; the fields after it are counted from the third.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // Linux shows these in hundredths of a second on every platform.
    Duration::from_millis(ticks * 10)
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
    fn lints_tests_and_docs_select_the_whole_workspace_with_the_same_features() {
        let shown: Vec<_> = steps(&sample()).iter().map(Step::shown).collect();
        for command in [
            "cargo fmt --all --check",
            "cargo xtask tidy",
            "cargo clippy --workspace --features rich/a,rich/b --all-targets -- -D warnings",
            "RUST_TEST_THREADS=\"8\" cargo test --workspace --features rich/a,rich/b --all-targets",
            "cargo test --workspace --features rich/a,rich/b --doc",
            "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --features rich/a,rich/b --no-deps",
        ] {
            assert!(shown.iter().any(|step| step == command), "no step runs {command}: {shown:#?}");
        }
    }

    #[test]
    fn only_the_checks_of_single_features_have_a_selection_of_their_own() {
        let metadata = sample();
        let alone = feature_steps(&metadata).len();
        let others: Vec<_> = steps(&metadata).iter().map(Step::shown).collect();
        let differ = |step: &&String| ["--package", "--exclude"].iter().any(|flag| step.contains(flag));
        assert_eq!(others.iter().filter(differ).count(), alone, "{others:#?}");
    }

    #[test]
    fn the_peer_that_is_slow_to_build_is_never_built() {
        let shown: Vec<_> = steps(&sample()).iter().map(Step::shown).collect();
        assert!(
            !shown.iter().any(|step| step.contains("--all-features") || step.contains("slow")),
            "{shown:?}"
        );
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
