use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pleach_engine::Durability;

use super::{
    Amplification, BucketUsage, CommitStatus, ConsumerLag, DiskStatus, HeldSnapshot, HotSpot, HotStatus,
    IndexStatus, Latency, LevelStatus, LogStatus, MemoryStatus, Operations, ProcessStatus, Rates, Stall,
    Status,
};
use crate::catalog::Bucket;
use crate::consumers::Consumer;
use crate::core::Core;
use crate::index::IndexStats;
use crate::log::{BucketId, Segment};
use crate::meters::{Counts, Latencies, Sample, Share};
use crate::pressure::{StallCause, delay};

/// So many buckets and consumers are listed.
const BUCKETS_MAX: usize = 64;
const CONSUMERS_MAX: usize = 8;

/// Whoever keeps changes for longer and for more bytes than this keeps them for ever.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const FOR_EVER_BYTES: u64 = 1 << 40;

impl Status {
    /// Looks over an open store.
    pub(crate) fn of(core: &Core) -> Self {
        let (meters, stats, segments) = (&core.meters, core.index.stats(), core.log.segments());
        let (then, now) = (meters.recent.minute_ago(), Self::latencies(core));
        let log = log_status(core, &segments);
        let (bucket_count, buckets) = buckets(core, &segments);
        let (consumer_count, consumers) = consumers(core, &segments);
        let read_only = core.health.is_poisoned().then(|| core.health.reason());
        Self {
            time: core.clock.now(),
            closed: core.health.is_closed(),
            read_only,
            revision: core.snapshots.visible(),
            process: process(core, &stats),
            gets: Operations { count: meters.gets.total(), ..operations(&now.gets, &then.gets) },
            scans: operations(&now.scans, &then.scans),
            puts: operations(&now.puts, &then.puts),
            records: meters.puts.total(),
            commits: commits(core, operations(&now.syncs, &then.syncs)),
            stalls: stalls(core),
            amplification: amplification(&log, &stats),
            log,
            index: index_status(core, &stats),
            oldest_snapshot: oldest_snapshot(core),
            bucket_count,
            buckets,
            consumer_count,
            consumers,
            hot: hot(core),
            rates: rates(&meters.recent.samples()),
            disk: disk(&core.directory),
            unwritten_reports: meters.unwritten_reports.load(Ordering::Relaxed),
        }
    }

    /// The counters as they are now.
    pub(super) fn sample(core: &Core) -> Sample {
        let (meters, stats) = (&core.meters, core.index.stats());
        let groups = meters.group_sizes.snapshot();
        Sample {
            at: core.elapsed(),
            gets: meters.gets.total(),
            puts: meters.puts.total(),
            scans: meters.scan_times.snapshot().count(),
            commits: meters.put_times.snapshot().count(),
            groups: groups.count(),
            log_bytes: meters.log_bytes.load(Ordering::Relaxed),
            flushed_bytes: stats.flushed_bytes,
            merged_bytes: stats.merge_written_bytes,
            cleaned_bytes: core.cleaned.bytes().1,
            stalled: StallCause::ALL.iter().map(|cause| core.pressure.time(*cause)).sum(),
            sync_p99: Duration::ZERO,
        }
    }

    pub(super) fn latencies(core: &Core) -> Latencies {
        let meters = &core.meters;
        Latencies {
            gets: meters.get_times.snapshot(),
            scans: meters.scan_times.snapshot(),
            puts: meters.put_times.snapshot(),
            syncs: core.log.syncs.counts(),
        }
    }
}

fn operations(now: &Counts, minute_ago: &Counts) -> Operations {
    Operations { count: now.count(), all: latency(now), minute: latency(&now.since(minute_ago)) }
}

fn latency(counts: &Counts) -> Latency {
    let at = |per_mille| Duration::from_nanos(counts.per_mille(per_mille));
    Latency {
        timed: counts.count(),
        p50: at(500),
        p90: at(900),
        p99: at(990),
        p999: at(999),
        max: Duration::from_nanos(counts.max()),
    }
}

