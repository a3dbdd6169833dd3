//! The key grammar: what the keys of a keyspace look like, which values they are made of, in which order they sort.
//!
//! A [`Grammar`] is read from a text such as `t.{tenant}.case.{case:ulid}.event.{at:time}.{id:ulid}`. It builds keys
//! of values and reads them back, and keys sort as their values do:
//!
//! ```
//! use pleach_contract::key::{AccessPath, Between, Grammar, Value};
//!
//! let readings = Grammar::parse("t.{tenant}.reading.{celsius:int(3)}")?;
//! let cold = readings.build(&["acme".into(), Value::Int(-12)])?;
//! let warm = readings.build(&["acme".into(), Value::Int(7)])?;
//! assert_eq!((cold.as_str(), warm.as_str()), ("t.acme.reading.-988", "t.acme.reading.0007"));
//! assert!(cold < warm);
//! assert_eq!(readings.read(cold.as_str())?, ["acme".into(), Value::Int(-12)]);
//!
//! // An access path is checked when it is declared, and is then a range of keys.
//! let below = readings.access(&AccessPath::parse("tenant,celsius..")?)?;
//! let frost = below.range(&["acme".into()], &Between::before(Value::Int(0)))?;
//! assert!(frost.contains(cold.as_bytes()) && !frost.contains(warm.as_bytes()));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! The notation, the types and all codes of problems are in `docs/keys.md`.

mod access;
mod coding;
mod explain;
mod filter;
mod grammar;
mod kind;
mod notation;
mod overlap;
mod path;
mod problem;
mod time;
mod value;

pub use access::{Access, Between};
pub use explain::{Explanation, Part};
pub use grammar::{
    BYTES_DEFAULT, GRAMMAR_BYTES_MAX, Grammar, HASH_BYTES_DEFAULT, NAME_BYTES_MAX, REST_BYTES_DEFAULT,
    SEGMENTS_MAX, Segment, TENANT, TEXT_BYTES_DEFAULT, VARIANTS_MAX,
};
pub use kind::Kind;
pub use overlap::{Overlap, overlaps};
pub use path::AccessPath;
pub use problem::{Code, GrammarError, Problem};
pub use time::{Date, Time, TimeOutOfRange};
pub use value::Value;

#[cfg(test)]
mod tests;
