//! What contracts cost: how long it takes to decide what keys and values mean, and what a change does.

mod documents;
mod keys;
mod plan;
mod typed;

use std::hint::black_box;

use anyhow::Result;

use crate::args::ContractArguments;
use crate::output::show;
use crate::process::now;
use crate::statistics::median;
use crate::table::rendered;

/// A figure: what was done, how long it took, and how long it may take.
#[derive(Debug)]
pub(crate) struct Figure {
    what: &'static str,
    nanoseconds: f64,
    aim_nanoseconds: f64,
}

/// Measures all of it and prints a table.
pub(crate) fn run(arguments: &ContractArguments) -> Result<()> {
    let mut figures = keys::measure(arguments.calls)?;
    figures.extend(documents::measure(arguments.calls)?);
    let mut lines = vec![["work", "ns", "aim, ns"].map(str::to_owned).to_vec()];
    for Figure { what, nanoseconds, aim_nanoseconds } in figures {
        lines.push(vec![what.to_owned(), format!("{nanoseconds:.0}"), format!("{aim_nanoseconds:.0}")]);
    }
    show(&format!("\n{}", rendered(&lines)));
    let mut lines = vec![["work", "raw, ns", "with a contract, ns", "times"].map(str::to_owned).to_vec()];
    for typed::Compared { what, raw_nanoseconds: raw, typed_nanoseconds: typed } in
        typed::measure(arguments.calls)?
    {
        lines.push(vec![
            what.to_owned(),
            format!("{raw:.0}"),
            format!("{typed:.0}"),
            format!("{:.2}", typed / raw),
        ]);
    }
    show(&format!("\n{}", rendered(&lines)));
    show(&format!("\n{}", rendered(&planned(arguments.entries)?)));
    Ok(())
}

/// What a plan costs, as a table.
fn planned(entries: u64) -> Result<Vec<Vec<String>>> {
    let planned = plan::measure(entries)?;
    let micros = |time: std::time::Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    let beside = |what: &str, (idle, busy): (std::time::Duration, std::time::Duration)| {
        let times = busy.as_secs_f64() / idle.as_secs_f64();
        vec![what.to_owned(), micros(idle), micros(busy), format!("{times:.2}")]
    };
    let rate = format!("{:.0}/s", planned.entries_a_second);
    Ok(vec![
        ["work", "alone", "beside a plan", "times"].map(str::to_owned).to_vec(),
        vec!["values that a plan looks at".to_owned(), rate, String::new(), String::new()],
        beside("get, p99", planned.get_p99),
        beside("put, p99", planned.put_p99),
    ])
}

/// How many nanoseconds a call takes: the median of many short rounds, so that other work on the machine, which
/// interrupts some of them, is not counted.
pub(crate) fn nanoseconds<T>(calls: u64, call: impl FnMut(u64) -> Result<T>) -> Result<f64> {
    const ROUND_CALLS: u64 = 500;
    median_of(calls.div_ceil(ROUND_CALLS), ROUND_CALLS, call)
}

/// The same of a call that takes long enough to be a round of its own.
pub(crate) fn nanoseconds_each<T>(calls: u64, mut call: impl FnMut() -> Result<T>) -> Result<f64> {
    median_of(calls, 1, |_| call())
}

fn median_of<T>(rounds: u64, calls: u64, mut call: impl FnMut(u64) -> Result<T>) -> Result<f64> {
    let mut taken = Vec::new();
    for round in 0..rounds {
        let started = now();
        for index in 0..calls {
            black_box(call(round * calls + index)?);
        }
        taken.push((now() - started).as_nanos() as f64 / calls as f64);
    }
    Ok(median(&taken).unwrap_or_default())
}
