//! A status for people.

use std::time::Duration;

use pleach::status::{BucketUsage, ConsumerLag, HotSpot, Operations, Status};

use super::Seen;
use crate::chart::Chart;
use crate::output::Output;
use crate::size::Size;
use crate::table::{Column, Table};
use crate::text::{counted, percent, short, time};

/// So wide are sparklines and bars.
const LINE_WIDTH: usize = 30;
const BAR_WIDTH: usize = 10;

/// So many buckets and consumers are shown.
const ROWS_MAX: usize = 10;

/// What there is to say, line by line.
pub(super) fn lines(seen: &Seen, place: &str, output: &Output) -> Vec<String> {
    let (status, paint) = (&seen.status, output.paint());
    let chart = if output.is_terminal() { Chart::Blocks } else { Chart::Plain };
    let mut lines = heading(seen, place);
    let mut table = |table: Table| {
        let mut rows = table.lines().into_iter();
        lines.push(String::new());
        lines.extend(rows.next().map(|heading| paint.bold(&heading)));
        lines.extend(rows);
    };
    if status.gets.count + status.puts.count + status.scans.count + status.commits.syncs.count > 0 {
        table(operations(status, chart));
    }
    if !status.buckets.is_empty() {
        table(buckets(status));
    }
    if !status.consumers.is_empty() {
        table(consumers(&status.consumers));
    }
    let hot = hot(status, chart);
    if !hot.is_empty() {
        lines.push(String::new());
        lines.extend(hot);
    }
    lines.push(String::new());
    let label = |(label, text): (&str, String)| format!("{} {text}", paint.dim(&format!("{label:<10}")));
    lines.extend(figures(status, chart).into_iter().filter(|(_, text)| !text.is_empty()).map(label));
    lines
}

/// The most important of it in one line.
pub(super) fn summary(seen: &Seen) -> String {
    let status = &seen.status;
    let last = |rates: &[u64]| short(rates.last().copied().unwrap_or_default());
    let state = if seen.holder.is_some() { "open" } else { "closed" };
    let stall = status.stalls.iter().find(|stall| stall.now.is_some());
    let stall = stall.map(|stall| format!("  stalled: {}", stall.cause)).unwrap_or_default();
    format!(
        "{}  {state}  revision {}  gets/s {}  puts/s {}  put p99 {}  sync p99 {}  log {}{stall}",
        status.time,
        status.revision,
        last(&status.rates.gets),
        last(&status.rates.puts),
        time(status.puts.minute.p99),
        time(status.commits.syncs.minute.p99),
        Size(status.log.bytes),
    )
}

fn heading(seen: &Seen, place: &str) -> Vec<String> {
    let status = &seen.status;
    let ago = |age: Duration| format!("{} ago", time(age));
    let mut lines = Vec::new();
    match (&seen.holder, seen.age) {
        (Some(holder), Some(age)) => {
            let uptime = time(status.process.uptime);
            lines.push(format!("The store at {place} is open in {holder}, for {uptime} as of {}.", ago(age)));
        }
        (None, Some(age)) => {
            let process = &status.process;
            let end = if status.closed { "closed it" } else { "was last heard of" };
            lines.push(format!("The store at {place} is not open."));
            lines.push(format!(
                "Process {} ({}) had it open for {} and {end} {}; it has left these figures.",
                process.id,
                process.name,
                time(process.uptime),
                ago(age)
            ));
        }
        _ => lines.push(format!("The store at {place} is not open, and nobody has left figures of its use.")),
    }
    if let Some(reason) = &status.read_only {
        lines.push(format!("It takes no more writes: {reason}."));
    }
    lines
}

fn operations(status: &Status, chart: Chart) -> Table {
    let mut table = Table::new([
        Column::Left("OPERATION"),
        Column::Right("COUNT"),
        Column::Right("P50"),
        Column::Right("P90"),
        Column::Right("P99"),
        Column::Right("P99.9"),
        Column::Right("MAX"),
        Column::Right("PER SECOND"),
        Column::Left("LAST MINUTE"),
    ]);
    let rates = &status.rates;
    let mut row = |name: &str, operations: &Operations, rates: Option<&[u64]>| {
        let all = &operations.all;
        let of = |length: Duration| if all.timed == 0 { String::new() } else { time(length) };
        let numbers: Vec<f64> = rates.unwrap_or_default().iter().map(|rate| *rate as f64).collect();
        let rate = rates.and_then(|rates| rates.last()).map(|rate| short(*rate)).unwrap_or_default();
        let mut cells = vec![name.to_owned(), short(operations.count)];
        cells.extend([all.p50, all.p90, all.p99, all.p999, all.max].map(of));
        cells.extend([rate, chart.line(&numbers, LINE_WIDTH)]);
        table.row(cells);
    };
    row("get", &status.gets, Some(&rates.gets));
    row("put", &status.puts, Some(&rates.puts));
    row("scan", &status.scans, Some(&rates.scans));
    row("sync", &status.commits.syncs, None);
    table
}

