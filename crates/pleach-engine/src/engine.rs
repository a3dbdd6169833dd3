use std::fmt;
use std::num::NonZeroU8;

use async_trait::async_trait;

use crate::{
    Batch, BucketConfig, BucketInfo, BucketName, Capabilities, CommitError, Committed, ConsumerInfo,
    ConsumerName, ConsumerStart, EngineError, Entry, Key, Page, Revision, ScanQuery, Selection, WatchQuery,
    WatchStream,
};

/// As of when to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// Now.
    #[default]
    Latest,
    /// As it was once this revision had been committed.
    Revision(Revision),
}

/// Stores entries in buckets.
///
/// The numbered promises are tests of the same name in `pleach_engine::conformance`, which any engine can
/// run; an engine without a capability is spared the promises that need it, and no others.
///
/// # Buckets
/// 1. `a_new_bucket_is_empty`: it has no entry, no history, and a revision of its own.
/// 2. `a_bucket_remembers_its_configuration`: its description and the list of buckets show every field.
/// 3. `creating_a_bucket_again_finds_it`: with an equal configuration; its entries stay.
/// 4. `creating_a_bucket_with_another_configuration_is_refused`: `BucketExists` names what differs, and nothing changes.
/// 5. `updating_a_bucket_replaces_its_configuration`: any field may change, and the entries stay.
/// 6. `buckets_are_listed_by_name`: in byte order, each once.
/// 7. `deleting_a_bucket_deletes_everything_in_it`: one created under its name is empty.
/// 8. `a_recreated_bucket_goes_on_with_higher_revisions`: none is ever used again.
/// 9. `a_missing_bucket_is_not_found`: every call says `BucketNotFound`.
/// 10. `buckets_do_not_share_entries`: the same key in two buckets is two keys.
/// 11. `bad_configurations_are_refused`: `InvalidConfig` or `TtlOutOfRange`, and no bucket is made.
/// 12. `a_refused_update_changes_nothing`: configuration and entries stay as they were.
/// 13. `a_bucket_tells_its_newest_revision`: that of its newest record, marker or value.
///
/// # Commits
/// 14. `revisions_only_grow`: with every record of any key, markers too.
/// 15. `a_commit_is_visible_to_the_next_read`: to reads, scans, counts and history alike.
/// 16. `a_commit_tells_its_revision_and_time`: the same that its record shows.
/// 17. `values_may_be_empty`: an empty value is a live value.
/// 18. `values_come_back_byte_for_byte`: whatever bytes they are.
/// 19. `a_value_of_exactly_the_limit_is_taken`: also when the limit is one byte.
/// 20. `a_value_over_the_limit_is_refused`: `ValueTooLarge`, and nothing of its batch is written.
/// 21. `lowering_the_value_limit_keeps_larger_values`: it is for what is written from then on.
/// 22. `the_largest_value_of_the_engine_is_taken`: up to the capability and not a byte more.
/// 23. `headers_travel_with_their_records`: values and markers, in reads, history, scans and watches.
/// 24. `the_largest_headers_are_kept`: 4 KiB of names and values.
/// 25. `the_longest_key_is_a_key_like_others`: 1024 bytes, in reads, scans, pages and watches.
/// 26. `keys_that_differ_in_one_byte_differ`: in case too, and where one begins like another.
/// 27. `reserved_keys_are_keys_like_others`: keeping them apart is the stores' business.
/// 28. `deleting_leaves_a_marker`: the key is absent, and its newest record says why.
/// 29. `deleting_an_absent_key_commits`: a marker with a revision of its own.
/// 30. `purging_an_absent_key_commits`: a marker with a revision of its own.
/// 31. `a_deleted_key_can_be_written_again`: and is live again.
///
/// # Batches
/// 32. `every_operation_of_a_batch_has_its_own_revision`: contiguous, in the order of the batch.
/// 33. `all_records_of_a_batch_have_one_time`: the one that the commit returned.
/// 34. `a_batch_may_mix_operations`: puts, deletes and purges, on present and absent keys.
/// 35. `a_batch_with_a_failing_expectation_writes_nothing`: no entry, no marker, no change.
/// 36. `an_empty_batch_is_refused`: `BatchEmpty`.
/// 37. `the_longest_batch_commits`: as the capability says: 1000 operations where nothing stands against it.
/// 38. `a_longer_batch_is_refused_whole`: `BatchTooLong`, and none of it is written.
/// 39. `a_key_twice_in_a_batch_is_refused`: `DuplicateKey`, and none of it is written.
/// 40. `a_batch_of_too_many_bytes_is_refused`: `BatchTooLarge`, and none of it is written.
///
/// # Expectations
/// 41. `any_always_holds`: on a missing, live, deleted or purged key.
/// 42. `absent_holds_without_a_live_value`: on a missing, deleted or purged key.
/// 43. `absent_fails_on_a_live_value`: the conflict tells its revision.
/// 44. `a_revision_holds_for_the_newest_value`: and only once.
/// 45. `a_revision_holds_for_the_newest_marker`: of a delete or a purge.
/// 46. `a_revision_that_is_not_the_newest_fails`: older or never given; the conflict tells the newest.
/// 47. `a_revision_fails_on_a_missing_key`: also revision zero; the conflict tells none.
/// 48. `a_revision_of_another_key_fails`: revisions are judged by key.
/// 49. `deletes_and_purges_have_expectations_too`: they hold or fail as those of puts do.
/// 50. `the_conflict_names_the_first_that_fails`: in the order of the batch, not of the keys.
/// 51. `expectations_are_judged_before_the_batch`: its own records do not count.
///
/// # Checks
/// 52. `a_check_writes_nothing`: no record, no entry, no change, whatever else is in its batch.
/// 53. `a_failed_check_refuses_the_batch`: nothing is written; the conflict names the key of the check.
/// 54. `absent_can_be_checked`: it holds for a missing, deleted or purged key.
/// 55. `a_revision_can_be_checked`: of the newest value or marker; any number of batches may check it.
/// 56. `an_expired_value_is_absent_to_a_check`: and matches no revision.
/// 57. `a_batch_may_have_many_checks`: more than operations, and whatever those expect.
/// 58. `checks_are_judged_before_the_batch`: its own records do not count.
/// 59. `a_key_is_written_or_checked`: `DuplicateKey` if a batch does both, or checks a key twice.
/// 60. `checks_count_toward_the_batch`: `BatchTooLong` if there are too many with the operations.
/// 61. `a_batch_of_checks_only_is_refused`: `BatchEmpty`.
/// 62. `the_conflict_names_operations_before_checks`: each in the order of the batch.
/// 63. `nothing_is_committed_past_a_check`: no batch that checks a key is newer than a write that the check forbids.
///
/// # History
/// 64. `history_is_oldest_first_with_markers`: every kept record of the key.
/// 65. `history_keeps_the_newest_records`: as many as the bucket says, markers included.
/// 66. `a_history_of_one_keeps_only_the_newest`: value or marker.
/// 67. `the_longest_history_is_kept`: 64 records.
/// 68. `history_of_a_missing_key_is_empty`: and no error.
/// 69. `a_purge_leaves_one_marker_and_no_history`: records after it begin anew.
/// 70. `a_deleted_value_never_shows_an_older_one`: in reads, scans and counts.
/// 71. `lowering_history_trims_at_once`: the newest stay.
/// 72. `raising_history_brings_nothing_back`: what was trimmed is gone.
/// 73. `compacting_keeps_the_newest_records`: as many as asked for, of that key only.
/// 74. `compacting_with_few_records_changes_nothing`: also on a missing key.
/// 75. `compacting_a_deleted_key_revives_nothing`: its marker stays.
/// 76. `compacting_delivers_no_change`: watchers see what comes after it.
///
/// # Reads
/// 77. `a_read_at_a_revision_sees_the_value_of_then`: also between two records of the key.
/// 78. `a_read_at_a_marker_sees_nothing`: though there are values before and after it.
/// 79. `a_read_at_a_forgotten_revision_says_compacted`: `oldest` is the key's oldest kept record.
/// 80. `a_read_before_the_first_record_says_compacted`: an engine may have forgotten one.
/// 81. `a_read_at_a_future_revision_is_refused`: `FutureRevision`, also on a missing key.
/// 82. `a_missing_key_was_never_there`: at any revision.
///
/// # Expiry
/// 83. `a_value_is_gone_at_exactly_its_moment`: for reads, scans, counts and expectations.
/// 84. `a_bucket_ttl_expires_its_values`: each as long after its commit.
/// 85. `the_earlier_of_two_expiries_holds`: an entry's own or its bucket's; the entry shows it.
/// 86. `an_expiry_can_be_a_moment`: one that has passed makes a value that is never seen.
/// 87. `an_expired_value_is_absent`: a put that expects so succeeds.
/// 88. `an_expired_value_matches_no_revision`: recorded or not; the conflict tells none.
/// 89. `an_expired_value_never_shows_an_older_one`: history is no fallback.
/// 90. `an_expired_value_is_gone_at_its_revision_too`: reads at a revision judge by now.
/// 91. `rewriting_renews_expiry`: the value lives for its new TTL.
/// 92. `rewriting_without_a_ttl_clears_expiry`: the value stays.
/// 93. `an_expired_key_can_be_written_again`: and its new value stays.
/// 94. `a_ttl_of_zero_is_refused`: `TtlOutOfRange`, for entries and buckets, and nothing is written.
/// 95. `an_absurd_ttl_is_refused`: `TtlOutOfRange`, without overflow, and nothing is written.
/// 96. `the_shortest_and_longest_ttl_are_taken`: the engine's resolution, and a hundred years.
/// 97. `shortening_the_bucket_ttl_expires_what_is_there`: at once, if its time has come.
/// 98. `lengthening_the_bucket_ttl_keeps_what_is_there`: for the new TTL, or for ever without one.
/// 99. `a_longer_bucket_ttl_revives_nothing`: what has expired stays so.
/// 100. `expiry_does_not_reach_into_a_recreated_bucket`: its namesake's moments are forgotten.
///
/// # Expiry as a change
/// 101. `expiry_is_delivered_as_a_change`: with operation `expire`, a revision of its own and no value.
/// 102. `expiry_is_delivered_once`: and only for values that were not rewritten.
/// 103. `a_deleted_value_does_not_expire`: its marker is its end.
/// 104. `every_expired_value_is_delivered`: from a bucket TTL too, each once.
/// 105. `expiry_is_recorded_in_history`: its marker counts as a record.
/// 106. `an_expiry_marker_is_the_newest_record`: its revision can be expected.
/// 107. `a_bucket_ttl_that_shortens_delivers_expiry`: of what it ended.
/// 108. `expired_values_are_no_latest_values`: a watch does not begin with them.
///
/// # Scans
/// 109. `scans_are_in_byte_order`: not that of letters, numbers or tokens.
/// 110. `scans_go_backwards`: in exactly the other order, from any selection.
/// 111. `prefixes_may_end_inside_a_token`: they are bytes.
/// 112. `ranges_include_and_exclude_their_ends`: as each bound says.
/// 113. `empty_and_inverted_ranges_hold_nothing`: and are no error.
/// 114. `a_star_stands_for_one_token`: anywhere in a filter.
/// 115. `a_greater_sign_stands_for_one_token_or_more`: at the end of a filter.
/// 116. `a_filter_and_a_range_narrow_each_other`: an entry passes both.
/// 117. `scans_hold_live_entries_only`: no markers, and one entry a key.
/// 118. `keys_only_leaves_values_out`: and nothing else.
/// 119. `counts_agree_with_scans`: for every kind of selection.
/// 120. `a_scan_of_an_empty_bucket_is_one_empty_page`: without a token.
///
/// # Pages
/// 121. `a_page_has_a_token_exactly_if_more_is_left`: also when it is just full.
/// 122. `page_limits_out_of_range_are_refused`: `PageLimit`: none, or more than 10000.
/// 123. `pages_together_hold_everything_once`: for any limit, selection and direction.
/// 124. `the_limit_may_change_between_pages`: the rest of the query may not.
/// 125. `pages_read_one_snapshot`: whatever is written, deleted or purged between them.
/// 126. `pages_agree_on_what_has_expired`: as of the first.
/// 127. `pages_outlive_a_change_of_history`: trimming takes nothing from an open scan.
/// 128. `a_page_token_can_be_used_again`: and gives the same page.
/// 129. `a_page_token_survives_its_text`: it can be handed to someone else.
/// 130. `a_page_token_is_bound_to_its_query`: `InvalidPageToken` with another.
/// 131. `a_page_token_is_bound_to_its_bucket`: `InvalidPageToken` in another, or in its namesake.
/// 132. `a_page_token_is_bound_to_its_store`: `InvalidPageToken` in another.
/// 133. `a_token_without_its_snapshot_reads_nothing`: it is `Compacted` or invalid.
/// 134. `a_page_of_large_values_is_cut`: at about 8 MiB, and the rest follows.
/// 135. `many_open_scans_stay_right`: each goes on, or says `Compacted`.
/// 136. `a_watch_goes_on_from_a_scan`: from the revision after the snapshot's, without a gap.
///
/// # Watches
/// 137. `a_watch_from_now_sees_what_is_committed_next`: nothing before, and nothing is missed.
/// 138. `a_waiting_watch_is_woken`: by a change that passes its filters.
/// 139. `a_watch_sees_every_change_once_in_order`: puts, deletes and purges.
/// 140. `a_change_shows_its_whole_record`: the same that a read or the history shows.
/// 141. `a_watch_begins_with_the_latest_values`: every live one once, then `InitialDone`.
/// 142. `a_watch_of_an_empty_bucket_has_an_initial_end`: for latest values and for history.
/// 143. `a_watch_begins_with_history`: every kept record, markers too, those of a key in order.
/// 144. `a_watch_from_a_revision_includes_it`: and has no `InitialDone`.
/// 145. `a_watch_from_a_gap_begins_after_it`: with the first change there is.
/// 146. `a_watch_from_the_next_revision_waits_for_it`: later ones are refused with `FutureRevision`.
/// 147. `a_watch_from_a_revision_sees_what_is_no_longer_kept`: overwritten or purged.
/// 148. `a_watch_from_before_the_feed_says_compacted`: `oldest` is where it can start.
/// 149. `a_watch_resumed_in_a_recreated_bucket_says_compacted`: what was lost is not passed over.
/// 150. `a_batch_is_delivered_together_and_marked`: its parts in order, with their places.
/// 151. `a_change_can_be_read_once_it_is_delivered`: or a newer one.
/// 152. `watches_do_not_disturb_each_other`: each sees everything.
/// 153. `a_watch_sees_its_own_bucket_only`: whatever others do.
/// 154. `a_watch_ends_when_its_bucket_is_deleted`: with `BucketNotFound`, also if it is created again.
/// 155. `dropping_a_watch_frees_it`: the bucket no longer counts it.
/// 156. `a_slow_watch_misses_nothing_or_is_told`: it sees everything in order, or `Compacted`.
///
/// # Filters of watches
/// 157. `a_watch_of_one_key_sees_that_key_only`: by a filter without wildcards.
/// 158. `a_watch_takes_wildcards`: `*` and `>`, as scans do.
/// 159. `overlapping_filters_deliver_once`: a change that passes several is one change.
/// 160. `initial_values_pass_the_filters`: `InitialDone` comes even if none does.
/// 161. `a_filter_sees_its_parts_of_a_batch`: with their places in the whole.
/// 162. `too_many_filters_are_refused`: `TooManyFilters` from 65 on.
///
/// # Races
/// 163. `of_concurrent_creators_of_a_key_exactly_one_wins`: the others have its revision in their conflict.
/// 164. `concurrent_increments_lose_nothing`: by expecting the revision that was read.
/// 165. `a_reader_never_sees_half_a_batch`: nor does a scan.
/// 166. `of_concurrent_creators_of_a_bucket_one_wins`: and equal ones find the same bucket.
/// 167. `a_bucket_deleted_under_its_writers_stays_deleted`: they see `BucketNotFound`, and its namesake is empty.
/// 168. `latest_values_join_changes_without_gap_or_duplicate`: while others write.
/// 169. `a_watch_from_a_revision_keeps_up_with_writers`: every change once, in order.
/// 170. `concurrent_watchers_see_the_same_order`: that of revisions.
/// 171. `batches_of_concurrent_writers_are_delivered_whole`: no change comes between two parts of one.
///
/// # Consumers
/// 172. `a_new_consumer_starts_where_it_was_told`: at the floor of the feed, after the newest revision, or at a revision.
/// 173. `a_consumer_starts_within_the_feed`: `Compacted` or `FutureRevision`, and none is made.
/// 174. `creating_a_consumer_again_finds_it`: where it stands, whatever its start.
/// 175. `consumers_are_listed_by_name`: in byte order, each once, as they describe themselves.
/// 176. `acknowledging_moves_a_consumer_forward_only`: an older revision changes nothing, not even its time.
/// 177. `acknowledging_the_future_is_refused`: `FutureRevision`, and the consumer stays where it was.
/// 178. `of_concurrent_acknowledgements_the_furthest_holds`: in whatever order they arrive.
/// 179. `a_watch_from_a_consumer_misses_nothing`: it has every change that is not acknowledged.
/// 180. `resetting_a_consumer_may_go_back`: or forward, under the rules of creating it.
/// 181. `a_missing_consumer_is_not_found`: `ConsumerNotFound`, or `BucketNotFound` if its bucket is missing.
/// 182. `a_deleted_consumer_is_forgotten`: one created under its name starts where it was told.
/// 183. `deleting_a_bucket_deletes_its_consumers`: its namesake has none.
/// 184. `consumers_of_two_buckets_are_apart`: they may have one name, and move alone.
/// 185. `a_consumer_leaves_no_trace_in_its_bucket`: no entry, no record, no change.
/// 186. `too_many_consumers_are_refused`: `TooManyConsumers` from 1001 on in a bucket.
///
/// # Closing
/// 187. `a_closed_engine_refuses_every_call`: `Closed`.
/// 188. `a_closed_engine_refuses_consumers`: `Closed` from every call of theirs.
/// 189. `closing_ends_every_watch`: with `Closed`.
/// 190. `closing_twice_is_fine`: the second time changes nothing.
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync {
    /// What this engine can do.
    fn capabilities(&self) -> &Capabilities;

    /// Creates a bucket, or finds it there with this very configuration.
    async fn create_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError>;

    /// Gives a bucket another configuration, which holds at once for everything in it.
    async fn update_bucket(
        &self,
        bucket: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError>;

    /// Deletes a bucket with everything in it.
    async fn delete_bucket(&self, bucket: &BucketName) -> Result<(), EngineError>;

    /// Describes a bucket.
    async fn bucket(&self, bucket: &BucketName) -> Result<BucketInfo, EngineError>;

    /// Describes every bucket, by name.
    async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError>;

    /// Applies all of `batch`, or none of it.
    async fn commit(&self, bucket: &BucketName, batch: Batch) -> Result<Committed, CommitError>;

    /// Returns the live value of a key, if it has one: its newest kept record as of `at`, unless that is
    /// a marker or has expired by now. Where the record as of `at` is no longer kept, says `Compacted`.
    async fn read(&self, bucket: &BucketName, key: &Key, at: At) -> Result<Option<Entry>, EngineError>;

    /// Returns the kept records of a key, oldest first, values and markers, expired or not.
    async fn history(&self, bucket: &BucketName, key: &Key) -> Result<Vec<Entry>, EngineError>;

    /// Returns live entries in the byte order of their keys, all from one snapshot.
    async fn scan(&self, bucket: &BucketName, query: ScanQuery) -> Result<Page, EngineError>;

    /// Counts live entries.
    async fn count(&self, bucket: &BucketName, selection: Selection) -> Result<u64, EngineError>;

    /// Delivers changes as they are committed. The watch has begun when this returns.
    async fn watch(&self, bucket: &BucketName, query: WatchQuery) -> Result<WatchStream, EngineError>;

    /// Forgets all but the newest `keep` records of a key.
    async fn compact_key(&self, bucket: &BucketName, key: &Key, keep: NonZeroU8) -> Result<(), EngineError>;

    /// Creates a consumer of a bucket, or finds it there, whatever its start: a named place in the feed, which
    /// lasts until it or its bucket is deleted.
    ///
    /// The engine keeps the feed for its consumers within a bound; one that has fallen behind that is told
    /// `Compacted` by its watch. Consumers are no entries and make no changes, but what is done to one may take
    /// a revision of the store.
    async fn create_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError>;

    /// Describes every consumer of a bucket, by name.
    async fn consumers(&self, bucket: &BucketName) -> Result<Vec<ConsumerInfo>, EngineError>;

    /// Describes a consumer.
    async fn consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
    ) -> Result<ConsumerInfo, EngineError>;

    /// Takes note that a consumer has done with everything up to and including `revision`, for good when this
    /// returns if the bucket's commits are. One that was acknowledged before changes nothing.
    async fn acknowledge(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        revision: Revision,
    ) -> Result<(), EngineError>;

    /// Moves a consumer to `start`, forward or back.
    async fn reset_consumer(
        &self,
        bucket: &BucketName,
        consumer: &ConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerInfo, EngineError>;

    /// Deletes a consumer.
    async fn delete_consumer(&self, bucket: &BucketName, consumer: &ConsumerName) -> Result<(), EngineError>;

    /// Finishes what was acknowledged and lets go of everything; other calls then say `Closed`.
    async fn close(&self) -> Result<(), EngineError>;
}
