use std::io::{self, BufRead, Read as _};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::size::Size;

/// The longest line: a value as large as any engine takes, as base64, and what stands around it.
const LINE_BYTES_MAX: u64 = 96 * 1024 * 1024;

/// A place between two lines of the input, with a digest of everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    digest: u64,
}

impl Place {
    /// Before the first line.
    pub(super) const START: Self = Self { bytes: 0, lines: 0, digest: 0xcbf2_9ce4_8422_2325 };

    /// The place after `line`. The digest is FNV-1a: it is to tell inputs apart, not to resist forgery.
    fn after(self, line: &[u8]) -> Self {
        let mix = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self {
            bytes: self.bytes + line.len() as u64,
            lines: self.lines + 1,
            digest: line.iter().fold(self.digest, mix),
        }
    }
}

/// The lines of the input.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    /// After the last line that was taken.
    place: Place,
    /// The line after that, if it was looked at.
    ahead: Option<Vec<u8>>,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `input`, from its beginning.
    pub(super) fn new(input: R) -> Self {
        Self { input, place: Place::START, ahead: None }
    }

    /// Where it is.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The number of the next line, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.place.lines + 1
    }

    /// Reads up to `place`, and makes sure that everything before is what it was.
    pub(super) fn skip_to(&mut self, place: Place) -> anyhow::Result<()> {
        while self.place.bytes < place.bytes && self.peek()?.is_some() {
            self.take();
        }
        if self.place != place {
            bail!("the first {} lines are not those that were imported", place.lines);
        }
        Ok(())
    }

    /// Looks at the next line, without its end; none at the end of the input.
    pub(super) fn peek(&mut self) -> anyhow::Result<Option<&[u8]>> {
        if self.ahead.is_none() {
            self.ahead = self.read().with_context(|| format!("cannot read line {}", self.number()))?;
        }
        Ok(self.ahead.as_deref().map(|line| line.strip_suffix(b"\n").unwrap_or(line)))
    }

    /// Goes past the line that was looked at.
    pub(super) fn take(&mut self) {
        if let Some(line) = self.ahead.take() {
            self.place = self.place.after(&line);
        }
    }

    fn read(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let read = io::Read::by_ref(&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read as u64 == LINE_BYTES_MAX {
            bail!("it is longer than {}", Size(LINE_BYTES_MAX));
        }
        Ok((read > 0).then_some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines<&[u8]>) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(line) = lines.peek().unwrap() {
            seen.push(String::from_utf8(line.to_vec()).unwrap());
            lines.take();
        }
        seen
    }

    #[test]
    fn a_place_can_be_found_again() {
        let input = "one\n\nthree\nlast".as_bytes();
        let mut lines = Lines::new(input);
        lines.peek().unwrap();
        lines.take();
        lines.peek().unwrap();
        lines.take();
        let place = lines.place();
        assert_eq!((place.lines, place.bytes, lines.number()), (2, 5, 3));

        let mut again = Lines::new(input);
        again.skip_to(place).unwrap();
        assert_eq!(all(&mut again), ["three", "last"]);
    }

    #[test]
    fn a_changed_or_shorter_input_is_noticed() {
        let mut lines = Lines::new("one\ntwo\n".as_bytes());
        all(&mut lines);
        let place = lines.place();
        for other in ["one\nTwo\n", "one\n", "", "one\ntwo\t\n", "onetwo\n\n"] {
            assert!(Lines::new(other.as_bytes()).skip_to(place).is_err(), "{other:?}");
        }
        Lines::new("one\ntwo\nthree".as_bytes()).skip_to(place).unwrap();
    }
}