/// None if there is nothing to be a part of.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn process(core: &Core, stats: &IndexStats) -> ProcessStatus {
    let name = std::env::current_exe().ok();
    let name = name.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let (open_files, open_files_max) = open_files();
    ProcessStatus {
        id: std::process::id(),
        name: name.unwrap_or_default(),
        opened: core.meters.opened.0,
        uptime: core.meters.uptime(),
        memory: MemoryStatus {
            index_bytes: stats.memory_bytes,
            cache_bytes_max: core.settings.cache_bytes,
            feed_bytes: core.catalog.all().iter().map(|bucket| bucket.feed.bytes() as u64).sum(),
            waiting_bytes: core.meters.waiting_bytes.load(Ordering::Relaxed),
        },
        open_files,
        open_files_max,
    }
}

#[cfg(unix)]
fn open_files() -> (Option<u64>, Option<u64>) {
    // One of them is the directory itself, while it is being read.
    let open = std::fs::read_dir("/dev/fd").map(|entries| entries.count().saturating_sub(1) as u64).ok();
    (open, rustix::process::getrlimit(rustix::process::Resource::Nofile).current)
}

#[cfg(not(unix))]
fn open_files() -> (Option<u64>, Option<u64>) {
    (None, None)
}

#[cfg(unix)]
fn disk(directory: &Path) -> Option<DiskStatus> {
    let found = rustix::fs::statvfs(directory).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(DiskStatus { bytes: bytes(found.f_blocks), free_bytes: bytes(found.f_bavail) })
}

#[cfg(not(unix))]
fn disk(_directory: &Path) -> Option<DiskStatus> {
    None
}

fn commits(core: &Core, syncs: Operations) -> CommitStatus {
    let groups = core.meters.group_sizes.snapshot();
    let commits = core.meters.put_times.snapshot().count();
    CommitStatus {
        groups: groups.count(),
        group_mean: ratio(commits, groups.count()).unwrap_or_default(),
        group_p50: groups.per_mille(500),
        group_p99: groups.per_mille(990),
        group_max: groups.max(),
        syncs,
        waiting: core.meters.waiting_commits.load(Ordering::Relaxed),
        waiting_bytes: core.meters.waiting_bytes.load(Ordering::Relaxed),
    }
}

fn stalls(core: &Core) -> Vec<Stall> {
    let current = delay(core);
    let stall = |cause: StallCause| Stall {
        cause,
        time: core.pressure.time(cause),
        now: current.filter(|(slowest, _)| *slowest == cause).map(|(_, delay)| delay),
    };
    StallCause::ALL.map(stall).into()
}

fn log_status(core: &Core, segments: &[Arc<Segment>]) -> LogStatus {
    let (cleaned_bytes, rewritten_bytes) = core.cleaned.bytes();
    let (_, garbage_bytes) = core.cleaned.estimate();
    LogStatus {
        segments: segments.len(),
        bytes: segments.iter().map(|segment| segment.len()).sum(),
        garbage_bytes,
        replaced_bytes: core.log.replaced().iter().map(|segment| segment.len()).sum(),
        written_bytes: core.meters.log_bytes.load(Ordering::Relaxed),
        cleaned_bytes,
        rewritten_bytes,
        cleaning: core.settings.clean,
        trouble: core.health.cleaning_trouble(),
    }
}

