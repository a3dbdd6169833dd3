use std::fmt;
use std::str::FromStr;

/// A number of bytes, as people write and read it: `512`, `64KiB`, `1MiB`, `2MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(digits_end);
        let unit = unit.trim_start();
        let factor = match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
            Some((_, factor)) => *factor,
            None if unit.is_empty() => 1,
            None => return Err(format!("{unit:?} is no unit of size: use B, KiB, MiB, GiB, KB, MB or GB")),
        };
        let number: u64 = digits.parse().map_err(|_| "a size is a whole number and a unit, such as 64KiB")?;
        number.checked_mul(factor).map(Self).ok_or_else(|| "the size is too large".into())
    }
}

/// Whole sizes are written exactly, others to one decimal.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        let text = match UNITS[..3].iter().find(|(_, factor)| bytes >= *factor) {
            None => format!("{bytes} B"),
            Some((unit, factor)) if bytes.is_multiple_of(*factor) => format!("{} {unit}", bytes / factor),
            Some((unit, factor)) => {
                // Tenths in whole numbers, rounded down, so that nothing is said to be larger than it is.
                let tenths = u128::from(bytes) * 10 / u128::from(*factor);
                format!("{}.{} {unit}", tenths / 10, tenths % 10)
            }
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_any_unit() {
        for (text, bytes) in
            [("0", 0), ("512", 512), ("7B", 7), ("64KiB", 65_536), ("1mib", 1 << 20), ("2 MB", 2_000_000)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "MiB", "1 XB", "-1", "1.5MiB", "99999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1 << 20, "1 MiB"),
            (3 << 30, "3 GiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
