use std::hint::black_box;

use anyhow::{Result, ensure};
use pleach_contract::key::{AccessPath, Between, Grammar, Time, Value};

use super::{Figure, nanoseconds};
use crate::random::mix;

const EVENTS: &str = "t.{tenant}.case.{case:ulid}.event.{at:time}.{id:ulid}";
/// Every type once, but an enum.
const WIDE: &str =
    "{a}.{b:token}.{c:ulid}.{d:uuid}.{e:uint}.{f:int}.{g:time}.{h:date}.{i:hash}.{j:bytes(16)}.{k...}";

/// How long it takes to build and read keys, and what is near it.
pub(super) fn measure(calls: u64) -> Result<Vec<Figure>> {
    let events = Grammar::parse(EVENTS)?;
    let keys: Vec<_> = (0..1024).map(|number| events.build(&event(number))).collect::<Result<_, _>>()?;
    for (key, number) in keys.iter().zip(0..) {
        ensure!(
            events.read(key.as_str())? == event(number),
            "{key} is read as other values than it was built of"
        );
    }
    let wide = Grammar::parse(WIDE)?;
    let example = wide_key(&wide)?;
    let access = events.access(&AccessPath::parse("tenant,case,at..")?)?;
    let key_at = |index: u64| keys[usize::try_from(index % 1024).unwrap_or(0)].as_str();
    let figures = [
        (
            "build a key of 3 literals and 4 values",
            1000.0,
            nanoseconds(calls, |n| Ok(events.build(&event(n))?))?,
        ),
        ("read it", 1000.0, nanoseconds(calls, |n| Ok(events.read(key_at(n))?.len()))?),
        (
            "read a key of 11 values",
            2000.0,
            nanoseconds(calls, |_| Ok(wide.read(black_box(&example))?.len()))?,
        ),
        (
            "refuse a key",
            5000.0,
            nanoseconds(calls, |_| Ok(events.read(black_box("t.acme.case.7")).is_err()))?,
        ),
        (
            "range of an access path",
            2000.0,
            nanoseconds(calls, |n| {
                let [tenant, case, at, _] = event(n);
                Ok(access.range(&[tenant, case], &Between::since(at))?)
            })?,
        ),
        ("explain a key", 10_000.0, nanoseconds(calls / 10, |n| Ok(events.explain(key_at(n))?))?),
        ("parse a grammar", 20_000.0, nanoseconds(calls / 10, |_| Ok(Grammar::parse(black_box(EVENTS))?))?),
    ];
    let figure = |(what, aim_nanoseconds, nanoseconds)| Figure { what, nanoseconds, aim_nanoseconds };
    Ok(figures.into_iter().map(figure).collect())
}

fn event(number: u64) -> [Value<'static>; 4] {
    let (case, id) = (u128::from(mix(number / 16)) << 60, u128::from(mix(number)) << 40);
    let seconds = i64::try_from(mix(number) % 2_000_000_000).unwrap_or(0);
    let at = Time::new(seconds, 0).map_or(Value::Int(0), Value::Time);
    ["acme".into(), Value::Ulid(case), at, Value::Ulid(id)]
}

/// A key with a value of every type.
fn wide_key(grammar: &Grammar) -> Result<String> {
    let text = "acme.acme-corp.01ARZ3NDEKTSV4RRFFQ69G5FAV.0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b.00000000000000000042.\
                -9999999999999999958.20260705T101530_123456789Z.20260705.";
    let key = format!("{text}{}.{}.letters.2026", "ab".repeat(32), "zzzz".repeat(4));
    grammar.read(&key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured() {
        let figures = measure(20).unwrap();
        assert_eq!(figures.len(), 7);
        assert!(figures.iter().all(|figure| figure.nanoseconds > 0.0), "{figures:?}");
    }
}
