use super::resource::{KEEP_MAX, Period, Retention};
use crate::key::{Date, Time};

const HOUR_SECONDS: i64 = 3600;
const MONTHS: i64 = 12;
/// 1970 began on a Thursday, three days after a Monday.
const DAYS_AFTER_MONDAY: i64 = 3;

impl Retention {
    /// The first moment that is kept at `now`: where the oldest bucket of time begins. None before the year 0, where
    /// nothing is dropped.
    #[must_use]
    pub fn border(&self, now: Time) -> Option<Time> {
        // More than any contract may keep is all there is.
        let keep = i64::try_from(self.keep).ok().filter(|_| self.keep <= KEEP_MAX)?;
        let back = keep.saturating_sub(1);
        let (date, days) = (now.date(), now.date().days());
        match self.bucket {
            Period::Hour => Time::new((now.seconds().div_euclid(HOUR_SECONDS) - back) * HOUR_SECONDS, 0),
            Period::Day => Date::from_days(days - back)?.first_second(),
            Period::Week => {
                let week = (days + DAYS_AFTER_MONDAY).div_euclid(7) - back;
                Date::from_days(week * 7 - DAYS_AFTER_MONDAY)?.first_second()
            }
            Period::Month => {
                let month = i64::from(date.year()) * MONTHS + i64::from(date.month()) - 1 - back;
                first_of(month.div_euclid(MONTHS), month.rem_euclid(MONTHS) + 1)
            }
            Period::Year => first_of(i64::from(date.year()) - back, 1),
        }
    }
}

fn first_of(year: i64, month: i64) -> Option<Time> {
    Date::new(u16::try_from(year).ok()?, u8::try_from(month).ok()?, 1)?.first_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Saturday.
    fn now() -> Time {
        let noon = Date::new(2026, 7, 4).and_then(Date::first_second).unwrap().seconds() + 12 * HOUR_SECONDS;
        Time::new(noon + 1800, 5).unwrap()
    }

    fn border(bucket: Period, keep: u64) -> Option<String> {
        Retention { segment: "at".into(), bucket, keep }.border(now()).map(|time| time.to_string())
    }

    #[test]
    fn a_border_is_the_beginning_of_the_oldest_bucket_that_is_kept() {
        for (bucket, keep, expected) in [
            (Period::Hour, 1, "2026-07-04T12:00:00Z"),
            (Period::Hour, 14, "2026-07-03T23:00:00Z"),
            (Period::Day, 1, "2026-07-04T00:00:00Z"),
            (Period::Day, 5, "2026-06-30T00:00:00Z"),
            (Period::Week, 1, "2026-06-29T00:00:00Z"),
            (Period::Week, 2, "2026-06-22T00:00:00Z"),
            (Period::Month, 1, "2026-07-01T00:00:00Z"),
            (Period::Month, 8, "2025-12-01T00:00:00Z"),
            (Period::Month, 84, "2019-08-01T00:00:00Z"),
            (Period::Year, 1, "2026-01-01T00:00:00Z"),
            (Period::Year, 2027, "0000-01-01T00:00:00Z"),
        ] {
            assert_eq!(border(bucket, keep).as_deref(), Some(expected), "{bucket:?} {keep}");
        }
    }

    #[test]
    fn nothing_lies_before_the_first_year() {
        assert_eq!(border(Period::Year, 2028), None);
        assert_eq!(border(Period::Month, 100_000), None);
        assert_eq!(border(Period::Week, u64::MAX), None);
    }
}
