use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::case::Case;
use crate::Capabilities;

/// Something that every engine promises, unless it lacks the capability.
#[derive(Debug)]
pub struct Promise {
    /// Its number, as in the documentation of [`Engine`](crate::Engine).
    pub number: usize,
    /// What it is about.
    pub heading: &'static str,
    /// Its name, which is that of its test.
    pub name: &'static str,
    /// What the name leaves out.
    pub text: &'static str,
    /// The capabilities without which it cannot be kept.
    pub needs: &'static [Need],
    pub(super) run: fn(Case) -> Pin<Box<dyn Future<Output = ()>>>,
}

/// A capability that a promise needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// [`Capabilities::reads_own_writes`].
    ReadsOwnWrites,
    /// [`Capabilities::expired_history`].
    ExpiredHistory,
    /// [`Capabilities::snapshot_scans`].
    SnapshotScans,
    /// [`Capabilities::complete_feed`].
    CompleteFeed,
    /// Batches of a hundred operations.
    Batches,
    /// History of more than one record.
    History,
    /// [`Capabilities::consumers`].
    Consumers,
}

impl Need {
    /// Whether an engine with `capabilities` has it.
    pub const fn is_met_by(self, capabilities: &Capabilities) -> bool {
        match self {
            Self::ReadsOwnWrites => capabilities.reads_own_writes,
            Self::ExpiredHistory => capabilities.expired_history,
            Self::SnapshotScans => capabilities.snapshot_scans,
            Self::CompleteFeed => capabilities.complete_feed,
            Self::Batches => capabilities.batch_operations_max >= 100,
            Self::History => capabilities.history_max >= crate::HISTORY_MAX,
            Self::Consumers => capabilities.consumers,
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadsOwnWrites => "reads_own_writes",
            Self::ExpiredHistory => "expired_history",
            Self::SnapshotScans => "snapshot_scans",
            Self::CompleteFeed => "complete_feed",
            Self::Batches => "batch_operations_max of 100",
            Self::History => "history_max of 64",
            Self::Consumers => "consumers",
        })
    }
}

