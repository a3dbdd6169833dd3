use pleach_engine::EngineError;

/// A random number.
pub(crate) fn word() -> Result<u64, EngineError> {
    getrandom::u64().map_err(|_| no_randomness())
}

/// Sixteen random bytes.
pub(crate) fn bytes() -> Result<[u8; 16], EngineError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| no_randomness())?;
    Ok(bytes)
}

fn no_randomness() -> EngineError {
    EngineError::Bug { what: "the operating system gives no random numbers".into() }
}
