use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Compares two numbers exactly, a whole one with a fraction too.
pub(super) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => against(left, right.as_f64()?),
        (None, Some(right)) => against(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// Whether every multiple of `inner` is one of `outer`. Only what is certain: fractions are not divided.
pub(super) fn divides(outer: &Number, inner: &Number) -> bool {
    const EXACT_MAX: i128 = 1 << 53;
    match (exact(outer), exact(inner)) {
        (Some(outer), Some(inner)) => {
            outer > 0 && outer < EXACT_MAX && inner < EXACT_MAX && inner % outer == 0
        }
        _ => compare(outer, inner) == Some(Ordering::Equal),
    }
}

/// The number of a keyword, if it has one.
pub(super) fn number(value: Option<&Value>) -> Option<&Number> {
    match value {
        Some(Value::Number(number)) => Some(number),
        _ => None,
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// A whole number, also if it is written with a fraction of zero.
fn exact(number: &Number) -> Option<i128> {
    whole(number).or_else(|| crate::text::whole(number.as_f64()?).as_ref().and_then(whole))
}

#[allow(clippy::cast_possible_truncation, reason = "only what fits is cast")]
fn against(whole: i128, float: f64) -> Option<Ordering> {
    // Beyond this, no whole number of a document is larger.
    const LIMIT: f64 = 1e30;
    if float.is_nan() {
        return None;
    }
    if float.abs() > LIMIT {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let cut = float.trunc() as i128;
    Some(whole.cmp(&cut).then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}
