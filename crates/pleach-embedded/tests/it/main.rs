//! The embedded engine keeps every promise, and keeps its data.

mod conformance;
