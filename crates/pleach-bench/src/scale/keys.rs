use std::path::Path;

use anyhow::{Result, ensure};

use super::{Costs, open};
use crate::keys::{KEY_BYTES, KeyText};
use crate::peers::{EngineName, Layout, Peer as _};
use crate::process::{disk_bytes, memory_bytes, now};
use crate::row::Row;
use crate::work::{Run, Sizes, Stage, Work};

const WORKS: [Work; 5] = [Work::Load, Work::HotGet, Work::RandomGet, Work::Scan100, Work::Durable64];

/// What so many keys cost.
pub(super) fn measure(directory: &Path, keys: u64, value_bytes: usize, sizes: &Sizes) -> Result<Costs> {
    let (engine, layout) = (EngineName::Pleach, Layout::Same);
    let run = Run { engine, layout, value_bytes, keys, sizes, works: &WORKS, directory };
    let store = directory.join("store");
    let peer = open(&store)?;
    let mut stage = Stage::new(&run, &peer);
    let mut costs = Costs::new();
    for work in WORKS {
        stage.perform(work)?;
        sizes.settle();
        if work == Work::Load
            && let Some((memory, _)) = memory_bytes()
        {
            costs.insert("memory after the load, MiB", mebibytes(memory));
        }
    }
    for (row, name) in [
        (Row::Load, "load, µs a put"),
        (Row::HotGet1, "hot get, µs"),
        (Row::RandomGet, "random get, µs"),
        (Row::Scan100, "scan of 100, µs"),
        (Row::Durable64, "durable put with 64 writers, µs of the clock"),
    ] {
        if let Some(rate) = stage.figures().get(&row) {
            costs.insert(name, 1e6 / rate);
        }
    }
    if let Some(cost) = stage.figures().get(&Row::CpuPerCommit) {
        costs.insert("durable put with 64 writers, µs of CPU", *cost);
    }
    if let Some((memory, most)) = memory_bytes() {
        costs.insert("memory after all, MiB", mebibytes(memory));
        costs.insert("memory at most, MiB", mebibytes(most));
    }
    let user_bytes = keys * (KEY_BYTES + value_bytes) as u64;
    costs.insert("disk, bytes a user byte", mebibytes(disk_bytes(&store)) / mebibytes(user_bytes));
    let started = now();
    Box::new(peer).close()?;
    costs.insert("close, ms", (now() - started).as_secs_f64() * 1e3);
    let started = now();
    let peer = open(&store)?;
    ensure!(peer.get(&KeyText::of(keys / 2), &mut |_, _, _| ())?, "a key is gone after reopening");
    costs.insert("reopen to the first get, ms", (now() - started).as_secs_f64() * 1e3);
    Box::new(peer).close()?;
    Ok(costs)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
