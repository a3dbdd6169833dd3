use super::*;

const START: Duration = Duration::from_secs(1000);

fn snapshots(visible: u64) -> Arc<Snapshots> {
    Arc::new(Snapshots::new(Revision::new(visible)))
}

/// Leases the newest revision, and goes on to the next.
fn lease_and_go_on(snapshots: &Arc<Snapshots>, now: Duration) -> Revision {
    let snapshot = snapshots.open();
    snapshots.lease(&snapshot, now);
    snapshots.publish(snapshot.revision.next());
    snapshot.revision
}

#[test]
fn the_oldest_revision_is_the_oldest_that_is_open() {
    let snapshots = snapshots(5);
    assert_eq!(snapshots.oldest(START), Revision::new(5));
    let (first, again) = (snapshots.open(), snapshots.open());
    snapshots.publish(Revision::new(9));
    let second = snapshots.open();
    snapshots.publish(Revision::new(12));
    assert_eq!(snapshots.oldest(START), first.revision);
    drop(first);
    assert_eq!(snapshots.oldest(START), Revision::new(5), "someone else reads it too");
    drop(again);
    assert_eq!(snapshots.oldest(START), second.revision);
    drop(second);
    assert_eq!(snapshots.oldest(START), Revision::new(12));
}

#[test]
fn a_leased_revision_can_be_read_again_until_the_lease_ends() {
    let snapshots = snapshots(5);
    let leased = lease_and_go_on(&snapshots, START);
    let last_moment = START + PAGE_LEASE - Duration::from_nanos(1);
    assert_eq!(snapshots.oldest(last_moment), leased);
    assert_eq!(snapshots.reopen(leased, last_moment).map(|snapshot| snapshot.revision), Some(leased));
    assert!(snapshots.reopen(leased, START + PAGE_LEASE).is_none());
    assert_eq!(snapshots.oldest(START + PAGE_LEASE), Revision::new(6));
}

#[test]
fn a_lease_is_renewed_with_every_page() {
    let snapshots = snapshots(5);
    let leased = lease_and_go_on(&snapshots, START);
    let later = START + PAGE_LEASE / 2;
    let snapshot = snapshots.reopen(leased, later).unwrap();
    snapshots.lease(&snapshot, later);
    drop(snapshot);
    assert!(snapshots.reopen(leased, START + PAGE_LEASE).is_some());
}

#[test]
fn a_revision_that_was_never_leased_is_read_again_only_while_it_is_the_newest() {
    let snapshots = snapshots(5);
    assert!(snapshots.reopen(Revision::new(5), START).is_some());
    assert!(snapshots.reopen(Revision::new(6), START).is_none(), "from the future");
    snapshots.publish(Revision::new(6));
    assert!(snapshots.reopen(Revision::new(5), START).is_none());
}

#[test]
fn past_the_limit_the_oldest_lease_is_given_up() {
    let snapshots = snapshots(1);
    let leased: Vec<_> = (0..=LEASES_MAX).map(|_| lease_and_go_on(&snapshots, START)).collect();
    assert!(snapshots.reopen(leased[0], START).is_none());
    assert!(leased[1..].iter().all(|revision| snapshots.reopen(*revision, START).is_some()));
    assert_eq!(snapshots.oldest(START), leased[1]);
}

#[test]
fn an_open_snapshot_outlives_its_lease() {
    let snapshots = snapshots(5);
    let leased = lease_and_go_on(&snapshots, START);
    let open = snapshots.reopen(leased, START).unwrap();
    assert_eq!(snapshots.oldest(START + PAGE_LEASE), leased);
    drop(open);
    assert_eq!(snapshots.oldest(START + PAGE_LEASE), Revision::new(6));
}
