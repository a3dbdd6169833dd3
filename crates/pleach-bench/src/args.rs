use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::keys::KEYS_MAX;
use crate::nats::NatsRow;
use crate::peers::{EngineName, Layout};
use crate::value::VALUE_BYTES_MIN;
use crate::work::Work;

/// Runs the same work on Pleach and on its peers, side by side, and prints how they compare.
///
/// Every repetition gives each engine a fresh directory and all of the work, one engine after the other; figures
/// are medians over the repetitions, and ratios are the median of Pleach divided by the median of the peer.
#[derive(Debug, Parser)]
#[command(name = "pleach-bench", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Draws charts from figures that `--json` wrote earlier
    Chart {
        /// The figures
        file: PathBuf,
        /// Where the charts go
        directory: PathBuf,
    },
    /// Measures what contracts cost: building and reading keys
    Contract(ContractArguments),
    /// Measures what State costs: beside a plain bucket, and as a map grows
    State(StateArguments),
    /// Measures how the costs of Pleach grow: with keys, buckets, watchers and the size of values
    Scale(ScaleArguments),
    /// Measures Pleach on NATS side by side with the plain key-value client of async-nats, on one server
    Nats(NatsArguments),
    /// Puts on NATS with and without the check of a fence
    Fence(FenceArguments),
    /// What `reopen` starts and kills
    #[command(hide = true)]
    Tail(TailArguments),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArguments {
    /// Which engines, with commas between [default: all that were compiled in]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) engines: Vec<EngineName>,
    /// Which work, with commas between; see --list [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) work: Vec<Work>,
    /// Peers laid out to make the same promises as Pleach, or as plain maps
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) table: Table,
    /// How long values are, with commas between
    #[arg(long, value_delimiter = ',', value_name = "BYTES", default_values_t = [100, 1024], value_parser = value_bytes)]
    pub(crate) value: Vec<usize>,
    /// How often everything is repeated [default: 3, with --small 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=99))]
    pub(crate) repeat: Option<u32>,
    /// Tiny sizes, and everything that is read is checked: to see that it works, not how fast
    #[arg(long)]
    pub(crate) small: bool,
    /// How many keys there are [default: 1,000,000; 300,000 for values from 512 bytes on]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(300..=KEYS_MAX))]
    pub(crate) keys: Option<u64>,
    /// Also writes all figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also draws charts of the ratios into this directory, as SVG
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) charts: Option<PathBuf>,
    /// Where the stores go, which must be on a disk and not in memory [default: a temporary directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,
    /// Lists the work and the engines, and does nothing
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ScaleArguments {
    /// How many keys to load, smallest first, with commas between
    #[arg(long, value_delimiter = ',', value_name = "N", default_values_t = [1_000_000, 10_000_000],
          value_parser = value_parser!(u64).range(300..=KEYS_MAX))]
    pub(crate) keys: Vec<u64>,
    /// How long the values of those keys are
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = value_bytes)]
    pub(crate) value: usize,
    /// How many buckets
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) buckets: u64,
    /// How many watchers
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) watchers: u64,
    /// How large the large values are, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = value_parser!(u64).range(1..=1024))]
    pub(crate) large: u64,
    /// How long each measurement takes
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = time)]
    pub(crate) seconds: f64,
    /// Where the stores go [default: a temporary directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FenceArguments {
    /// Three servers, each of which has every key, instead of one
    #[arg(long)]
    pub(crate) cluster: bool,
    /// How long each measurement takes [default: 3, with --small 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    pub(crate) seconds: Option<f64>,
    /// Everything short: to see that it works, not how fast
    #[arg(long)]
    pub(crate) small: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct NatsArguments {
    /// How many keys there are [default: 1,000,000; with --small 2,000]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(2000..=KEYS_MAX))]
    pub(crate) keys: Option<u64>,
    /// How long values are
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = value_bytes)]
    pub(crate) value: usize,
    /// Three servers, each of which has every key, instead of one
    #[arg(long)]
    pub(crate) cluster: bool,
    /// How long each measurement takes [default: 3, with --small 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    pub(crate) seconds: Option<f64>,
    /// How often each is repeated [default: 3, with --small 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=99))]
    pub(crate) repeat: Option<u32>,
    /// Which rows, by their names in the JSON, with commas between [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) rows: Vec<NatsRow>,
    /// Gives Pleach threads of its own instead of those that the callers run on
    #[arg(long)]
    pub(crate) own_threads: bool,
    /// Tiny sizes, and everything that is read is checked: to see that it works, not how fast
    #[arg(long)]
    pub(crate) small: bool,
    /// Also writes all figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also draws a chart of the ratios into this directory, as SVG
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) charts: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ContractArguments {
    /// How often each call is made
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = value_parser!(u64).range(10..=1_000_000_000))]
    pub(crate) calls: u64,
    /// How many stored values a plan looks at
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = value_parser!(u64).range(100..=100_000_000))]
    pub(crate) entries: u64,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StateArguments {
    /// How many entries the map has, with commas between
    #[arg(long, value_delimiter = ',', value_name = "N", default_values_t = [1_000, 100_000, 1_000_000],
          value_parser = value_parser!(u64).range(1_000..=9_999_999))]
    pub(crate) entries: Vec<u64>,
    /// How often puts and gets are called
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u64).range(500..=1_000_000_000))]
    pub(crate) calls: u64,
    /// Tiny sizes, and everything that is read is checked: to see that it works, not how fast
    #[arg(long)]
    pub(crate) small: bool,
    /// Where the stores go [default: a temporary directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,
}

