use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pleach_engine::{EngineError, Revision};

use super::{Segment, SegmentId, Segments};

/// Puts the segments that were found in order. They must hold every revision from the first on; those that
/// cleaned ones have taken the place of are set apart.
///
/// # Errors
/// `Corrupt`, naming the segment that is missing, or shorter or longer than it should be.
pub(super) fn link(mut found: Vec<Arc<Segment>>, directory: &Path) -> Result<Segments, EngineError> {
    // Of those that begin at the same revision, the one cleaned last comes first, and reaches furthest.
    found.sort_by_key(|segment| (segment.first(), std::cmp::Reverse(segment.id().generation)));
    let mut segments = Segments { replaced: HashMap::new(), ..Segments::default() };
    let mut before: Option<Arc<Segment>> = None;
    for segment in found {
        if before.as_ref().is_some_and(|before| covers(before, &segment)) {
            segment.set_replaced();
            segments.replaced.insert(segment.id(), segment);
            continue;
        }
        check(before.as_deref(), &segment, directory)?;
        segments.current.insert(segment.first(), Arc::clone(&segment));
        before = Some(segment);
    }
    Ok(segments)
}

/// Whether `cleaned` was made from `segment`, among others.
fn covers(cleaned: &Segment, segment: &Segment) -> bool {
    let last = cleaned.footer().filter(|_| cleaned.id().generation > 0).map(|footer| footer.last);
    cleaned.first() == segment.first() || last.is_some_and(|last| segment.first() <= last)
}

/// Checks that `segment` follows `before`.
fn check(before: Option<&Segment>, segment: &Segment, directory: &Path) -> Result<(), EngineError> {
    let Some(before) = before else {
        let is_first = segment.first() == Revision::new(1);
        return if is_first { Ok(()) } else { Err(missing(directory, expected(segment, Revision::new(1)))) };
    };
    if before.id().generation > 0 || before.header.format > 1 {
        let Some(footer) = before.footer() else {
            return Err(before.damaged(before.len(), "the segment has lost its end"));
        };
        if footer.last.next() != segment.first() {
            return Err(missing(directory, expected(segment, footer.last.next())));
        }
    }
    if before.id().generation > 0 {
        return Ok(());
    }
    match segment.header.previous {
        Some((first, len)) if first == before.first() && len == before.len() => Ok(()),
        Some((first, len)) if first == before.first() => {
            let found = before.len();
            Err(before
                .damaged(found.min(len), format!("the segment should have {len} bytes and has {found}")))
        }
        Some((first, _)) => Err(missing(directory, first)),
        None => Err(segment.damaged(48, "the segment says it is the first, and is not")),
    }
}

/// The first revision of the segment that should be before `segment`, as far as that is known.
fn expected(segment: &Segment, least: Revision) -> Revision {
    segment.header.previous.map_or(least, |(first, _)| first.max(least))
}

fn missing(directory: &Path, first: Revision) -> EngineError {
    let path = directory.join(SegmentId::new(first).file_name());
    EngineError::Corrupt { path, offset: 0, what: "the segment is missing".into() }
}

#[cfg(test)]
mod tests;
