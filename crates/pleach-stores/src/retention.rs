use pleach_contract::key::{Date, Time, Value};
use pleach_contract::{Period, Retention};
use pleach_engine::Timestamp;

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// 1970 began on a Thursday, and weeks begin on Mondays.
const FIRST_MONDAY: i64 = 4 * DAY;

/// The moment before which retention keeps nothing: the beginning of the oldest bucket of time that is kept. None if
/// that lies before all time.
pub(crate) fn border(retention: &Retention, now: Timestamp) -> Option<Time> {
    let seconds = i64::try_from(now.as_micros() / 1_000_000).ok()?;
    let before = i64::try_from(retention.keep.saturating_sub(1)).ok()?;
    let of_length = |length: i64, origin: i64| {
        let current = (seconds - origin).div_euclid(length) * length + origin;
        Time::new(current.checked_sub(before.checked_mul(length)?)?, 0)
    };
    match retention.bucket {
        Period::Hour => of_length(HOUR, 0),
        Period::Day => of_length(DAY, 0),
        Period::Week => of_length(WEEK, FIRST_MONDAY),
        Period::Month => {
            let (year, month) = year_and_month(now)?;
            month_begin(year * 12 + month - 1 - before)
        }
        Period::Year => month_begin((year_and_month(now)?.0 - before) * 12),
    }
}

/// Whether the value of a key segment lies before the border.
pub(crate) fn is_before(value: &Value<'_>, border: Time) -> bool {
    match value {
        Value::Time(time) => *time < border,
        Value::Date(date) => date.first_second().is_some_and(|begin| begin < border),
        _ => false,
    }
}

fn year_and_month(now: Timestamp) -> Option<(i64, i64)> {
    let text = now.to_string();
    let mut parts = text.split('-').map(str::parse::<i64>);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// The beginning of a month, counted from that of the year 0.
fn month_begin(months: i64) -> Option<Time> {
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    Date::new(u16::try_from(year).ok()?, u8::try_from(month).ok()?, 1)?.first_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bucket: Period, keep: u64, expected: &str) {
        let now: Timestamp = "2026-03-11T10:15:30Z".parse().unwrap();
        let retention = Retention { segment: "at".into(), bucket, keep };
        let border = border(&retention, now).map(|border| border.to_system_time().unwrap());
        let expected: Timestamp = expected.parse().unwrap();
        let expected = std::time::UNIX_EPOCH + std::time::Duration::from_micros(expected.as_micros());
        assert_eq!(border, Some(expected), "{bucket:?} {keep}");
    }

    #[test]
    fn a_border_is_the_beginning_of_the_oldest_bucket_that_is_kept() {
        check(Period::Hour, 1, "2026-03-11T10:00:00Z");
        check(Period::Hour, 11, "2026-03-11T00:00:00Z");
        check(Period::Day, 1, "2026-03-11T00:00:00Z");
        check(Period::Day, 12, "2026-02-28T00:00:00Z");
        check(Period::Week, 1, "2026-03-09T00:00:00Z");
        check(Period::Month, 1, "2026-03-01T00:00:00Z");
        check(Period::Month, 4, "2025-12-01T00:00:00Z");
        check(Period::Year, 2, "2025-01-01T00:00:00Z");
    }
}
