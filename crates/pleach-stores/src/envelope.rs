use pleach_engine::{Headers, InvalidHeader};

/// What travels with a value of a contract, in the headers of its entry: the value itself stays as it was written, so
/// that whoever knows nothing of contracts can read it. `docs/formats/envelope.md` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The version of the schema that the value has.
    pub version: String,
    /// The digest of the contract that wrote it.
    pub writer: String,
    /// What it was written for, if someone said so.
    pub trace: Option<String>,
}

impl Envelope {
    /// The header with the version.
    pub const VERSION: &'static str = "Pleach-Version";
    /// The header with the writer's digest.
    pub const WRITER: &'static str = "Pleach-Contract";
    /// The header with the trace id.
    pub const TRACE: &'static str = "Trace-Id";

    /// The envelope in an entry's headers; none if it was written without one.
    pub fn read(headers: &Headers) -> Option<Self> {
        Some(Self {
            version: headers.get(Self::VERSION)?.to_owned(),
            writer: headers.get(Self::WRITER).unwrap_or_default().to_owned(),
            trace: headers.get(Self::TRACE).map(str::to_owned),
        })
    }

    /// Writes it into the headers of an entry.
    ///
    /// # Errors
    /// If a part of it cannot be a header.
    pub fn write(&self, headers: &mut Headers) -> Result<(), InvalidHeader> {
        headers.set(Self::VERSION, &self.version)?;
        headers.set(Self::WRITER, &self.writer)?;
        match &self.trace {
            Some(trace) => headers.set(Self::TRACE, trace),
            None => Ok(()),
        }
    }
}