fn buckets(status: &Status) -> Table {
    let mut table = Table::new([
        Column::Left("BUCKET"),
        Column::Right("LOG"),
        Column::Right("LIVE"),
        Column::Right("FEED ONLY"),
        Column::Right("DEAD"),
        Column::Right("RECORDS"),
        Column::Right("FEED FROM"),
        Column::Right("NEWEST"),
        Column::Right("WATCHES"),
    ]);
    for bucket in status.buckets.iter().take(ROWS_MAX) {
        let BucketUsage { bytes, live_bytes, feed_bytes, dead_bytes, .. } = bucket;
        let live = live_bytes.saturating_sub(*feed_bytes);
        let sizes = [*bytes, live, *feed_bytes, *dead_bytes].map(|size| Size(size).to_string());
        let mut cells = vec![bucket.name.clone()];
        cells.extend(sizes);
        cells.extend([
            short(bucket.records),
            bucket.feed_floor.to_string(),
            bucket.last_revision.to_string(),
            bucket.watches.to_string(),
        ]);
        table.row(cells);
    }
    table
}

fn consumers(consumers: &[ConsumerLag]) -> Table {
    let mut table = Table::new([
        Column::Left("CONSUMER"),
        Column::Right("BEHIND"),
        Column::Right("BYTES"),
        Column::Left("MOVED ON"),
        Column::Left(""),
    ]);
    for consumer in consumers.iter().take(ROWS_MAX) {
        table.row([
            format!("{}/{}", consumer.bucket, consumer.name),
            short(consumer.revisions),
            Size(consumer.bytes).to_string(),
            consumer.idle.map_or_else(|| "never".into(), |idle| format!("{} ago", time(idle))),
            if consumer.lost { "has missed changes".into() } else { String::new() },
        ]);
    }
    table
}

fn hot(status: &Status, chart: Chart) -> Vec<String> {
    let hot = &status.hot;
    let kinds: [(&str, &[HotSpot]); 4] = [
        ("hot gets", &hot.get_keys),
        ("  prefixes", &hot.get_prefixes),
        ("hot puts", &hot.put_keys),
        ("  prefixes", &hot.put_prefixes),
    ];
    let mut lines = Vec::new();
    for (kind, spots) in kinds {
        for (spot, at) in spots.iter().take(3).zip(0..) {
            let (bar, label) = (chart.bar(spot.share, BAR_WIDTH), if at == 0 { kind } else { "" });
            let dots = if kind.starts_with(' ') { ".>" } else { "" };
            lines.push(format!(
                "{label:<10} {bar} {:>5}  {}/{}{dots}",
                percent(spot.share),
                spot.bucket,
                spot.key
            ));
        }
    }
    lines
}

