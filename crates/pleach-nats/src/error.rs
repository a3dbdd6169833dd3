use async_nats::{RequestError, RequestErrorKind};
use pleach_engine::EngineError;

/// Error numbers of JetStream that mean something to us.
pub(crate) mod number {
    /// Servers that shall keep a bucket are not there, or not yet.
    pub(crate) const NO_SUITABLE_PEERS: u64 = 10005;
    pub(crate) const NOT_ENABLED: u64 = 10076;
    pub(crate) const NOT_ENABLED_FOR_ACCOUNT: u64 = 10039;
    pub(crate) const NO_MESSAGE: u64 = 10037;
    pub(crate) const NAME_IN_USE: u64 = 10058;
    pub(crate) const STREAM_NOT_FOUND: u64 = 10059;
    pub(crate) const WRONG_LAST_SEQUENCE: u64 = 10071;
    /// The same, where replicas have not yet agreed on what comes before.
    pub(crate) const WRONG_LAST_SEQUENCE_SOON: u64 = 10164;
    /// An earlier attempt to publish the same message is being agreed on.
    pub(crate) const DUPLICATE_IN_PROCESS: u64 = 10158;
    pub(crate) const SEALED: u64 = 10109;
    /// The stream is full, or could not be written to.
    pub(crate) const STORE_FAILED: u64 = 10077;
    pub(crate) const BATCH_INCOMPLETE: u64 = 10176;
    pub(crate) const BATCH_DUPLICATE: u64 = 10201;
}

/// What servers call temporary and is not.
const LASTING: [u64; 3] = [number::NOT_ENABLED, number::NOT_ENABLED_FOR_ACCOUNT, number::STORE_FAILED];

/// Why a request to the server brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// Nobody listens: there is no such stream, no leader, or no JetStream. Nothing was done.
    #[error("nobody answers for it")]
    NoResponders,
    /// There is no connection. Nothing was done.
    #[error("there is no connection to a server")]
    Away,
    /// No answer came: it may have been done.
    #[error("no answer came: {0}")]
    Lost(String),
    /// The server said no.
    #[error("{description} ({number})")]
    Server { code: u64, number: u64, description: String },
    /// The server said something else than expected.
    #[error("its answer cannot be understood: {0}")]
    Malformed(String),
    /// We may not publish there. Nothing was done.
    #[error("publishing to {0} is not permitted")]
    Denied(String),
    /// It was never sent.
    #[error("{0}")]
    Unsendable(String),
}

impl ApiError {
    pub(crate) fn is(&self, wanted: u64) -> bool {
        matches!(self, Self::Server { number, .. } if *number == wanted)
    }

    /// Whether trying again soon may help, and nothing was done so far.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::NoResponders | Self::Away => true,
            Self::Server { number, .. } if LASTING.contains(number) => false,
            // It is busy, has no leader, or misses others.
            Self::Server { code, number, .. } => {
                matches!(*code, 429 | 503) || *number == number::NO_SUITABLE_PEERS
            }
            Self::Lost(_) | Self::Malformed(_) | Self::Denied(_) | Self::Unsendable(_) => false,
        }
    }

    /// The error of an engine that could not `action` because of this.
    pub(crate) fn refused(self, action: impl Into<String>) -> EngineError {
        match self {
            Self::NoResponders | Self::Away | Self::Lost(_) => {
                EngineError::Unreachable { reason: self.to_string() }
            }
            Self::Server { number: number::NOT_ENABLED | number::NOT_ENABLED_FOR_ACCOUNT, .. } => {
                EngineError::Unsupported { what: "JetStream: the server or its account has it turned off" }
            }
            Self::Server { .. } if self.is_temporary() => {
                EngineError::Unreachable { reason: self.to_string() }
            }
            Self::Denied(_) => EngineError::Denied { action: action.into(), reason: self.to_string() },
            Self::Server { .. } | Self::Malformed(_) | Self::Unsendable(_) => {
                EngineError::Refused { action: action.into(), reason: self.to_string() }
            }
        }
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        match error.kind() {
            RequestErrorKind::NoResponders => Self::NoResponders,
            RequestErrorKind::TimedOut | RequestErrorKind::Other => Self::Lost(error.to_string()),
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                Self::Unsendable(error.to_string())
            }
        }
    }
}
