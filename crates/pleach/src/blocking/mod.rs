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
mod iter;
mod store;
mod typed;

pub use bucket::{Bucket, CachedBucket};
pub use iter::{Keys, Scan, TypedScan, TypedWatch, Waited, Watch};
pub use store::Store;
pub use typed::TypedBucket;

use pollster::block_on;
