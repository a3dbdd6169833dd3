//! Overwrites the same keys for a while, and shows whether space, memory and open files level off.
//!
//! `cargo xtask soak --help` tells how it is run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people, at a terminal")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pleach_embedded::{EmbeddedEngine, Settings};
use pleach_engine::{At, Batch, BucketConfig, BucketName, Engine, Key, SystemClock};
use pollster::block_on;

const HELP: &str = "\
Overwrites the same keys for a while, and shows whether space, memory and open files level off.

Usage: cargo xtask soak [OPTIONS]

Options:
  --seconds N   How long to write [default: 120]
  --keys N      How many keys there are [default: 100000]
  --value N     How long their values are, in bytes [default: 1024]
  --writers N   How many threads write [default: 16]
  --help        This text
";

struct Options {
    seconds: u64,
    keys: u64,
    value: usize,
    writers: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options { seconds: 120, keys: 100_000, value: 1024, writers: 16 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--help" {
            print!("{HELP}");
            return Ok(());
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a number; see --help"))?;
        let number: u64 = value.parse().map_err(|_| format!("{name}: {value} is not a number"))?;
        match name.as_str() {
            "--seconds" => options.seconds = number.max(10),
            "--keys" => options.keys = number.max(1),
            "--value" => options.value = usize::try_from(number)?,
            "--writers" => options.writers = number.clamp(1, 1024),
            _ => return Err(format!("there is no option {name}; see --help").into()),
        }
    }
    soak(&options)
}

/// What a moment looked like.
struct Sample {
    written: u64,
    space: u64,
    memory: u64,
    files: usize,
}

#[allow(clippy::disallowed_methods, reason = "it measures real time")]
fn soak(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    // The feed would be part of what is kept; here it shall not hide what is not cleaned.
    let settings = Settings { feed_bytes: Some(0), ..Settings::default() };
    let engine = EmbeddedEngine::open_with(directory.path(), settings, Arc::new(SystemClock::new()))?;
    let name = BucketName::parse("soak")?;
    block_on(engine.create_bucket(&name, BucketConfig::default()))?;
    let live = options.keys * (options.value as u64 + 60);
    println!("live data: about {} MB", live / 1_000_000);
    println!(
        "{:>6} {:>12} {:>12} {:>8} {:>10} {:>8}",
        "s", "written MB", "space MB", "ratio", "memory MB", "files"
    );
    let (count, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    let mut samples = Vec::new();
    std::thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        for writer in 0..options.writers {
            let (engine, name, count, stop) = (&engine, &name, &count, &stop);
            scope.spawn(move || write(engine, name, options, writer, count, stop));
        }
        while started.elapsed() < Duration::from_secs(options.seconds) {
            std::thread::sleep(Duration::from_secs((options.seconds / 24).clamp(1, 60)));
            let written = count.load(Ordering::Acquire) * options.value as u64;
            let sample =
                Sample { written, space: space(directory.path()), memory: memory(), files: open_files() };
            show(started.elapsed(), &sample, live);
            samples.push(sample);
        }
        stop.store(true, Ordering::Release);
        Ok(())
    })?;
    check(&engine, &name, options)?;
    report(&engine, &samples, live);
    block_on(engine.close())?;
    Ok(())
}

/// Overwrites keys at random until told to stop.
fn write(
    engine: &EmbeddedEngine,
    name: &BucketName,
    options: &Options,
    writer: u64,
    count: &AtomicU64,
    stop: &AtomicBool,
) {
    let mut random = writer.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while !stop.load(Ordering::Acquire) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let number = random % options.keys;
        let key = Key::parse(format!("key.{number}")).expect("a key");
        let mut value = format!("{number}:").into_bytes();
        value.resize(options.value.max(value.len()), b'.');
        if let Err(error) = block_on(engine.commit(name, Batch::new().put(key, value))) {
            eprintln!("a commit failed: {error}");
            return;
        }
        count.fetch_add(1, Ordering::AcqRel);
    }
}

/// Reads some keys back.
fn check(
    engine: &EmbeddedEngine,
    name: &BucketName,
    options: &Options,
) -> Result<(), Box<dyn std::error::Error>> {
    for number in (0..options.keys).step_by(97) {
        let entry = block_on(engine.read(name, &Key::parse(format!("key.{number}"))?, At::Latest))?;
        if entry.is_some_and(|entry| !entry.value.starts_with(format!("{number}:").as_bytes())) {
            return Err(format!("key.{number} has the value of another key").into());
        }
    }
    Ok(())
}

fn show(elapsed: Duration, sample: &Sample, live: u64) {
    let Sample { written, space, memory, files } = sample;
    let ratio = *space as f64 / live as f64;
    println!(
        "{:>6} {:>12} {:>12} {ratio:>8.2} {:>10} {files:>8}",
        elapsed.as_secs(),
        written / 1_000_000,
        space / 1_000_000,
        memory / 1_000_000
    );
}

fn report(engine: &EmbeddedEngine, samples: &[Sample], live: u64) {
    let status = engine.status();
    let written = samples.last().map_or(1, |sample| sample.written.max(1));
    let log = status.log.written_bytes + status.log.rewritten_bytes;
    println!("write amplification of the log with cleaning: {:.2}", log as f64 / written as f64);
    if let Some(all) = disk_writes() {
        println!("write amplification of everything:            {:.2}", all as f64 / written as f64);
    }
    for stall in status.stalls.iter().filter(|stall| !stall.time.is_zero()) {
        println!("commits were slowed down for {:.1?} because {}", stall.time, stall.cause);
    }
    let half = samples.len() / 2;
    let most = |part: &[Sample], of: fn(&Sample) -> u64| part.iter().map(of).max().unwrap_or_default();
    for (what, of) in [
        ("space", (|sample| sample.space) as fn(&Sample) -> u64),
        ("memory", |sample| sample.memory),
        ("files", |sample| sample.files as u64),
    ] {
        let (first, second) = (most(&samples[..half], of), most(&samples[half..], of));
        let levels = if second <= first + first / 4 { "levels off" } else { "STILL GROWS" };
        println!("{what}: {levels}: at most {first} in the first half, {second} in the second");
    }
    let worst = most(&samples[half..], |sample| sample.space) as f64 / live as f64;
    println!("space in the second half: at most {worst:.2} times the live data");
}

/// How many bytes the files below a directory have.
fn space(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => space(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// How much memory this process has in use; zero where the operating system does not tell.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages * 4096
}

/// How many files this process has open; zero where the operating system does not tell.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// How many bytes this process has caused to be written to disks.
fn disk_writes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.trim().parse().ok())
}
