use std::fmt;
use std::str::FromStr;

use crate::bucket::checked_name;
use crate::{EngineError, InvalidName, Revision, Timestamp};

/// The most consumers of one bucket.
pub const CONSUMERS_MAX: usize = 1000;

/// The name of a consumer: `[a-zA-Z0-9_-]+`, at most 128 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerName(Box<str>);

impl ConsumerName {
    /// Checks `text`.
    ///
    /// # Errors
    /// Says which rule `text` breaks, and where.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        checked_name(text.as_ref()).map(Self)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConsumerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ConsumerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for ConsumerName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

/// Where a consumer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsumerStart {
    /// With the oldest change that is kept: at the floor of the bucket's feed.
    #[default]
    Oldest,
    /// With the next change.
    Now,
    /// With the change at this revision, or the first after it.
    Revision(Revision),
}

impl ConsumerStart {
    /// The revision it means in a bucket whose feed begins at `floor`, in a store whose newest revision is
    /// `newest`.
    ///
    /// # Errors
    /// `FutureRevision` past the revision after `newest`, `Compacted` below `floor`.
    pub fn resolve(self, floor: Revision, newest: Revision) -> Result<Revision, EngineError> {
        match self {
            Self::Oldest => Ok(floor),
            Self::Now => Ok(newest.next()),
            Self::Revision(asked) if asked > newest.next() => {
                Err(EngineError::FutureRevision { asked, newest })
            }
            Self::Revision(asked) if asked < floor => Err(EngineError::Compacted { oldest: floor }),
            Self::Revision(asked) => Ok(asked),
        }
    }
}

/// A consumer as it is now: a place in the feed of a bucket that outlives whoever reads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerInfo {
    /// Its name.
    pub name: ConsumerName,
    /// The first revision that is not acknowledged: where a watch for it begins.
    pub next: Revision,
    /// When it was created.
    pub created: Timestamp,
    /// When an acknowledgement last moved it; none since it was created or reset.
    pub acknowledged: Option<Timestamp>,
}

impl ConsumerInfo {
    /// Moves it past `revision`, unless it is there already. Says whether it moved.
    pub fn acknowledge(&mut self, revision: Revision, now: Timestamp) -> bool {
        let moves = revision >= self.next;
        if moves {
            (self.next, self.acknowledged) = (revision.next(), Some(now));
        }
        moves
    }

    /// Moves it to `next`, forward or back, as if it had just been created there.
    pub fn reset(&mut self, next: Revision) {
        (self.next, self.acknowledged) = (next, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Revision {
        Revision::new(number)
    }

    #[test]
    fn a_name_follows_the_rules_of_bucket_names() {
        assert_eq!(ConsumerName::parse("mail_2-b").unwrap().as_str(), "mail_2-b");
        assert!(ConsumerName::parse("x".repeat(128)).is_ok());
        for bad in ["", "a.b", "a b", "ü", &"x".repeat(129)] {
            assert!(ConsumerName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_start_lies_between_the_floor_and_the_next_revision() {
        let resolve = |start: ConsumerStart| start.resolve(at(5), at(9));
        assert_eq!(resolve(ConsumerStart::Oldest).unwrap(), at(5));
        assert_eq!(resolve(ConsumerStart::Now).unwrap(), at(10));
        for fits in 5..=10 {
            assert_eq!(resolve(ConsumerStart::Revision(at(fits))).unwrap(), at(fits));
        }
        let below = resolve(ConsumerStart::Revision(at(4)));
        assert!(matches!(below, Err(EngineError::Compacted { oldest }) if oldest == at(5)));
        for far in [at(11), at(u64::MAX)] {
            let ahead = resolve(ConsumerStart::Revision(far));
            assert!(matches!(ahead, Err(EngineError::FutureRevision { asked, newest })
                if asked == far && newest == at(9)));
        }
    }

    #[test]
    fn only_an_acknowledgement_that_moves_it_leaves_its_time() {
        let (name, created) = (ConsumerName::parse("c").unwrap(), Timestamp::default());
        let mut info = ConsumerInfo { name, next: at(5), created, acknowledged: None };
        let moment = Timestamp::from_micros;
        assert!(!info.acknowledge(at(4), moment(1)));
        assert_eq!((info.next, info.acknowledged), (at(5), None));
        assert!(info.acknowledge(at(5), moment(2)));
        assert!(!info.acknowledge(at(5), moment(3)));
        assert_eq!((info.next, info.acknowledged), (at(6), Some(moment(2))));
        info.reset(at(2));
        assert_eq!((info.next, info.acknowledged), (at(2), None));
    }
}
