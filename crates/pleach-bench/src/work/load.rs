use std::time::Duration;

use anyhow::Result;

use super::Stage;
use crate::keys::{KeyText, Shuffle};
use crate::peers::Record;
use crate::process::now;
use crate::row::Row;
use crate::value;

/// In which order keys are loaded.
const ORDER_SEED: u64 = 0x10ad;

impl Stage<'_> {
    /// Puts every key once.
    pub(super) fn load(&mut self) -> Result<()> {
        let (keys, batch) = (self.run.keys, self.run.sizes.batch as u64);
        let order = Shuffle::new(keys, ORDER_SEED);
        let mut records: Vec<Record> = Vec::new();
        let (mut calls, mut slowest) = (Duration::ZERO, Duration::ZERO);
        let mut begin = 0;
        while begin < keys {
            let numbers = begin..(begin + batch).min(keys);
            begin = numbers.end;
            fill(&mut records, numbers.map(|number| (order.place(number), 0)), self.run.value_bytes);
            let started = now();
            self.peer.put_batch(&records)?;
            let took = now() - started;
            calls += took;
            slowest = slowest.max(took);
        }
        let started = now();
        self.peer.sync()?;
        calls += now() - started;
        self.puts += keys;
        self.figures.insert(Row::Load, per_second(keys, calls));
        self.figures.insert(Row::SlowestPut, slowest.as_secs_f64() * 1e3);
        if self.run.sizes.check {
            (0..keys).try_for_each(|index| self.check_version(index, 0))?;
        }
        Ok(())
    }
}

/// Makes `records` be these versions of the values of these indices.
pub(super) fn fill(records: &mut Vec<Record>, puts: impl Iterator<Item = (u64, u64)>, value_bytes: usize) {
    let mut count = 0;
    for (index, version) in puts {
        if records.len() == count {
            records.push(Record { key: KeyText::of(index), value: vec![0; value_bytes] });
        }
        let record = &mut records[count];
        record.key = KeyText::of(index);
        value::fill(&mut record.value, index, version);
        count += 1;
    }
    records.truncate(count);
}

pub(super) fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}