fn index_status(core: &Core, stats: &IndexStats) -> IndexStatus {
    let (backlog, meters) = (core.index.backlog(), &core.meters);
    let time = |micros: &std::sync::atomic::AtomicU64| Duration::from_micros(micros.load(Ordering::Relaxed));
    let (hits, misses) = (meters.entry_hits.total(), meters.entry_misses.total());
    let obstacle = core.health.obstacle();
    IndexStatus {
        unsealed_bytes: core.index.unsealed_bytes(),
        waiting_flushes: backlog.sealed,
        waiting_merges: backlog.runs,
        pending_merge_bytes: stats.pending_merge_bytes,
        replay_bytes: core.unsealed_log.load(Ordering::Acquire),
        trouble: obstacle.map(|path| format!("no space is left for {}", path.display())),
        flushes: stats.flushes,
        flushed_bytes: stats.flushed_bytes,
        flush_time: time(&meters.flush_micros),
        merges: stats.merges,
        merge_read_bytes: stats.merge_read_bytes,
        merge_written_bytes: stats.merge_written_bytes,
        merge_time: time(&meters.merge_micros),
        tables: stats.tables,
        table_bytes: stats.table_bytes,
        entries: stats.entries,
        tombstones: stats.tombstones,
        tombstone_ratio: ratio(stats.tombstones, stats.entries),
        levels: stats.levels.iter().map(|one| LevelStatus { tables: one.tables, bytes: one.bytes }).collect(),
        entry_cache_hit_rate: ratio(hits, hits + misses),
        block_cache_hit_rate: ratio(stats.block_hits, stats.block_hits + stats.block_reads),
        filter_rate: ratio(stats.filter_skips, stats.filter_skips + stats.filter_false_passes),
    }
}

fn amplification(log: &LogStatus, stats: &IndexStats) -> Amplification {
    let index_written = stats.flushed_bytes + stats.merge_written_bytes;
    let written = log.written_bytes + log.rewritten_bytes + index_written;
    let on_disk = log.bytes + log.replaced_bytes + stats.table_bytes;
    Amplification {
        write: ratio(written, log.written_bytes),
        space: ratio(on_disk, log.bytes.saturating_sub(log.garbage_bytes)),
        read_tables: ratio(stats.tables_looked_at, stats.gets),
        read_blocks: ratio(stats.block_reads, stats.gets),
    }
}

fn oldest_snapshot(core: &Core) -> Option<HeldSnapshot> {
    let now = core.elapsed();
    let revision = core.snapshots.oldest(now);
    if revision >= core.snapshots.visible() {
        return None;
    }
    let since = core.meters.oldest().filter(|(noted, _)| *noted == revision).map_or(now, |(_, since)| since);
    Some(HeldSnapshot { revision, age: now.saturating_sub(since) })
}

/// How many buckets there are, and the largest.
fn buckets(core: &Core, segments: &[Arc<Segment>]) -> (u64, Vec<BucketUsage>) {
    let mut held: HashMap<BucketId, (u64, u64)> =
        core.log.unfinished().iter().map(|(id, summary)| (*id, (summary.records, summary.bytes))).collect();
    for (id, summary) in segments.iter().filter_map(|segment| segment.footer()).flat_map(|one| &one.buckets) {
        let (records, bytes) = held.entry(*id).or_default();
        (*records, *bytes) = (*records + summary.records, *bytes + summary.bytes);
    }
    let mut all = core.catalog.all();
    let count = all.len() as u64;
    all.sort_by_key(|bucket| std::cmp::Reverse(held.get(&bucket.id).map_or(0, |(_, bytes)| *bytes)));
    all.truncate(BUCKETS_MAX);
    let usages = core.cleaned.usage();
    let usage = |bucket: &Arc<Bucket>| {
        let (records, bytes) = held.get(&bucket.id).copied().unwrap_or_default();
        let usage = usages.get(&bucket.id).copied().unwrap_or_default();
        let (config, settings) = (bucket.config(), &core.settings);
        let dead_bytes = usage.dead.min(bytes);
        BucketUsage {
            name: bucket.name.to_string(),
            records,
            bytes,
            live_bytes: bytes - dead_bytes,
            feed_bytes: usage.faded.min(bytes - dead_bytes),
            dead_bytes,
            last_revision: bucket.last(),
            feed_floor: bucket.feed_floor(),
            watches: bucket.feed.watches() as u64,
            consumers: bucket.consumers.len() as u64,
            buffered: config.durability == Durability::Buffered,
            feed_for_ever: config.feed_time.or(settings.feed_time).is_none_or(|time| time >= FOR_EVER)
                && config.feed_bytes.or(settings.feed_bytes).is_none_or(|bytes| bytes >= FOR_EVER_BYTES),
        }
    };
    (count, all.iter().map(usage).collect())
}

