use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pleach_engine::{
    Clock, ConsumerStart, Direction, Expectation, Expiry, Headers, KeyFilter, Reads, Selection, SystemClock,
    WatchQuery, WatchStart,
};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Creates the directory and an empty store in it if there is none.
    pub create: bool,
    /// Where the store takes the time from.
    pub clock: Arc<dyn Clock>,
    /// Who hears how far the opening has come. That of a large store takes long if its index must be built anew.
    pub progress: Option<OpenProgress>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { create: true, clock: Arc::new(SystemClock::new()), progress: None }
    }
}

/// Hears how far the opening of a store has come.
#[derive(Clone)]
pub struct OpenProgress(Arc<dyn Fn(u64) + Send + Sync>);

impl OpenProgress {
    /// Calls `hear` often, with how many bytes of the log have been read to bring the index up to it.
    pub fn new(hear: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Says that so many bytes have been read.
    pub fn report(&self, bytes: u64) {
        (self.0)(bytes);
    }
}

impl fmt::Debug for OpenProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenProgress").finish_non_exhaustive()
    }
}

/// How a value is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// What the read promises to see; none means what the store promises anyway.
    pub reads: Option<Reads>,
}

/// How a value is put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// What must be true of the key.
    pub expect: Expectation,
    /// When the value is gone.
    pub expiry: Expiry,
    /// What travels with the entry.
    pub headers: Headers,
}

impl PutOptions {
    /// The value is gone `ttl` after it was written.
    pub fn ttl(ttl: Duration) -> Self {
        Self { expiry: Expiry::After(ttl), ..Self::default() }
    }
}

/// How a value is created where none is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// When the value is gone.
    pub expiry: Expiry,
    /// What travels with the entry.
    pub headers: Headers,
}

impl CreateOptions {
    /// The value is gone `ttl` after it was written.
    pub fn ttl(ttl: Duration) -> Self {
        Self { expiry: Expiry::After(ttl), ..Self::default() }
    }
}

/// How a value takes the place of one that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateOptions {
    /// When the value is gone.
    pub expiry: Expiry,
    /// What travels with the entry.
    pub headers: Headers,
}

impl UpdateOptions {
    /// The value is gone `ttl` after it was written.
    pub fn ttl(ttl: Duration) -> Self {
        Self { expiry: Expiry::After(ttl), ..Self::default() }
    }
}

/// How a key is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// What must be true of the key.
    pub expect: Expectation,
    /// What travels with the marker.
    pub headers: Headers,
}

/// How a key is purged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeOptions {
    /// What must be true of the key.
    pub expect: Expectation,
    /// What travels with the marker.
    pub headers: Headers,
}

/// Which entries a scan reads, and how. For a single page, see [`ScanQuery`](crate::ScanQuery).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Which keys.
    pub selection: Selection,
    /// In which order.
    pub direction: Direction,
    /// The most entries it yields; none means all.
    pub limit: Option<usize>,
    /// Leaves the values out.
    pub keys_only: bool,
}

/// Which keys are listed, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeysOptions {
    /// Which keys.
    pub selection: Selection,
    /// In which order.
    pub direction: Direction,
    /// The most keys it yields; none means all.
    pub limit: Option<usize>,
}

/// Which changes a watch delivers, and from when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// A change is delivered if its key passes any of these; none means every key.
    pub filters: Vec<KeyFilter>,
    /// Where it begins.
    pub start: WatchStart,
}

/// Which changes a consumer delivers, and where it begins if it is new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumeOptions {
    /// Where it is created; one that is there goes on where it was.
    pub start: ConsumerStart,
    /// A change is delivered if its key passes any of these; none means every key. They are not remembered.
    pub filters: Vec<KeyFilter>,
}

impl From<WatchOptions> for WatchQuery {
    fn from(WatchOptions { filters, start }: WatchOptions) -> Self {
        Self { filters, start }
    }
}

impl From<KeysOptions> for ScanOptions {
    fn from(KeysOptions { selection, direction, limit }: KeysOptions) -> Self {
        Self { selection, direction, limit, keys_only: true }
    }
}
