use super::{Amplification, IndexStatus, LogStatus, Status};

impl Status {
    /// A store that was opened only to be looked at knows how large it is, but not how it was used: that is in what the
    /// process before has left, `last`. Puts the two together.
    #[must_use]
    pub fn after(self, last: Self) -> Self {
        let surveyed = |bucket: super::BucketUsage| {
            let known = last.buckets.iter().find(|before| before.name == bucket.name);
            let dead_bytes = known.map_or(0, |before| before.dead_bytes).min(bucket.bytes);
            let live_bytes = bucket.bytes - dead_bytes;
            let feed_bytes = known.map_or(0, |before| before.feed_bytes).min(live_bytes);
            super::BucketUsage { dead_bytes, live_bytes, feed_bytes, ..bucket }
        };
        Self {
            time: last.time,
            closed: last.closed,
            read_only: self.read_only,
            revision: self.revision,
            process: super::ProcessStatus { open_files: None, ..last.process },
            gets: last.gets,
            scans: last.scans,
            puts: last.puts,
            records: last.records,
            commits: super::CommitStatus { waiting: 0, waiting_bytes: 0, ..last.commits },
            stalls: last.stalls.into_iter().map(|stall| super::Stall { now: None, ..stall }).collect(),
            log: LogStatus {
                garbage_bytes: last.log.garbage_bytes.min(self.log.bytes),
                written_bytes: last.log.written_bytes,
                cleaned_bytes: last.log.cleaned_bytes,
                rewritten_bytes: last.log.rewritten_bytes,
                ..self.log
            },
            index: IndexStatus {
                flushes: last.index.flushes,
                flushed_bytes: last.index.flushed_bytes,
                flush_time: last.index.flush_time,
                merges: last.index.merges,
                merge_read_bytes: last.index.merge_read_bytes,
                merge_written_bytes: last.index.merge_written_bytes,
                merge_time: last.index.merge_time,
                entry_cache_hit_rate: last.index.entry_cache_hit_rate,
                block_cache_hit_rate: last.index.block_cache_hit_rate,
                filter_rate: last.index.filter_rate,
                ..self.index
            },
            amplification: Amplification { space: self.amplification.space, ..last.amplification },
            oldest_snapshot: None,
            bucket_count: self.bucket_count,
            buckets: self.buckets.into_iter().map(surveyed).collect(),
            consumer_count: self.consumer_count,
            consumers: self.consumers,
            hot: last.hot,
            rates: last.rates,
            disk: self.disk,
            unwritten_reports: last.unwritten_reports,
        }
    }
}
