//! What the change of a schema does to values.

mod arrays;
mod branches;
mod change;
mod identical;
mod kinship;
mod number;
mod objects;
mod place;
mod rename;
mod scalars;
mod types;
mod walk;

use super::Steps;
use walk::Walk;

pub(super) use change::{Change, Holds};
pub(super) use place::Root;

/// The most changes of one schema that are listed.
const CHANGES_MAX: usize = 2_000;

/// Compares two schemas, and says whether there are more changes than are listed.
///
/// `keys` are the places of a value that keys are made of. If no change stands against it in one direction, every value
/// that the one schema accepts is accepted by the other.
pub(super) fn diff(
    old: &Root<'_>,
    new: &Root<'_>,
    keys: &[String],
    steps: &mut Steps,
) -> (Vec<Change>, bool) {
    if old.schema == new.schema {
        return (Vec::new(), false);
    }
    Walk::new(old, new, keys, steps).run()
}