fn figures(status: &Status, chart: Chart) -> Vec<(&'static str, String)> {
    let Status { log, index, commits, process, .. } = status;
    let garbage = log.garbage_bytes as f64 / log.bytes.max(1) as f64;
    let waiting = match commits.waiting {
        0 => "none wait".into(),
        count => format!("{} wait with {}", counted(count, "commit", "commits"), Size(commits.waiting_bytes)),
    };
    let groups = format!("{:.1} a group, at most {}; {waiting}", commits.group_mean, commits.group_max);
    let mut log_text = format!(
        "{}, {}, garbage {} {}",
        Size(log.bytes),
        counted(log.segments as u64, "segment", "segments"),
        chart.bar(garbage, BAR_WIDTH),
        percent(garbage),
    );
    if log.replaced_bytes > 0 {
        log_text += &format!(", {} wait to be removed", Size(log.replaced_bytes));
    }
    let tombstones = index.tombstone_ratio.unwrap_or_default();
    let index_text = format!(
        "{}, {}, {} entries, {} tombstones, {} in memory, {} to replay",
        Size(index.table_bytes),
        counted(index.tables, "table", "tables"),
        short(index.entries),
        percent(tombstones),
        Size(process.memory.index_bytes),
        Size(index.replay_bytes),
    );
    let pending = format!(
        "{} flushes, {} merges ({}), {} of garbage",
        index.waiting_flushes,
        index.waiting_merges,
        Size(index.pending_merge_bytes),
        Size(log.garbage_bytes),
    );
    let snapshot =
        status.oldest_snapshot.map(|held| format!("at revision {} for {}", held.revision, time(held.age)));
    vec![
        ("revision", status.revision.to_string()),
        ("commits", if commits.groups == 0 { String::new() } else { groups }),
        ("stalls", stalls(status)),
        ("log", log_text),
        ("index", index_text),
        ("pending", pending),
        ("written", written(status, chart)),
        ("costs", costs(status)),
        ("hit rates", hit_rates(status)),
        ("snapshot", snapshot.unwrap_or_default()),
        ("disk", disk(status, chart)),
        ("files", files(status)),
        (
            "trouble",
            [&log.trouble, &index.trouble].into_iter().flatten().cloned().collect::<Vec<_>>().join("; "),
        ),
    ]
}

fn stalls(status: &Status) -> String {
    let total: Duration = status.stalls.iter().map(|stall| stall.time).sum();
    let now = status.stalls.iter().find_map(|stall| stall.now.map(|now| (stall.cause, now)));
    let parts = status.stalls.iter().filter(|stall| !stall.time.is_zero());
    let parts: Vec<_> = parts.map(|stall| format!("{} while {}", time(stall.time), stall.cause)).collect();
    match (now, total.is_zero()) {
        (Some((cause, now)), _) => {
            format!("each group waits {} now, because {cause}; {}", time(now), parts.join(", "))
        }
        (None, true) => "none".into(),
        (None, false) => format!("none now; {}", parts.join(", ")),
    }
}

/// Bytes that went to the disk, by what for, with the last minute.
fn written(status: &Status, chart: Chart) -> String {
    let (log, index, rates) = (&status.log, &status.index, &status.rates);
    let part = |name: &str, bytes: u64, rates: &[u64]| {
        let numbers: Vec<f64> = rates.iter().map(|rate| *rate as f64).collect();
        let line = chart.line(&numbers, LINE_WIDTH / 3);
        let line = if line.is_empty() { line } else { format!(" {line}") };
        (bytes > 0).then(|| format!("{name} {}{line}", Size(bytes)))
    };
    let parts = [
        part("commits", log.written_bytes, &rates.log_bytes),
        part("flushes", index.flushed_bytes, &rates.flushed_bytes),
        part("merges", index.merge_written_bytes, &rates.merged_bytes),
        part("cleaning", log.rewritten_bytes, &rates.cleaned_bytes),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn costs(status: &Status) -> String {
    let costs = &status.amplification;
    let part = |figure: Option<f64>, what: &str| figure.map(|figure| format!("{figure:.2} {what}"));
    let parts = [
        part(costs.write, "written a byte committed"),
        part(costs.space, "on disk a byte kept"),
        part(costs.read_tables, "tables a get"),
        part(costs.read_blocks, "blocks read a get"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn hit_rates(status: &Status) -> String {
    let index = &status.index;
    let part = |rate: Option<f64>, what: &str| rate.map(|rate| format!("{what} {}", percent(rate)));
    let parts = [
        part(index.entry_cache_hit_rate, "entries"),
        part(index.block_cache_hit_rate, "blocks"),
        part(index.filter_rate, "filters"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn disk(status: &Status, chart: Chart) -> String {
    let Some(disk) = status.disk.filter(|disk| disk.bytes > 0) else { return String::new() };
    let used = 1.0 - disk.free_bytes as f64 / disk.bytes as f64;
    let (free, all) = (Size(disk.free_bytes), Size(disk.bytes));
    format!("{} {} used, {free} of {all} free", chart.bar(used, BAR_WIDTH), percent(used))
}

fn files(status: &Status) -> String {
    match (status.process.open_files, status.process.open_files_max) {
        (Some(open), Some(limit)) if !status.closed => format!("{open} open of {}", short(limit)),
        _ => String::new(),
    }
}
