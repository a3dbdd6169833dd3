//! Contracts from outside: from Rust types, and from whoever means harm.

mod bad_input;
mod derive;
mod fuzz;
