//! Opening after a kill. A second process writes and is killed, so that nothing is closed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::Run;
use super::load::fill;
use crate::args::TailArguments;
use crate::keys::{KEYS_MAX, KeyText, Shuffle};
use crate::peers::{self, Opening};
use crate::process::now;
use crate::value;

const BATCH: u64 = 100;

/// How the other process says that it has written everything.
const DONE: &str = "done";

/// How long it takes to open a store that was killed and read a key of it.
pub(super) fn measure(run: &Run<'_>) -> Result<Duration> {
    let directory = run.directory.join("killed");
    let values = run.sizes.tail_bytes / run.value_bytes as u64;
    let values = values.clamp(1, KEYS_MAX);
    write_in_another_process(run, &directory, values)?;
    // The last that was written is the last that recovery finds.
    let key = KeyText::of(order(values).place(values - 1));
    let opening = Opening { directory: &directory, layout: run.layout, unflushed: false };
    let started = now();
    let peer = peers::open(run.engine, opening)?;
    let mut found = Ok(());
    let is_there = peer.get(&key, &mut |_, key, bytes| {
        found = value::check(key, bytes, run.value_bytes).map(|_| ());
    })?;
    let took = now() - started;
    ensure!(is_there, "the last value that was written before the kill is lost");
    found?;
    peer.close()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(took)
}

fn write_in_another_process(run: &Run<'_>, directory: &Path, values: u64) -> Result<()> {
    let tail = TailArguments {
        engine: run.engine,
        layout: run.layout,
        directory: directory.to_owned(),
        value_bytes: run.value_bytes,
        values,
    };
    let program = std::env::current_exe().context("this program cannot be found")?;
    let mut child = Command::new(program)
        .args(tail.to_arguments())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("this program cannot be started again")?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said)?;
    }
    child.kill()?;
    let ended = child.wait_with_output()?;
    if said.trim() != DONE {
        bail!("the process that writes failed: {}", String::from_utf8_lossy(&ended.stderr).trim());
    }
    Ok(())
}

/// What the other process does: writes, and waits to be killed without having closed anything.
#[allow(clippy::print_stdout, reason = "the parent waits for this line")]
pub(crate) fn write_tail_and_wait(tail: &TailArguments) -> Result<()> {
    let opening = Opening { directory: &tail.directory, layout: tail.layout, unflushed: true };
    let peer = peers::open(tail.engine, opening)?;
    let (order, mut records) = (order(tail.values), Vec::new());
    let mut begin = 0;
    while begin < tail.values {
        let numbers = begin..(begin + BATCH).min(tail.values);
        begin = numbers.end;
        fill(&mut records, numbers.map(|number| (order.place(number), 0)), tail.value_bytes);
        peer.put_batch(&records)?;
    }
    println!("{DONE}");
    // Ends only if the parent is gone before it could kill.
    std::io::stdin().read_line(&mut String::new())?;
    std::process::abort();
}

fn order(values: u64) -> Shuffle {
    Shuffle::new(values, 0x7a11)
}
