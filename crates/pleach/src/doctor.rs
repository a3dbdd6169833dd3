//! What is wrong with a store in a directory, why, and what to do about it: rules that read a
//! [`Status`](crate::status::Status).
//!
//! ```
//! use pleach::{Store, doctor};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("store");
//! # pollster::block_on(async {
//! let store = Store::open(&path).await?;
//! for finding in doctor::examine(&store.status().await?) {
//!     println!("{}: {}; {}", finding.severity, finding.what, finding.next);
//! }
//! # Ok::<_, pleach::Error>(()) })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub use pleach_embedded::doctor::*;
