//! The in-memory engine keeps every promise, on a clock that stands still and, where time matters, on the
//! machine's.

mod manual_clock;
mod system_clock;