/// How many consumers there are, and those furthest behind.
fn consumers(core: &Core, segments: &[Arc<Segment>]) -> (u64, Vec<ConsumerLag>) {
    let (mut count, mut behind) = (0, Vec::new());
    for bucket in core.catalog.all().into_iter().filter(|bucket| bucket.consumers.len() > 0) {
        let after = bucket.last().get() + 1;
        let all = bucket.consumers.all();
        count += all.len() as u64;
        let lag = |consumer: &Consumer| after.saturating_sub(consumer.info.next.get());
        behind.extend(all.into_iter().map(|consumer| (lag(&consumer), Arc::clone(&bucket), consumer)));
        behind.sort_by_key(|(revisions, ..)| std::cmp::Reverse(*revisions));
        behind.truncate(CONSUMERS_MAX);
    }
    let now = core.clock.now();
    let lag = |(revisions, bucket, consumer): (u64, Arc<Bucket>, Consumer)| {
        let next = consumer.info.next;
        let summaries = segments.iter().filter_map(|segment| segment.footer()?.buckets.get(&bucket.id));
        ConsumerLag {
            bucket: bucket.name.to_string(),
            name: consumer.info.name.to_string(),
            next,
            revisions,
            bytes: summaries.filter(|summary| summary.last >= next).map(|summary| summary.bytes).sum(),
            bytes_max: core.settings.consumer_bytes,
            lost: next < bucket.feed_floor(),
            idle: consumer.info.acknowledged.map(|moved| now.since(moved)),
        }
    };
    (count, behind.into_iter().map(lag).collect())
}

fn hot(core: &Core) -> HotStatus {
    let spot = |share: Share| {
        let bucket = core.catalog.by_id(share.bucket)?;
        Some(HotSpot { bucket: bucket.name.to_string(), key: share.text, share: share.share })
    };
    let spots = |shares: Vec<Share>| shares.into_iter().filter_map(spot).collect();
    let (get_keys, get_prefixes) = core.meters.hot_gets.shares();
    let (put_keys, put_prefixes) = core.meters.hot_puts.shares();
    HotStatus {
        get_keys: spots(get_keys),
        get_prefixes: spots(get_prefixes),
        put_keys: spots(put_keys),
        put_prefixes: spots(put_prefixes),
    }
}

fn rates(samples: &[Sample]) -> Rates {
    let each = |counter: fn(&Sample) -> u64| {
        let rate = |pair: &[Sample]| {
            let millis = pair[1].at.saturating_sub(pair[0].at).as_millis().max(1);
            let grown = u128::from(counter(&pair[1]).saturating_sub(counter(&pair[0])));
            u64::try_from((grown * 1000 + millis / 2) / millis).unwrap_or(u64::MAX)
        };
        samples.windows(2).map(rate).collect()
    };
    let group_size = |pair: &[Sample]| {
        let groups = pair[1].groups.saturating_sub(pair[0].groups).max(1);
        (pair[1].commits.saturating_sub(pair[0].commits) + groups / 2) / groups
    };
    Rates {
        gets: each(|sample| sample.gets),
        puts: each(|sample| sample.puts),
        scans: each(|sample| sample.scans),
        log_bytes: each(|sample| sample.log_bytes),
        flushed_bytes: each(|sample| sample.flushed_bytes),
        merged_bytes: each(|sample| sample.merged_bytes),
        cleaned_bytes: each(|sample| sample.cleaned_bytes),
        group_sizes: samples.windows(2).map(group_size).collect(),
        sync_p99: samples.iter().skip(1).map(|sample| sample.sync_p99).collect(),
        stalled: samples.windows(2).map(|pair| pair[1].stalled.saturating_sub(pair[0].stalled)).collect(),
    }
}
