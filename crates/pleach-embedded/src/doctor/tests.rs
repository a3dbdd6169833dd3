use std::time::Duration;

use pleach_engine::Revision;

use super::*;
use crate::pressure::StallCause;
use crate::status::{BucketUsage, ConsumerLag, DiskStatus, HeldSnapshot, HotSpot, Latency, Stall};

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;

/// A rule, a status in which it speaks with this severity, and one that is nearly the same in which it is silent.
struct Case {
    rule: &'static str,
    severity: Severity,
    speaks: fn(&mut Status),
    silent: fn(&mut Status),
}

fn stall(status: &mut Status, cause: StallCause, now: Option<u64>) {
    let time = Duration::from_millis(5);
    status.stalls.push(Stall { cause, time, now: now.map(Duration::from_millis) });
}

fn syncs(status: &mut Status, timed: u64, millis: u64) {
    status.commits.syncs.minute = Latency { timed, p99: Duration::from_millis(millis), ..Latency::default() };
}

fn spot(share: f64) -> Vec<HotSpot> {
    vec![HotSpot { bucket: "b".into(), key: "k".into(), share }]
}

fn consumer(status: &mut Status, change: impl FnOnce(&mut ConsumerLag)) {
    let mut consumer = ConsumerLag {
        bucket: "b".into(),
        name: "c".into(),
        revisions: 5,
        bytes: 10,
        bytes_max: GIB,
        ..ConsumerLag::default()
    };
    change(&mut consumer);
    status.consumers.push(consumer);
}

const WRITES: &[Case] = &[
    Case {
        rule: "read_only",
        severity: Severity::Problem,
        speaks: |status| status.read_only = Some("an earlier write failed".into()),
        silent: |status| status.closed = true,
    },
    Case {
        rule: "stalled_by_flushes",
        severity: Severity::Warning,
        speaks: |status| stall(status, StallCause::IndexFlush, Some(3)),
        silent: |status| stall(status, StallCause::IndexFlush, None),
    },
    Case {
        rule: "stalled_by_merges",
        severity: Severity::Warning,
        speaks: |status| stall(status, StallCause::IndexMerge, Some(3)),
        silent: |status| stall(status, StallCause::IndexMerge, None),
    },
    Case {
        rule: "stalled_by_cleaning",
        severity: Severity::Warning,
        speaks: |status| {
            stall(status, StallCause::LogCleaning, None);
            status.rates.stalled = vec![Duration::from_millis(100); 10];
        },
        silent: |status| {
            stall(status, StallCause::LogCleaning, None);
            status.rates.stalled = vec![Duration::from_millis(10); 10];
        },
    },
    Case {
        rule: "commits_queue_up",
        severity: Severity::Warning,
        speaks: |status| status.commits.waiting_bytes = 200 * MIB,
        silent: |status| status.commits.waiting_bytes = 20 * MIB,
    },
    Case {
        rule: "write_amplification",
        severity: Severity::Warning,
        speaks: |status| {
            status.log.written_bytes = GIB;
            status.amplification.write = Some(15.0);
        },
        silent: |status| {
            status.log.written_bytes = GIB;
            status.amplification.write = Some(2.0);
        },
    },
];

const DISK: &[Case] = &[
    Case {
        rule: "index_disk_full",
        severity: Severity::Problem,
        speaks: |status| status.index.trouble = Some("no space is left".into()),
        silent: |status| status.index.waiting_flushes = 1,
    },
    Case {
        rule: "disk_nearly_full",
        severity: Severity::Problem,
        speaks: |status| status.disk = Some(DiskStatus { bytes: 100 * GIB, free_bytes: MIB }),
        silent: |status| status.disk = Some(DiskStatus { bytes: 100 * GIB, free_bytes: 50 * GIB }),
    },
    Case {
        rule: "open_files",
        severity: Severity::Warning,
        speaks: |status| (status.process.open_files, status.process.open_files_max) = (Some(900), Some(1024)),
        silent: |status| (status.process.open_files, status.process.open_files_max) = (Some(90), Some(1024)),
    },
    Case {
        rule: "slow_syncs",
        severity: Severity::Warning,
        speaks: |status| syncs(status, 100, 250),
        silent: |status| syncs(status, 100, 3),
    },
    Case {
        rule: "unwritten_reports",
        severity: Severity::Note,
        speaks: |status| status.unwritten_reports = 3,
        silent: |_| {},
    },
];

const LOG: &[Case] = &[
    Case {
        rule: "cleaning_trouble",
        severity: Severity::Warning,
        speaks: |status| status.log.trouble = Some("damaged".into()),
        silent: |_| {},
    },
    Case {
        rule: "cleaning_off",
        severity: Severity::Warning,
        speaks: |status| (status.log.bytes, status.log.cleaning) = (GIB, false),
        silent: |status| (status.log.bytes, status.log.cleaning) = (GIB, true),
    },
    Case {
        rule: "garbage",
        severity: Severity::Warning,
        speaks: |status| (status.log.bytes, status.log.garbage_bytes) = (GIB, GIB / 2),
        silent: |status| (status.log.bytes, status.log.garbage_bytes) = (GIB, GIB / 5),
    },
    Case {
        rule: "old_segments",
        severity: Severity::Warning,
        speaks: |status| (status.log.bytes, status.log.replaced_bytes) = (GIB, GIB),
        silent: |status| (status.log.bytes, status.log.replaced_bytes) = (GIB, GIB / 4),
    },
    Case {
        rule: "space_amplification",
        severity: Severity::Warning,
        speaks: |status| (status.log.bytes, status.amplification.space) = (GIB, Some(5.0)),
        silent: |status| (status.log.bytes, status.amplification.space) = (GIB, Some(1.8)),
    },
    Case {
        rule: "long_replay",
        severity: Severity::Note,
        speaks: |status| status.index.replay_bytes = GIB,
        silent: |status| status.index.replay_bytes = 100 * MIB,
    },
];

