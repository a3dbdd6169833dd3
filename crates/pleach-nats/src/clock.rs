use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pleach_engine::{Clock, Timestamp};

/// The time of the servers, as far as it can be known from here.
///
/// Records carry a time that their writer gives them, and expire by it. For all writers to mean the same, each takes the
/// clock of this machine and corrects it by what the servers' answers tell: an answer was given after its question was
/// asked and before it came back, so a correction that contradicts this is moved just so far that it does not.
#[derive(Debug)]
pub(crate) struct ServerClock {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Microseconds to add to the clock of this machine.
    correction: i64,
    /// The latest time that was told: none is told before it.
    told: Timestamp,
}

impl ServerClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::new(State::default()) }
    }

    /// The time, never before one that was told earlier.
    pub(crate) fn now(&self) -> Timestamp {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.told = state.told.max(corrected(self.clock.now(), state.correction));
        state.told
    }

    /// Time passed since some fixed moment.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// When a question is asked, for [`ServerClock::heard`].
    pub(crate) fn asked(&self) -> Timestamp {
        self.clock.now()
    }

    /// Learns from an answer that was given at `server` time to a question of `asked`.
    pub(crate) fn heard(&self, asked: Timestamp, server: Timestamp) {
        let difference = |local: Timestamp| signed(server).saturating_sub(signed(local));
        let (least, most) = (difference(self.clock.now()), difference(asked));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if least <= most {
            state.correction = state.correction.clamp(least, most);
        }
    }
}

fn signed(time: Timestamp) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn corrected(time: Timestamp, correction: i64) -> Timestamp {
    Timestamp::from_micros(time.as_micros().saturating_add_signed(correction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_engine::ManualClock;

    #[test]
    fn answers_correct_the_clock_and_time_never_goes_back() {
        let manual = Arc::new(ManualClock::new(Timestamp::from_micros(1_000_000)));
        let clock = ServerClock::new(Arc::clone(&manual) as Arc<dyn Clock>);
        assert_eq!(clock.now().as_micros(), 1_000_000);
        let asked = clock.asked();
        manual.advance(Duration::from_micros(100));
        // The server was 500 to 600 ahead; so much is certain.
        clock.heard(asked, Timestamp::from_micros(1_000_600));
        assert_eq!(clock.now().as_micros(), 1_000_600);
        // An answer that fits changes nothing.
        let asked = clock.asked();
        manual.advance(Duration::from_micros(200));
        clock.heard(asked, Timestamp::from_micros(1_000_700));
        assert_eq!(clock.now().as_micros(), 1_000_800);
        // One that says the server is behind stops the clock until it is so late.
        clock.heard(clock.asked(), Timestamp::from_micros(1_000_000));
        assert_eq!(clock.now().as_micros(), 1_000_800);
    }
}
