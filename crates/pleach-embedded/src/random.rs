use pleach_engine::EngineError;

/// A random number.
pub(crate) fn word() -> Result<u64, EngineError> {
    #[cfg(test)]
    if let Some(word) = seeded::word() {
        return Ok(word);
    }
    getrandom::u64().map_err(|_| no_randomness())
}

/// Sixteen random bytes.
pub(crate) fn bytes() -> Result<[u8; 16], EngineError> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word()?.to_le_bytes());
    bytes[8..].copy_from_slice(&word()?.to_le_bytes());
    Ok(bytes)
}

fn no_randomness() -> EngineError {
    EngineError::Bug { what: "the operating system gives no random numbers".into() }
}

/// Numbers that follow from a seed, for the thread that asked for them.
#[cfg(test)]
pub(crate) mod seeded {
    use std::cell::Cell;

    thread_local! {
        static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// From now on this thread draws what follows from `seed`; with none, what the operating system gives.
    pub(crate) fn set(seed: Option<u64>) {
        STATE.set(seed);
    }

    /// The next number, if this thread has a seed.
    pub(super) fn word() -> Option<u64> {
        let mut state = STATE.get()?;
        let word = next(&mut state);
        STATE.set(Some(state));
        Some(word)
    }

    /// The next number of `state`, by the rule of SplitMix64.
    pub(crate) fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = *state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}