/// Makes a test of every promise, each on a store that the async function `open` opens.
#[macro_export]
macro_rules! conformance_suite {
    ($open:path) => {
        $crate::__each_promise! { __promise_tests $open }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __promise_tests {
    ([$open:path] $($heading:literal $module:ident {
        $($name:ident: $text:literal $([$($need:ident),+])?;)+
    })+) => { $($(
        #[test]
        fn $name() {
            $crate::conformance::check(stringify!($name), $open);
        }
    )+)+ };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __promise_table {
    ([] $($heading:literal $module:ident {
        $($name:ident: $text:literal $([$($need:ident),+])?;)+
    })+) => {
        /// Every promise, by number.
        pub static PROMISES: &[Promise] = &{
            let mut promises = [$($(Promise {
                number: 0,
                heading: $heading,
                name: stringify!($name),
                text: $text,
                needs: &[$($(Need::$need),+)?],
                run: |case| Box::pin(super::$module::$name(case)),
            }),+),+];
            let mut index = 0;
            while index < promises.len() {
                promises[index].number = index + 1;
                index += 1;
            }
            promises
        };
    };
}

/// The one list of promises: hands it to the macro `$with`, after `$arguments` in brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_promise {
    ($with:ident $($argument:path)?) => { $crate::$with! { [$($argument)?]
        "Buckets" buckets {
            a_new_bucket_is_empty: "it has no entry, no history, and a revision of its own.";
            a_bucket_remembers_its_configuration: "its description and the list of buckets show every field.";
            creating_a_bucket_again_finds_it: "with an equal configuration; its entries stay.";
            creating_a_bucket_with_another_configuration_is_refused:
                "`BucketExists` names what differs, and nothing changes.";
            updating_a_bucket_replaces_its_configuration: "any field may change, and the entries stay.";
            buckets_are_listed_by_name: "in byte order, each once.";
            deleting_a_bucket_deletes_everything_in_it: "one created under its name is empty.";
            a_recreated_bucket_goes_on_with_higher_revisions: "none is ever used again.";
            a_missing_bucket_is_not_found: "every call says `BucketNotFound`.";
            buckets_do_not_share_entries: "the same key in two buckets is two keys.";
            bad_configurations_are_refused: "`InvalidConfig` or `TtlOutOfRange`, and no bucket is made.";
            a_refused_update_changes_nothing: "configuration and entries stay as they were.";
            a_bucket_tells_its_newest_revision: "that of its newest record, marker or value.";
        }
        "Commits" commits {
            revisions_only_grow: "with every record of any key, markers too.";
            a_commit_is_visible_to_the_next_read: "to reads, scans, counts and history alike." [ReadsOwnWrites];
            a_commit_tells_its_revision_and_time: "the same that its record shows.";
            values_may_be_empty: "an empty value is a live value.";
            values_come_back_byte_for_byte: "whatever bytes they are.";
            a_value_of_exactly_the_limit_is_taken: "also when the limit is one byte.";
            a_value_over_the_limit_is_refused: "`ValueTooLarge`, and nothing of its batch is written.";
            lowering_the_value_limit_keeps_larger_values: "it is for what is written from then on.";
            the_largest_value_of_the_engine_is_taken: "up to the capability and not a byte more.";
            headers_travel_with_their_records: "values and markers, in reads, history, scans and watches.";
            the_largest_headers_are_kept: "4 KiB of names and values.";
            the_longest_key_is_a_key_like_others: "1024 bytes, in reads, scans, pages and watches.";
            keys_that_differ_in_one_byte_differ: "in case too, and where one begins like another.";
            reserved_keys_are_keys_like_others: "keeping them apart is the stores' business.";
            deleting_leaves_a_marker: "the key is absent, and its newest record says why.";
            deleting_an_absent_key_commits: "a marker with a revision of its own.";
            purging_an_absent_key_commits: "a marker with a revision of its own.";
            a_deleted_key_can_be_written_again: "and is live again.";
        }
        "Batches" batches {
            every_operation_of_a_batch_has_its_own_revision: "contiguous, in the order of the batch." [Batches];
            all_records_of_a_batch_have_one_time: "the one that the commit returned." [Batches];
            a_batch_may_mix_operations: "puts, deletes and purges, on present and absent keys." [Batches];
            a_batch_with_a_failing_expectation_writes_nothing: "no entry, no marker, no change." [Batches];
            an_empty_batch_is_refused: "`BatchEmpty`.";
            the_longest_batch_commits: "as the capability says: 1000 operations where nothing stands against it." [Batches];
            a_longer_batch_is_refused_whole: "`BatchTooLong`, and none of it is written.";
            a_key_twice_in_a_batch_is_refused: "`DuplicateKey`, and none of it is written." [Batches];
            a_batch_of_too_many_bytes_is_refused: "`BatchTooLarge`, and none of it is written." [Batches];
        }
        "Expectations" expectations {
            any_always_holds: "on a missing, live, deleted or purged key.";
            absent_holds_without_a_live_value: "on a missing, deleted or purged key.";
            absent_fails_on_a_live_value: "the conflict tells its revision.";
            a_revision_holds_for_the_newest_value: "and only once.";
            a_revision_holds_for_the_newest_marker: "of a delete or a purge.";
            a_revision_that_is_not_the_newest_fails: "older or never given; the conflict tells the newest.";
            a_revision_fails_on_a_missing_key: "also revision zero; the conflict tells none.";
            a_revision_of_another_key_fails: "revisions are judged by key.";
            deletes_and_purges_have_expectations_too: "they hold or fail as those of puts do.";
            the_conflict_names_the_first_that_fails: "in the order of the batch, not of the keys." [Batches];
            expectations_are_judged_before_the_batch: "its own records do not count." [Batches];
        }
        "Checks" checks {
            a_check_writes_nothing: "no record, no entry, no change, whatever else is in its batch." [Batches, History];
            a_failed_check_refuses_the_batch: "nothing is written; the conflict names the key of the check.";
            absent_can_be_checked: "it holds for a missing, deleted or purged key.";
            a_revision_can_be_checked: "of the newest value or marker; any number of batches may check it.";
            an_expired_value_is_absent_to_a_check: "and matches no revision.";
            a_batch_may_have_many_checks: "more than operations, and whatever those expect." [Batches];
            checks_are_judged_before_the_batch: "its own records do not count.";
            a_key_is_written_or_checked: "`DuplicateKey` if a batch does both, or checks a key twice.";
            checks_count_toward_the_batch: "`BatchTooLong` if there are too many with the operations." [Batches];
            a_batch_of_checks_only_is_refused: "`BatchEmpty`.";
            the_conflict_names_operations_before_checks: "each in the order of the batch." [Batches];
            nothing_is_committed_past_a_check: "no batch that checks a key is newer than a write that the check forbids.";
        }
        "History" history {
            history_is_oldest_first_with_markers: "every kept record of the key." [History];
            history_keeps_the_newest_records: "as many as the bucket says, markers included." [History];
            a_history_of_one_keeps_only_the_newest: "value or marker.";
            the_longest_history_is_kept: "64 records." [History];
            history_of_a_missing_key_is_empty: "and no error.";
            a_purge_leaves_one_marker_and_no_history: "records after it begin anew." [History];
            a_deleted_value_never_shows_an_older_one: "in reads, scans and counts." [History];
            lowering_history_trims_at_once: "the newest stay." [History];
            raising_history_brings_nothing_back: "what was trimmed is gone." [History];
            compacting_keeps_the_newest_records: "as many as asked for, of that key only." [History];
            compacting_with_few_records_changes_nothing: "also on a missing key." [History];
            compacting_a_deleted_key_revives_nothing: "its marker stays." [History];
            compacting_delivers_no_change: "watchers see what comes after it." [History];
        }
        "Reads" reads {
            a_read_at_a_revision_sees_the_value_of_then: "also between two records of the key." [History];
            a_read_at_a_marker_sees_nothing: "though there are values before and after it." [History];
            a_read_at_a_forgotten_revision_says_compacted: "`oldest` is the key's oldest kept record." [History];
            a_read_before_the_first_record_says_compacted: "an engine may have forgotten one.";
            a_read_at_a_future_revision_is_refused: "`FutureRevision`, also on a missing key.";
            a_missing_key_was_never_there: "at any revision.";
        }
        "Expiry" expiry {
            a_value_is_gone_at_exactly_its_moment: "for reads, scans, counts and expectations.";
            a_bucket_ttl_expires_its_values: "each as long after its commit.";
            the_earlier_of_two_expiries_holds: "an entry's own or its bucket's; the entry shows it.";
            an_expiry_can_be_a_moment: "one that has passed makes a value that is never seen.";
            an_expired_value_is_absent: "a put that expects so succeeds.";
            an_expired_value_matches_no_revision: "recorded or not; the conflict tells none.";
            an_expired_value_never_shows_an_older_one: "history is no fallback." [History, ExpiredHistory];
            an_expired_value_is_gone_at_its_revision_too: "reads at a revision judge by now." [History, ExpiredHistory];
            rewriting_renews_expiry: "the value lives for its new TTL.";
            rewriting_without_a_ttl_clears_expiry: "the value stays.";
            an_expired_key_can_be_written_again: "and its new value stays.";
            a_ttl_of_zero_is_refused: "`TtlOutOfRange`, for entries and buckets, and nothing is written.";
            an_absurd_ttl_is_refused: "`TtlOutOfRange`, without overflow, and nothing is written.";
            the_shortest_and_longest_ttl_are_taken: "the engine's resolution, and a hundred years.";
            shortening_the_bucket_ttl_expires_what_is_there: "at once, if its time has come.";
            lengthening_the_bucket_ttl_keeps_what_is_there: "for the new TTL, or for ever without one.";
            a_longer_bucket_ttl_revives_nothing: "what has expired stays so.";
            expiry_does_not_reach_into_a_recreated_bucket: "its namesake's moments are forgotten.";
        }
        "Expiry as a change" expiry_changes {
            expiry_is_delivered_as_a_change: "with operation `expire`, a revision of its own and no value.";
            expiry_is_delivered_once: "and only for values that were not rewritten.";
            a_deleted_value_does_not_expire: "its marker is its end.";
            every_expired_value_is_delivered: "from a bucket TTL too, each once.";
            expiry_is_recorded_in_history: "its marker counts as a record." [History, ExpiredHistory];
            an_expiry_marker_is_the_newest_record: "its revision can be expected.";
            a_bucket_ttl_that_shortens_delivers_expiry: "of what it ended.";
            expired_values_are_no_latest_values: "a watch does not begin with them.";
        }
        "Scans" scans {
            scans_are_in_byte_order: "not that of letters, numbers or tokens.";
            scans_go_backwards: "in exactly the other order, from any selection.";
            prefixes_may_end_inside_a_token: "they are bytes.";
            ranges_include_and_exclude_their_ends: "as each bound says.";
            empty_and_inverted_ranges_hold_nothing: "and are no error.";
            a_star_stands_for_one_token: "anywhere in a filter.";
            a_greater_sign_stands_for_one_token_or_more: "at the end of a filter.";
            a_filter_and_a_range_narrow_each_other: "an entry passes both.";
            scans_hold_live_entries_only: "no markers, and one entry a key." [History];
            keys_only_leaves_values_out: "and nothing else.";
            counts_agree_with_scans: "for every kind of selection.";
            a_scan_of_an_empty_bucket_is_one_empty_page: "without a token.";
        }
        "Pages" pages {
            a_page_has_a_token_exactly_if_more_is_left: "also when it is just full.";
            page_limits_out_of_range_are_refused: "`PageLimit`: none, or more than 10000.";
            pages_together_hold_everything_once: "for any limit, selection and direction.";
            the_limit_may_change_between_pages: "the rest of the query may not.";
            pages_read_one_snapshot: "whatever is written, deleted or purged between them." [SnapshotScans];
            pages_agree_on_what_has_expired: "as of the first." [SnapshotScans];
            pages_outlive_a_change_of_history: "trimming takes nothing from an open scan." [SnapshotScans, History];
            a_page_token_can_be_used_again: "and gives the same page." [SnapshotScans];
            a_page_token_survives_its_text: "it can be handed to someone else.";
            a_page_token_is_bound_to_its_query: "`InvalidPageToken` with another.";
            a_page_token_is_bound_to_its_bucket: "`InvalidPageToken` in another, or in its namesake.";
            a_page_token_is_bound_to_its_store: "`InvalidPageToken` in another.";
            a_token_without_its_snapshot_reads_nothing: "it is `Compacted` or invalid.";
            a_page_of_large_values_is_cut: "at about 8 MiB, and the rest follows.";
            many_open_scans_stay_right: "each goes on, or says `Compacted`." [SnapshotScans];
            a_watch_goes_on_from_a_scan: "from the revision after the snapshot's, without a gap." [SnapshotScans];
        }
        "Watches" watches {
            a_watch_from_now_sees_what_is_committed_next: "nothing before, and nothing is missed.";
            a_waiting_watch_is_woken: "by a change that passes its filters.";
            a_watch_sees_every_change_once_in_order: "puts, deletes and purges.";
            a_change_shows_its_whole_record: "the same that a read or the history shows.";
            a_watch_begins_with_the_latest_values: "every live one once, then `InitialDone`.";
            a_watch_of_an_empty_bucket_has_an_initial_end: "for latest values and for history.";
            a_watch_begins_with_history: "every kept record, markers too, those of a key in order." [History];
            a_watch_from_a_revision_includes_it: "and has no `InitialDone`.";
            a_watch_from_a_gap_begins_after_it: "with the first change there is.";
            a_watch_from_the_next_revision_waits_for_it: "later ones are refused with `FutureRevision`.";
            a_watch_from_a_revision_sees_what_is_no_longer_kept: "overwritten or purged." [CompleteFeed];
            a_watch_from_before_the_feed_says_compacted: "`oldest` is where it can start.";
            a_watch_resumed_in_a_recreated_bucket_says_compacted: "what was lost is not passed over.";
            a_batch_is_delivered_together_and_marked: "its parts in order, with their places." [Batches];
            a_change_can_be_read_once_it_is_delivered: "or a newer one." [ReadsOwnWrites];
            watches_do_not_disturb_each_other: "each sees everything.";
            a_watch_sees_its_own_bucket_only: "whatever others do.";
            a_watch_ends_when_its_bucket_is_deleted: "with `BucketNotFound`, also if it is created again.";
            dropping_a_watch_frees_it: "the bucket no longer counts it.";
            a_slow_watch_misses_nothing_or_is_told: "it sees everything in order, or `Compacted`." [Batches];
        }
        "Filters of watches" watch_filters {
            a_watch_of_one_key_sees_that_key_only: "by a filter without wildcards.";
            a_watch_takes_wildcards: "`*` and `>`, as scans do.";
            overlapping_filters_deliver_once: "a change that passes several is one change.";
            initial_values_pass_the_filters: "`InitialDone` comes even if none does.";
            a_filter_sees_its_parts_of_a_batch: "with their places in the whole." [Batches];
            too_many_filters_are_refused: "`TooManyFilters` from 65 on.";
        }
        "Races" races {
            of_concurrent_creators_of_a_key_exactly_one_wins: "the others have its revision in their conflict.";
            concurrent_increments_lose_nothing: "by expecting the revision that was read.";
            a_reader_never_sees_half_a_batch: "nor does a scan." [Batches, SnapshotScans];
            of_concurrent_creators_of_a_bucket_one_wins: "and equal ones find the same bucket.";
            a_bucket_deleted_under_its_writers_stays_deleted: "they see `BucketNotFound`, and its namesake is empty.";
            latest_values_join_changes_without_gap_or_duplicate: "while others write.";
            a_watch_from_a_revision_keeps_up_with_writers: "every change once, in order." [CompleteFeed];
            concurrent_watchers_see_the_same_order: "that of revisions.";
            batches_of_concurrent_writers_are_delivered_whole: "no change comes between two parts of one." [Batches];
        }
        "Consumers" consumers {
            a_new_consumer_starts_where_it_was_told: "at the floor of the feed, after the newest revision, or at a revision." [Consumers];
            a_consumer_starts_within_the_feed: "`Compacted` or `FutureRevision`, and none is made." [Consumers];
            creating_a_consumer_again_finds_it: "where it stands, whatever its start." [Consumers];
            consumers_are_listed_by_name: "in byte order, each once, as they describe themselves." [Consumers];
            acknowledging_moves_a_consumer_forward_only: "an older revision changes nothing, not even its time." [Consumers];
            acknowledging_the_future_is_refused: "`FutureRevision`, and the consumer stays where it was." [Consumers];
            of_concurrent_acknowledgements_the_furthest_holds: "in whatever order they arrive." [Consumers];
            a_watch_from_a_consumer_misses_nothing: "it has every change that is not acknowledged." [Consumers, CompleteFeed];
            resetting_a_consumer_may_go_back: "or forward, under the rules of creating it." [Consumers];
            a_missing_consumer_is_not_found: "`ConsumerNotFound`, or `BucketNotFound` if its bucket is missing." [Consumers];
            a_deleted_consumer_is_forgotten: "one created under its name starts where it was told." [Consumers];
            deleting_a_bucket_deletes_its_consumers: "its namesake has none." [Consumers];
            consumers_of_two_buckets_are_apart: "they may have one name, and move alone." [Consumers];
            a_consumer_leaves_no_trace_in_its_bucket: "no entry, no record, no change." [Consumers];
            too_many_consumers_are_refused: "`TooManyConsumers` from 1001 on in a bucket." [Consumers];
        }
        "Closing" closing {
            a_closed_engine_refuses_every_call: "`Closed`.";
            a_closed_engine_refuses_consumers: "`Closed` from every call of theirs." [Consumers];
            closing_ends_every_watch: "with `Closed`.";
            closing_twice_is_fine: "the second time changes nothing.";
        }
    } };
}

crate::__each_promise! { __promise_table }
