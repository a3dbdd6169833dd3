use std::fmt;
use std::time::{Duration, SystemTime};

use super::coding::{push_digits, read_digits};

const DAY_SECONDS: i64 = 86_400;
/// The years that keys can hold are those of four digits.
const YEAR_MAX: i64 = 9999;
/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// A day of the Gregorian calendar, from the year 0 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// The earliest.
    pub const MIN: Self = Self { year: 0, month: 1, day: 1 };
    /// The latest.
    pub const MAX: Self = Self { year: 9999, month: 12, day: 31 };

    /// That day, if there is one in the calendar.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let fits = i64::from(year) <= YEAR_MAX && day >= 1 && day <= days_of(year, month);
        fits.then_some(Self { year, month, day })
    }

    /// The year.
    pub const fn year(self) -> u16 {
        self.year
    }

    /// The month, from 1.
    pub const fn month(self) -> u8 {
        self.month
    }

    /// The day of the month, from 1.
    pub const fn day(self) -> u8 {
        self.day
    }

    /// The moment in which it begins, in UTC.
    pub fn first_second(self) -> Option<Time> {
        Time::new(self.days() * DAY_SECONDS, 0)
    }

    /// How many days it lies after 1 January 1970, or before it.
    pub(crate) fn days(self) -> i64 {
        // Years that begin in March have their leap day at the end, where it is in nobody's way.
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        era * DAYS_OF_400_YEARS + year * 365 + year / 4 - year / 100 + day_of_year - DAYS_BEFORE_1970
    }

    pub(crate) fn from_days(days: i64) -> Option<Self> {
        let days = days.checked_add(DAYS_BEFORE_1970)?;
        let (era, day_of_era) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
        let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let year = era.checked_mul(400)? + year + i64::from(month >= 10);
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self::new(u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
    }

    pub(super) fn push(self, into: &mut String) {
        push_digits(into, self.year.into(), 4);
        push_digits(into, self.month.into(), 2);
        push_digits(into, self.day.into(), 2);
    }

    pub(super) fn read(token: &[u8]) -> Option<Self> {
        if token.len() != 8 {
            return None;
        }
        let number = |from: usize, to: usize| read_digits(&token[from..to]);
        let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
        Self::new(u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
    }
}

/// `2026-07-05`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn days_of(year: u16, month: u8) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// A moment to the nanosecond, without leap seconds, from the year 0 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Since 1970, rounded down.
    seconds: i64,
    nanoseconds: u32,
}

impl Time {
    /// So many seconds after 1970, or before it, and so many nanoseconds more. None outside the years 0 to 9999.
    pub fn new(seconds: i64, nanoseconds: u32) -> Option<Self> {
        let days = Date::MIN.days()..=Date::MAX.days();
        let fits = nanoseconds < 1_000_000_000 && days.contains(&seconds.div_euclid(DAY_SECONDS));
        fits.then_some(Self { seconds, nanoseconds })
    }

    /// So many milliseconds after 1970, or before it.
    pub fn from_milliseconds(milliseconds: i64) -> Option<Self> {
        let nanoseconds = u32::try_from(milliseconds.rem_euclid(1000) * 1_000_000).ok()?;
        Self::new(milliseconds.div_euclid(1000), nanoseconds)
    }

    /// Whole seconds since 1970, rounded down.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// What is left of a second.
    pub const fn nanoseconds(self) -> u32 {
        self.nanoseconds
    }

    /// The day it lies in, in UTC.
    pub fn date(self) -> Date {
        self.date_and_second().0
    }

    /// The same as the standard library has it, if that can hold it.
    pub fn to_system_time(self) -> Option<SystemTime> {
        let nanoseconds = Duration::from_nanos(self.nanoseconds.into());
        let seconds = Duration::from_secs(self.seconds.unsigned_abs());
        let whole = if self.seconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(seconds)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(seconds)
        };
        whole?.checked_add(nanoseconds)
    }

    /// Whether so many digits of a fraction of a second are enough for it.
    pub(super) fn fits(self, fraction_digits: u8) -> bool {
        self.nanoseconds.is_multiple_of(unit(fraction_digits))
    }

    pub(super) fn push(self, into: &mut String, fraction_digits: u8) {
        let (date, second) = self.date_and_second();
        date.push(into);
        into.push('T');
        push_digits(into, second / 3600 * 10_000 + second / 60 % 60 * 100 + second % 60, 6);
        if fraction_digits > 0 {
            into.push('_');
            push_digits(into, (self.nanoseconds / unit(fraction_digits)).into(), fraction_digits.into());
        }
        into.push('Z');
    }

    pub(super) fn read(token: &[u8], fraction_digits: u8) -> Option<Self> {
        if token.len() != time_bytes(fraction_digits) || token[8] != b'T' || token[token.len() - 1] != b'Z' {
            return None;
        }
        let number = |from: usize, to: usize| read_digits(&token[from..to]);
        let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let fraction = match fraction_digits {
            0 => 0,
            _ if token[15] != b'_' => return None,
            _ => u32::try_from(number(16, token.len() - 1)?).ok()? * unit(fraction_digits),
        };
        let second = i64::try_from(hour * 3600 + minute * 60 + second).ok()?;
        Self::new(Date::read(&token[..8])?.days() * DAY_SECONDS + second, fraction)
    }

    fn date_and_second(self) -> (Date, u64) {
        let date = Date::from_days(self.seconds.div_euclid(DAY_SECONDS)).unwrap_or(Date::MIN);
        (date, u64::try_from(self.seconds.rem_euclid(DAY_SECONDS)).unwrap_or(0))
    }
}

/// How long a time is in a key.
pub(super) const fn time_bytes(fraction_digits: u8) -> usize {
    "20260705T101530Z".len() + if fraction_digits == 0 { 0 } else { 1 + fraction_digits as usize }
}

/// The nanoseconds of the last digit.
const fn unit(fraction_digits: u8) -> u32 {
    10_u32.pow(9_u32.saturating_sub(fraction_digits as u32))
}

/// `2026-07-05T10:15:30.5Z`, with as many digits of the second as it takes.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, second) = self.date_and_second();
        write!(f, "{date}T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)?;
        if self.nanoseconds > 0 {
            let fraction = format!("{:09}", self.nanoseconds);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl TryFrom<SystemTime> for Time {
    type Error = TimeOutOfRange;

    fn try_from(time: SystemTime) -> Result<Self, TimeOutOfRange> {
        let (seconds, nanoseconds) = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => (i64::try_from(since.as_secs()).ok(), since.subsec_nanos()),
            Err(before) => {
                let before = before.duration();
                let seconds = i64::try_from(before.as_secs()).ok().map(|seconds| -seconds);
                match before.subsec_nanos() {
                    0 => (seconds, 0),
                    nanoseconds => (seconds.map(|seconds| seconds - 1), 1_000_000_000 - nanoseconds),
                }
            }
        };
        seconds.and_then(|seconds| Self::new(seconds, nanoseconds)).ok_or(TimeOutOfRange)
    }
}

/// A time before the year 0 or after 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOutOfRange;

impl fmt::Display for TimeOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time is not within the years 0 to 9999")
    }
}

impl std::error::Error for TimeOutOfRange {}
