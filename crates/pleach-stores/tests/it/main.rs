//! Stores with meaning, on the engines that live in this process.

mod codegen;
mod generated;
mod kv;
