use std::sync::Arc;

use anyhow::Result;

use super::load::per_second;
use super::reads::HOT_SKEW;
use super::{Stage, seconds};
use crate::drive::{Caller, Drive};
use crate::keys::Spread;
use crate::process::{now, processor_time};
use crate::row::Row;
use crate::statistics::percentile;

const MIXED_CALLERS: usize = 16;

impl Stage<'_> {
    /// Single durable puts by so many writers.
    pub(super) fn durable(&mut self, writers: usize) -> Result<()> {
        let before = processor_time();
        let (callers, rate) = self.drive(writers, Spread::Uniform(self.run.keys), false)?;
        let worked = processor_time().zip(before).map(|(after, before)| after - before);
        let puts: u64 = callers.iter().map(|caller| caller.puts).sum();
        if writers == 64 {
            self.figures.insert(Row::Durable64, rate);
            if let Some(worked) = worked.filter(|_| puts > 0) {
                self.figures.insert(Row::CpuPerCommit, 1e6 / per_second(puts, worked));
            }
        } else {
            let mut latencies: Vec<u64> = callers.into_iter().flat_map(|caller| caller.latencies).collect();
            self.figures.insert(Row::Durable256, rate);
            if let Some(nanoseconds) = percentile(&mut latencies, 0.999) {
                self.figures.insert(Row::Durable256Tail, milliseconds(nanoseconds));
            }
        }
        Ok(())
    }

    /// Gets and durable puts in turns.
    pub(super) fn mixed(&mut self) -> Result<()> {
        let (_, rate) = self.drive(MIXED_CALLERS, Spread::zipf(self.run.keys, HOT_SKEW), true)?;
        self.figures.insert(Row::Mixed, rate);
        Ok(())
    }

    fn drive(&mut self, callers: usize, spread: Spread, mixed: bool) -> Result<(Vec<Caller>, f64)> {
        let own_keys = matches!(spread, Spread::Uniform(_));
        let drive = Drive {
            callers: callers / self.run.sizes.callers_divisor,
            time: seconds(self.run.sizes.write_seconds),
            spread,
            mixed,
            value_bytes: self.run.value_bytes,
            check: self.run.sizes.check,
        };
        let started = now();
        let callers = self.peer.drive(&Arc::new(drive))?;
        let took = now() - started;
        let steps: usize = callers.iter().map(|caller| caller.latencies.len()).sum();
        self.puts += callers.iter().map(|caller| caller.puts).sum::<u64>();
        if self.run.sizes.check {
            if own_keys {
                let wrote = callers.iter().flat_map(|caller| &caller.wrote);
                wrote.into_iter().try_for_each(|(index, version)| self.check_version(*index, *version))?;
            }
            self.check_feed()?;
        }
        Ok((callers, per_second(steps as u64, took)))
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
