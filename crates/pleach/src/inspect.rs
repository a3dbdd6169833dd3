//! Looking at a store in a directory while it is closed: whether it is sound, building its index anew, and
//! copying out of a damaged one whatever can still be read.
//!
//! All of it blocks. Damage is no error but in the report.
//!
//! ```
//! use pleach::{Store, inspect};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("store");
//! let store = pollster::block_on(Store::open(&path))?;
//! pollster::block_on(store.close())?;
//! let report = inspect::verify(&path, &mut |_| {})?;
//! assert!(report.is_sound());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub use pleach_embedded::inspect::*;
