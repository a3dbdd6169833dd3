use pleach_engine::InvalidName;

/// Why a codec could not encode or decode something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// What the codec made of it is no key: most often, it is too long.
    #[error("it makes no key")]
    Key(#[source] InvalidName),
    /// What is to be decoded was not made by this codec.
    #[error("it is not {codec}: {reason}")]
    Malformed {
        /// The codec.
        codec: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Decoded, it would take more memory than allowed.
    #[error("decoded from {codec} it has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// The codec.
        codec: &'static str,
        /// What it would take.
        bytes: u64,
        /// What it may take.
        limit: usize,
    },
    /// What is to be encoded cannot be.
    #[error("it cannot be written as {codec}: {reason}")]
    Refused {
        /// The codec.
        codec: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl CodecError {
    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Key(error) => error.help(),
            Self::Malformed { .. } => "use the codec it was written with",
            Self::TooLarge { .. } => "raise the codec's limit if the value is to be trusted",
            Self::Refused { .. } => "correct it, or choose another codec",
        }
    }

    pub(crate) fn malformed(codec: &'static str, reason: impl ToString) -> Self {
        Self::Malformed { codec, reason: reason.to_string() }
    }

    pub(crate) fn refused(codec: &'static str, reason: impl ToString) -> Self {
        Self::Refused { codec, reason: reason.to_string() }
    }
}
