//! The same store for programs without an async runtime.
//!
//! Every method does what its namesake on the async handle does, and waits for it on the calling thread.
//! Streams are iterators here. Not for use inside async code, where waiting would hold up its executor.
//!
//! ```
//! use pleach::blocking::Store;
//!
//! let store = Store::in_memory();
//! let carts = store.create_bucket("carts")?;
//! carts.put("user.42", "3 apples")?;
//! for entry in carts.scan("user.>")? {
//!     println!("{}", entry?.key);
//! }
//! # Ok::<_, pleach::Error>(())
//! ```

mod bucket;
mod consumer;
mod contracts;
mod iter;
mod keyspace;
mod service;
mod store;
mod typed;

pub use bucket::{Bucket, CachedBucket};
pub use contracts::{Contracts, Verification};
pub use iter::{Consumer, Keys, KvWatch, Scan, TypedScan, TypedWatch, Waited, Watch};
pub use keyspace::Keyspace;
pub use service::{KvStore, Service};
pub use store::Store;
pub use typed::TypedBucket;

use std::thread;

/// Waits for `future` on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let output = pollster::block_on(future);
    give_back_a_wake_up();
    output
}

/// Waiting takes every wake-up of this thread, also one that was meant for whoever polls the caller. At worst,
/// it makes someone look again for nothing.
fn give_back_a_wake_up() {
    thread::current().unpark();
}
