use std::str::FromStr;

use pleach_engine::{Headers, InvalidHeader, Key, Revision};
use pleach_stores::Keeper;

/// Where the position of a migration is kept: in the target's bucket, written together with what it is about, so that
/// the two can never disagree. All of it is in headers, which every bucket takes, however small its values are.
pub(super) const POSITION_KEY: &str = Keeper::MIGRATION_KEY;

/// What a migration is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Copying what live keys had at the beginning, in the order of keys.
    Copy,
    /// Copying what other keys had, as far as the feed still knows of them.
    Markers,
    /// Repeating every change since.
    Follow,
}

impl Phase {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Copy, "copy"), (Self::Markers, "markers"), (Self::Follow, "follow")];

    pub(super) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(phase, _)| *phase == self).map_or("", |(_, name)| name)
    }
}

/// How far a migration has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) phase: Phase,
    /// The newest revision of the source when the migration began: what is newer comes by its feed.
    pub(super) base: Revision,
    /// The last key that is copied whole.
    pub(super) after: Option<Key>,
    /// The last key of which something may have been copied.
    pub(super) until: Option<Key>,
    /// The first change that is not repeated.
    pub(super) next: Revision,
    /// Records written to the target so far.
    pub(super) records: u64,
    /// What their keys, values and headers take.
    pub(super) bytes: u64,
}

impl Position {
    /// At the beginning, for a source whose newest revision is `base`.
    pub(super) fn new(base: Revision) -> Self {
        let (phase, next) = (Phase::Copy, base.next());
        Self { phase, base, after: None, until: None, next, records: 0, bytes: 0 }
    }

    /// As it is written by step `step` of the process `run`, so that each write can be told from every other.
    pub(super) fn headers(&self, run: u64, step: u64) -> Result<Headers, InvalidHeader> {
        let mut headers = Headers::new();
        headers.set("Phase", self.phase.as_str())?;
        for (name, key) in [("After", &self.after), ("Until", &self.until)] {
            if let Some(key) = key {
                headers.set(name, key.as_str())?;
            }
        }
        let numbers = [
            ("Base", self.base.get()),
            ("Next", self.next.get()),
            ("Records", self.records),
            ("Bytes", self.bytes),
            ("Run", run),
            ("Step", step),
        ];
        for (name, number) in numbers {
            headers.set(name, &number.to_string())?;
        }
        Ok(headers)
    }

    /// Reads it; none if it cannot be one.
    pub(super) fn read(headers: &Headers) -> Option<Self> {
        let number = |name| u64::from_str(headers.get(name)?).ok();
        let key = |name| headers.get(name).map(Key::parse_reserved).transpose().ok();
        let phase = headers.get("Phase")?;
        Some(Self {
            phase: Phase::ALL.iter().find(|(_, name)| *name == phase)?.0,
            base: Revision::new(number("Base")?),
            after: key("After")?,
            until: key("Until")?,
            next: Revision::new(number("Next")?),
            records: number("Records")?,
            bytes: number("Bytes")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_its_headers() {
        let longest = Key::parse("x".repeat(pleach_engine::KEY_BYTES_MAX)).unwrap();
        let begun = Position::new(Revision::new(7));
        let far = Position {
            phase: Phase::Markers,
            after: Some(longest.clone()),
            until: Some(longest),
            records: u64::MAX,
            bytes: u64::MAX,
            ..begun.clone()
        };
        for position in [begun, far] {
            let headers = position.headers(u64::MAX, u64::MAX).unwrap();
            assert_eq!(Position::read(&headers).unwrap(), position);
        }
        assert_eq!(Position::read(&Headers::new()), None);
    }
}
