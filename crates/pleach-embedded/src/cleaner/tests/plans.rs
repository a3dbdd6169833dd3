use std::path::Path;
use std::sync::Arc;

use pleach_engine::Revision;

use crate::cleaner::plan::{Candidates, Plan};
use crate::cleaner::survey::{Estimate, Survey};
use crate::faults::SimDisk;
use crate::log::{Footer, Segment, SegmentHeader, SegmentId, StoreId};

const SEGMENT_BYTES: u64 = 1000;

/// Segments of so many bytes each, of which so many are garbage, one after the other.
fn given(segments: &[(u64, u64)]) -> (Vec<Arc<Segment>>, Survey) {
    let disk = SimDisk::default();
    let mut survey = Survey::default();
    let segment = |(number, (bytes, dead)): (u64, &(u64, u64))| {
        let (format, salt, previous) = (SegmentHeader::FORMAT, number, None);
        let id = SegmentId::new(Revision::new(number * 10 + 1));
        let header = SegmentHeader { format, store: StoreId([7; 16]), id, salt, previous };
        let segment = Segment::prepare(&disk, Path::new("log"), header).expect("a segment");
        segment.set_len(*bytes);
        segment.finish(Footer { last: Revision::new(number * 10 + 10), ..Footer::default() });
        let mut estimate = Estimate::unknown(*bytes);
        estimate.dead = *dead;
        survey.set(id, estimate);
        Arc::new(segment)
    };
    let segments = (0..).zip(segments).map(segment).collect();
    (segments, survey)
}

fn plan(segments: &[(u64, u64)]) -> Option<Plan> {
    let (segments, survey) = given(segments);
    Candidates { segments: &segments, survey: &survey, segment_bytes: SEGMENT_BYTES, eager: false }.plan()
}

/// Which of the segments are to become one.
fn chosen(segments: &[(u64, u64)]) -> Vec<u64> {
    let run = plan(segments).map(|plan| plan.run).unwrap_or_default();
    run.iter().map(|segment| (segment.first().get() - 1) / 10).collect()
}

#[test]
fn a_log_with_little_garbage_is_left_alone() {
    assert_eq!(chosen(&[(1000, 100), (1000, 250), (1000, 100), (1000, 250), (1000, 50)]), [0_u64; 0]);
    assert_eq!(chosen(&[]), [0_u64; 0]);
}

#[test]
fn the_segment_that_frees_most_for_its_cost_comes_first() {
    assert_eq!(chosen(&[(1000, 100), (1000, 700), (1000, 100), (1000, 600)]), [1]);
    // Less garbage, but nearly all of it: little is written for it.
    assert_eq!(chosen(&[(4000, 2000), (4000, 100), (1000, 900), (4000, 100), (900, 0)])[0], 2);
}

#[test]
fn neighbours_that_are_worth_it_are_cleaned_with_it() {
    assert_eq!(chosen(&[(1000, 100), (1000, 400), (1000, 700), (1000, 300), (1000, 100)]), [1, 2, 3]);
    // What is left of them has the size of two segments at most.
    assert_eq!(chosen(&[(1000, 300), (1000, 300), (1000, 700), (1000, 300), (1000, 300)]).len(), 3);
}

#[test]
fn what_is_left_of_small_neighbours_is_put_together() {
    assert_eq!(chosen(&[(500, 0), (100, 50), (1000, 800), (120, 60), (500, 0), (90, 0)]), [1, 2, 3]);
}

#[test]
fn a_segment_of_nothing_but_garbage_is_taken_at_any_time() {
    assert_eq!(chosen(&[(1000, 0), (1000, 0), (400, 390), (1000, 0), (1000, 0)]), [2]);
}

#[test]
fn too_many_small_segments_become_fewer() {
    let many: Vec<_> = (0..40).map(|_| (50, 0)).collect();
    let run = chosen(&many);
    assert!((2..=16).contains(&run.len()), "{run:?}");
    assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1), "neighbours: {run:?}");
}

#[test]
fn a_log_with_much_garbage_is_urgent() {
    assert!(!plan(&[(1000, 400), (1000, 100)]).unwrap().urgent);
    assert!(plan(&[(1000, 700), (1000, 600)]).unwrap().urgent);
}

#[test]
fn too_many_middling_segments_become_fewer() {
    let many: Vec<_> = (0..80).map(|_| (430, 0)).collect();
    let run = chosen(&many);
    assert!((2..=16).contains(&run.len()), "{run:?}");
}
