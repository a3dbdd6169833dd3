use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment, in microseconds since 1970-01-01T00:00:00Z, from then to the end of the year 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The last moment that RFC 3339 can write.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// The moment this many microseconds after 1970 began; one past [`Timestamp::MAX`] is cut to it.
    pub const fn from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 { Self::MAX } else { Self(micros) }
    }

    /// Microseconds since 1970 began.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The moment `duration` later, if it can be written.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let micros = u64::try_from(duration.as_micros()).ok()?;
        self.0.checked_add(micros).filter(|sum| *sum <= Self::MAX.0).map(Self)
    }

    /// The moment `duration` later, or the last one there is.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self::MAX)
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    fn of(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }
}

/// Writes RFC 3339 with microseconds, such as `2026-07-05T10:15:30.000250Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_micros(self.0);
        humantime::format_rfc3339_micros(time).fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = humantime::TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339(text).map(Self::of)
    }
}

/// Called when a clock was moved by hand, so that whoever sleeps until some moment looks again.
pub type WakeHook = dyn Fn() + Send + Sync;

/// Where an engine takes the time from. Passed in, so that a test can hold it still.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time of day. It may jump in either direction.
    fn now(&self) -> Timestamp;

    /// Time passed since some fixed moment. It never goes back.
    fn elapsed(&self) -> Duration;

    /// Asks to be called when [`Clock::now`] was moved by hand. A clock that only ticks need not call.
    fn on_jump(&self, hook: Weak<WakeHook>);
}

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// The clock of the machine.
    #[allow(clippy::disallowed_methods, reason = "this is the clock the others are told to take")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock the others are told to take")]
    fn now(&self) -> Timestamp {
        Timestamp::of(SystemTime::now())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn on_jump(&self, _hook: Weak<WakeHook>) {}
}

/// A clock that moves only when told to.
#[derive(Default)]
pub struct ManualClock {
    state: Mutex<ManualState>,
}

#[derive(Default)]
struct ManualState {
    now: Timestamp,
    elapsed: Duration,
    hooks: Vec<Weak<WakeHook>>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { state: Mutex::new(ManualState { now, ..ManualState::default() }) }
    }

    /// Lets `duration` pass.
    pub fn advance(&self, duration: Duration) {
        self.change(|state| {
            state.now = state.now.saturating_add(duration);
            state.elapsed += duration;
        });
    }

    /// Sets the time of day, forwards or backwards, as an operator might.
    pub fn jump_to(&self, now: Timestamp) {
        self.change(|state| state.now = now);
    }

    fn change(&self, change: impl FnOnce(&mut ManualState)) {
        let hooks: Vec<_> = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut state);
            state.hooks.retain(|hook| hook.strong_count() > 0);
            state.hooks.iter().filter_map(Weak::upgrade).collect()
        };
        for hook in hooks {
            hook();
        }
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({})", self.now())
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    fn elapsed(&self) -> Duration {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).elapsed
    }

    fn on_jump(&self, hook: Weak<WakeHook>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).hooks.push(hook);
    }
}

/// A clock's time of day, made to never go back, so that what has expired stays expired.
///
/// While the clock under it is behind the latest time it has shown, time goes on at the pace of
/// [`Clock::elapsed`], so that what is written meanwhile still expires after its TTL.
#[derive(Debug)]
pub struct SteadyClock {
    clock: Arc<dyn Clock>,
    shown: Mutex<Shown>,
}

#[derive(Debug)]
struct Shown {
    now: Timestamp,
    at: Duration,
}

impl SteadyClock {
    /// Steadies `clock`, which shall show nothing before `floor`.
    pub fn new(clock: Arc<dyn Clock>, floor: Timestamp) -> Self {
        let shown = Shown { now: floor, at: clock.elapsed() };
        Self { clock, shown: Mutex::new(shown) }
    }

    /// Shows nothing before `floor` from now on.
    pub fn raise(&self, floor: Timestamp) {
        self.now();
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.now = shown.now.max(floor);
    }

    /// The time, never before one that was returned earlier.
    pub fn now(&self) -> Timestamp {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order: if the clock ticks between the two, the tick is not counted twice.
        let (now, elapsed) = (self.clock.now(), self.clock.elapsed());
        let paced = shown.now.saturating_add(elapsed.saturating_sub(shown.at));
        *shown = Shown { now: now.max(paced), at: elapsed };
        shown.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_clock_never_goes_back_and_keeps_its_pace() {
        let manual = Arc::new(ManualClock::new(Timestamp::from_micros(1_000)));
        let steady = SteadyClock::new(Arc::clone(&manual) as Arc<dyn Clock>, Timestamp::default());
        assert_eq!(steady.now().as_micros(), 1_000);
        manual.jump_to(Timestamp::from_micros(9_000));
        assert_eq!(steady.now().as_micros(), 9_000);
        manual.jump_to(Timestamp::from_micros(10));
        manual.advance(Duration::from_micros(5));
        assert_eq!(steady.now().as_micros(), 9_005);
    }

    #[test]
    fn timestamps_survive_their_text() {
        for micros in [0, 1, 1_730_000_000_123_456, Timestamp::MAX.as_micros()] {
            let time = Timestamp::from_micros(micros);
            assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        }
        assert_eq!(Timestamp::from_micros(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.checked_add(Duration::from_micros(1)), None);
    }
}