const READS: &[Case] = &[
    Case {
        rule: "merges_behind",
        severity: Severity::Warning,
        speaks: |status| (status.index.table_bytes, status.index.pending_merge_bytes) = (GIB, GIB),
        silent: |status| (status.index.table_bytes, status.index.pending_merge_bytes) = (4 * GIB, GIB),
    },
    Case {
        rule: "read_amplification",
        severity: Severity::Warning,
        speaks: |status| status.amplification.read_tables = Some(9.0),
        silent: |status| status.amplification.read_tables = Some(1.3),
    },
    Case {
        rule: "filters",
        severity: Severity::Note,
        speaks: |status| status.index.filter_rate = Some(0.5),
        silent: |status| status.index.filter_rate = Some(0.99),
    },
    Case {
        rule: "block_cache",
        severity: Severity::Note,
        speaks: |status| (status.index.table_bytes, status.index.block_cache_hit_rate) = (GIB, Some(0.4)),
        silent: |status| (status.index.table_bytes, status.index.block_cache_hit_rate) = (0, Some(0.4)),
    },
    Case {
        rule: "tombstones",
        severity: Severity::Warning,
        speaks: |status| (status.index.tombstones, status.index.tombstone_ratio) = (20_000, Some(0.7)),
        silent: |status| (status.index.tombstones, status.index.tombstone_ratio) = (20, Some(0.7)),
    },
];

const USAGE: &[Case] = &[
    Case {
        rule: "old_snapshot",
        severity: Severity::Warning,
        speaks: |status| {
            let (revision, age) = (Revision::new(7), Duration::from_secs(3600));
            status.oldest_snapshot = Some(HeldSnapshot { revision, age });
        },
        silent: |status| status.oldest_snapshot = Some(HeldSnapshot::default()),
    },
    Case {
        rule: "consumer_lost",
        severity: Severity::Problem,
        speaks: |status| consumer(status, |consumer| consumer.lost = true),
        silent: |status| consumer(status, |_| {}),
    },
    Case {
        rule: "consumer_behind",
        severity: Severity::Warning,
        speaks: |status| consumer(status, |consumer| consumer.bytes = GIB),
        silent: |status| consumer(status, |consumer| consumer.bytes = MIB),
    },
    Case {
        rule: "consumer_idle",
        severity: Severity::Note,
        speaks: |status| consumer(status, |consumer| consumer.idle = Some(Duration::from_secs(500_000))),
        silent: |status| consumer(status, |consumer| consumer.idle = Some(Duration::from_secs(5))),
    },
    Case {
        rule: "hot_get_key",
        severity: Severity::Note,
        speaks: |status| status.hot.get_keys = spot(0.6),
        silent: |status| status.hot.get_keys = spot(0.1),
    },
    Case {
        rule: "hot_put_key",
        severity: Severity::Note,
        speaks: |status| status.hot.put_keys = spot(0.6),
        silent: |status| status.hot.put_keys = spot(0.1),
    },
    Case {
        rule: "hot_prefix",
        severity: Severity::Note,
        speaks: |status| status.hot.get_prefixes = spot(0.6),
        silent: |status| status.hot.get_prefixes = spot(1.0),
    },
    Case {
        rule: "buffered",
        severity: Severity::Note,
        speaks: |status| status.buckets.push(BucketUsage { buffered: true, ..BucketUsage::default() }),
        silent: |status| status.buckets.push(BucketUsage::default()),
    },
    Case {
        rule: "feed_for_ever",
        severity: Severity::Note,
        speaks: |status| status.buckets.push(BucketUsage { feed_for_ever: true, ..BucketUsage::default() }),
        silent: |status| status.buckets.push(BucketUsage::default()),
    },
];

fn cases() -> impl Iterator<Item = &'static Case> {
    [WRITES, DISK, LOG, READS, USAGE].into_iter().flatten()
}

fn found(change: fn(&mut Status), rule: &str) -> Option<Finding> {
    let mut status = Status::default();
    status.log.cleaning = true;
    change(&mut status);
    examine(&status).into_iter().find(|finding| finding.rule == rule)
}

#[test]
fn every_rule_speaks_when_it_should_and_only_then() {
    for Case { rule, severity, speaks, silent } in cases() {
        let finding = found(*speaks, rule).unwrap_or_else(|| panic!("{rule} says nothing"));
        assert_eq!(finding.severity, *severity, "{finding:?}");
        for text in [&finding.what, &finding.why, &finding.next] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{text:?}");
        }
        assert_eq!(found(*silent, rule), None, "{rule}");
    }
}

#[test]
fn every_rule_has_its_case() {
    let mut tested: Vec<_> = cases().map(|case| case.rule).collect();
    let mut known: Vec<_> = rules().collect();
    tested.sort_unstable();
    known.sort_unstable();
    assert_eq!(tested, known);
}

#[test]
fn nothing_is_wrong_with_a_store_that_has_done_nothing() {
    assert_eq!(examine(&Status::default()), []);
}

#[test]
fn what_matters_most_comes_first() {
    let mut status = Status { read_only: Some("why".into()), unwritten_reports: 1, ..Status::default() };
    stall(&mut status, StallCause::IndexMerge, Some(3));
    let order: Vec<_> = examine(&status).into_iter().map(|finding| finding.severity).collect();
    assert_eq!(order, [Severity::Problem, Severity::Warning, Severity::Note]);
}