/// What the process that is killed writes.
#[derive(Clone, Debug, Args)]
pub(crate) struct TailArguments {
    pub(crate) engine: EngineName,
    pub(crate) layout: Layout,
    pub(crate) directory: PathBuf,
    pub(crate) value_bytes: usize,
    pub(crate) values: u64,
}

impl TailArguments {
    /// The arguments that mean this.
    pub(crate) fn to_arguments(&self) -> Vec<std::ffi::OsString> {
        let name = |value: Option<clap::builder::PossibleValue>| {
            value.map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        vec![
            "tail".into(),
            name(self.engine.to_possible_value()).into(),
            name(self.layout.to_possible_value()).into(),
            self.directory.clone().into(),
            self.value_bytes.to_string().into(),
            self.values.to_string().into(),
        ]
    }
}

/// Which of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    Same,
    Raw,
    Both,
}

impl Table {
    pub(crate) fn layouts(self) -> &'static [Layout] {
        match self {
            Self::Same => &[Layout::Same],
            Self::Raw => &[Layout::Raw],
            Self::Both => &[Layout::Same, Layout::Raw],
        }
    }
}

fn value_bytes(text: &str) -> Result<usize, String> {
    const MAX: usize = 1024 * 1024;
    let bytes = text.parse().map_err(|_| "it must be a number of bytes".to_owned())?;
    if (VALUE_BYTES_MIN..=MAX).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("it must be from {VALUE_BYTES_MIN} to {MAX}"))
}

fn time(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "it must be a number of seconds".to_owned())?;
    if (0.01..=3600.0).contains(&seconds) {
        return Ok(seconds);
    }
    Err("it must be from 0.01 to 3600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["pleach-bench"], arguments].concat())
    }

    #[test]
    fn lists_are_split_at_commas() {
        let run = parse(&["--engines", "pleach,rocksdb", "--work", "load,scan-100", "--value", "100,512"])
            .unwrap()
            .run;
        assert_eq!(run.engines, [EngineName::Pleach, EngineName::RocksDb]);
        assert_eq!(run.work, [Work::Load, Work::Scan100]);
        assert_eq!(run.value, [100, 512]);
        assert_eq!(run.table, Table::Both);
    }

    #[test]
    fn wrong_arguments_say_what_is_wrong_and_exit_with_2() {
        for (arguments, message) in [
            (&["--engines", "mongodb"][..], "mongodb"),
            (&["--work", "sleep"], "sleep"),
            (&["--value", "3"], "it must be from 16"),
            (&["--repeat", "0"], "0 is not in 1..=99"),
            (&["--keys", "9999999999"], "9999999999 is not in"),
            (&["--table", "periodic"], "periodic"),
            (&["scale", "--seconds", "0"], "it must be from 0.01"),
            (&["nats", "--keys", "1"], "1 is not in"),
            (&["nats", "--rows", "sleep"], "sleep"),
        ] {
            let error = parse(arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn the_process_that_is_killed_is_told_what_to_write() {
        let tail = TailArguments {
            engine: EngineName::RocksDb,
            layout: Layout::Same,
            directory: "a b".into(),
            value_bytes: 100,
            values: 7,
        };
        let arguments = [vec!["pleach-bench".into()], tail.to_arguments()].concat();
        let Some(Command::Tail(parsed)) = Cli::try_parse_from(arguments).unwrap().command else {
            panic!("another command")
        };
        assert_eq!(format!("{parsed:?}"), format!("{tail:?}"));
    }
}
