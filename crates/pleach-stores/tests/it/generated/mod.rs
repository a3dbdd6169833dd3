//! What `codegen` makes of the contracts in the test data of `pleach-contract`, compiled.

#![allow(dead_code, unreachable_pub, reason = "not all of it is used here")]

#[rustfmt::skip]
pub(crate) mod awkward;
#[rustfmt::skip]
pub(crate) mod cases;
#[rustfmt::skip]
pub(crate) mod notes;
