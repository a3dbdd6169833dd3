/// The value below which `share` of the sorted `values` lie, by nearest rank. None if there are none.
#[allow(clippy::cast_possible_truncation, reason = "the rank is between 1 and the length")]
pub(crate) fn percentile(values: &mut [u64], share: f64) -> Option<u64> {
    values.sort_unstable();
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).copied()
}

/// The middle of `values`, or the mean of the two in the middle. None if there are none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        assert_eq!(percentile(&mut values, 0.5), Some(500));
        assert_eq!(percentile(&mut values, 0.999), Some(999));
        assert_eq!(percentile(&mut values, 1.0), Some(1000));
        assert_eq!(percentile(&mut [7], 0.001), Some(7));
        assert_eq!(percentile(&mut [], 0.5), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
