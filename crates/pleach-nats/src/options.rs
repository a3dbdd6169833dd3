use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::time::Duration;

use pleach_engine::BucketName;
pub use pleach_engine::Reads;

/// What the keys and values of one bucket may take in memory, unless told otherwise.
const CACHE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Where the servers are, and how buckets lie on them.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// Addresses of servers of one cluster, such as `nats://127.0.0.1:4222`; any of them will do.
    pub servers: Vec<String>,
    /// Who we are.
    pub authentication: Authentication,
    /// How the connection is encrypted.
    pub tls: Tls,
    /// The JetStream domain, if it is not that of the servers connected to.
    pub domain: Option<String>,
    /// What subjects of the JetStream API begin with, if an account imports it under another name.
    pub api_prefix: Option<String>,
    /// What the names of all buckets of this store begin with on the server: several stores can share an account.
    pub namespace: String,
    /// Buckets that do not lie where their name says.
    pub places: BTreeMap<BucketName, BucketPlace>,
    /// On how many servers each new bucket is kept.
    pub replicas: NonZeroU8,
    /// Where new buckets are kept.
    pub storage: Storage,
    /// What reads promise.
    pub reads: Reads,
    /// How scans are done.
    pub scans: Scans,
    /// What keys and values of one bucket may take in memory for scans; a larger bucket is refused.
    pub cache_bytes_max: usize,
    /// The servers run with `sync_interval: always`, which cannot be asked: what they acknowledge is on disk.
    pub servers_sync: bool,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long to go on trying when servers do not answer or have no leader.
    pub patience: Duration,
}

impl NatsOptions {
    /// The options for one server, or for a cluster one of whose servers this is.
    pub fn server(address: impl Into<String>) -> Self {
        Self { servers: vec![address.into()], ..Self::default() }
    }
}

impl Default for NatsOptions {
    fn default() -> Self {
        Self {
            servers: vec!["nats://127.0.0.1:4222".into()],
            authentication: Authentication::None,
            tls: Tls::default(),
            domain: None,
            api_prefix: None,
            namespace: String::new(),
            places: BTreeMap::new(),
            replicas: NonZeroU8::MIN,
            storage: Storage::File,
            reads: Reads::OwnWrites,
            scans: Scans::Cached,
            cache_bytes_max: CACHE_BYTES_MAX,
            servers_sync: false,
            request_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(20),
        }
    }
}

/// Who we are, to the server.
#[derive(Clone, Default)]
pub enum Authentication {
    /// Nobody, or what the address says.
    #[default]
    None,
    /// The file that `nsc` makes for a user.
    Credentials(PathBuf),
    /// A user and a password.
    User {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Token(String),
    /// The seed of an nkey.
    Nkey(String),
}

/// Never shows a secret.
impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Credentials(path) => f.debug_tuple("Credentials").field(path).finish(),
            Self::User { user, .. } => f.debug_struct("User").field("user", user).finish_non_exhaustive(),
            Self::Token(_) => f.write_str("Token"),
            Self::Nkey(_) => f.write_str("Nkey"),
        }
    }
}

/// How the connection is encrypted. A server that asks for TLS gets it in any case.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Refuses a server without it.
    pub required: bool,
    /// Files of root certificates to trust besides those of the machine.
    pub roots: Vec<PathBuf>,
    /// Files of our own certificate and its key, if the server asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Where a bucket lies on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketPlace {
    /// The name of its stream.
    pub stream: String,
    /// What the subjects of its keys begin with, without the last dot.
    pub subjects: String,
}

/// Where a new bucket is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In files of the servers.
    #[default]
    File,
    /// In their memory.
    Memory,
}

/// How scans, counts and pages are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scans {
    /// From an ordered copy of the bucket in memory, which follows its changes. Pages read one snapshot.
    #[default]
    Cached,
    /// From the servers, which must list all keys for it. Nothing is kept in memory, and there are no snapshots.
    Direct,
}
