use std::hint::black_box;

use anyhow::{Context as _, Result, ensure};
use pleach_contract::evolution::diff;
use pleach_contract::{CompiledSchema, Contract, Notation, Validators};
use serde_json::{Map, Value, json};

use super::{Figure, nanoseconds, nanoseconds_each};

const SCHEMAS: usize = 50;
const PROPERTIES: usize = 500;
const MILLISECOND: f64 = 1_000_000.0;

/// How long it takes to read contracts, to check values, and to compare two contracts.
pub(super) fn measure(calls: u64) -> Result<Vec<Figure>> {
    let text = contract_of(SCHEMAS, 12, "string").to_string();
    let parse = || Contract::parse(black_box(text.as_bytes()), Notation::Json).map(|parsed| parsed.contract);
    let contract = parse()?;
    let (small, large) = (object(5, "string"), object(PROPERTIES, "string"));
    let check_small = CompiledSchema::compile(&small)?;
    let check_large = CompiledSchema::compile(&large)?;
    let (small_value, large_value) = (value(5), value(PROPERTIES));
    ensure!(check_small.validate(&small_value).is_ok(), "the small value is refused");
    ensure!(check_large.validate(&large_value).is_ok(), "the large value is refused");
    let wide = |kind: &str| -> Result<Contract> {
        Ok(Contract::from_value(&contract_of(1, PROPERTIES, kind))?.contract)
    };
    let (old, same, other) = (wide("string")?, wide("string")?, wide("integer")?);
    ensure!(diff(&old, &same).findings.is_empty(), "the same contract is called different");
    let found = diff(&old, &other).findings.len();
    ensure!(found >= PROPERTIES, "{found} findings are too few");
    // These take milliseconds, and need not be done as often.
    let rounds = (calls / 4000).clamp(1, 50);
    let figures = [
        (
            "parse and check a contract of 50 schemas",
            100.0 * MILLISECOND,
            nanoseconds_each(rounds, || Ok(parse()?))?,
        ),
        (
            "compile its schemas",
            100.0 * MILLISECOND,
            nanoseconds_each(rounds, || Ok(Validators::default().of(black_box(&contract))?.len()))?,
        ),
        (
            "check a value of 5 fields",
            5000.0,
            nanoseconds(calls / 4, |_| check_small.validate(black_box(&small_value)).context("refused"))?,
        ),
        (
            "check a value of 500 fields",
            500_000.0,
            nanoseconds_each(rounds * 4, || {
                check_large.validate(black_box(&large_value)).context("refused")
            })?,
        ),
        (
            "diff of two schemas of 500 properties, all changed",
            50.0 * MILLISECOND,
            nanoseconds_each(rounds, || Ok(diff(black_box(&old), &other).findings.len()))?,
        ),
    ];
    let figure = |(what, aim_nanoseconds, nanoseconds)| Figure { what, nanoseconds, aim_nanoseconds };
    Ok(figures.into_iter().map(figure).collect())
}

/// A contract with so many schemas of so many properties.
fn contract_of(schemas: usize, properties: usize, kind: &str) -> Value {
    let name = |at: usize| format!("Schema{at}");
    let all: Map<String, Value> = (0..schemas).map(|at| (name(at), object(properties, kind))).collect();
    let resource = |at: usize| json!({"purpose": "A part", "schema": {"schema": name(at)}});
    let resources: Map<String, Value> = (0..schemas).map(|at| (format!("part{at}"), resource(at))).collect();
    json!({
        "format": "pleach.contract.v1", "id": "acme.wide@v1", "kind": "service", "displayName": "Wide",
        "description": "Many schemas", "schemas": all, "resources": {"kv": resources}})
}

/// A schema with so many properties of one type, each with a limit or two.
fn object(properties: usize, kind: &str) -> Value {
    let property = json!({"type": kind, "minLength": 1, "maxLength": 64, "description": "A field"});
    let all: Map<String, Value> =
        (0..properties).map(|at| (format!("field{at}"), property.clone())).collect();
    json!({"type": "object", "properties": all, "required": ["field0"], "additionalProperties": false})
}

fn value(properties: usize) -> Value {
    (0..properties)
        .map(|at| (format!("field{at}"), json!("some text")))
        .collect::<Map<String, Value>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured() {
        let figures = measure(20).unwrap();
        assert_eq!(figures.len(), 5);
        assert!(figures.iter().all(|figure| figure.nanoseconds > 0.0), "{figures:?}");
    }
}
