//! The embedded engine keeps every promise, and keeps its data whatever happens to the process or the files.

mod bitflips;
mod cleaned;
mod cleaning;
mod conformance;
mod crash;
mod damage;
mod disk_full;
mod formats;
mod injection;
mod inspect;
mod linearizable;
mod model;
mod opening;
mod reopening;
mod status;
mod store;
mod workload;
