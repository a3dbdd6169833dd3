//! The library on every engine that is compiled in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod blocking;
mod bucket;
mod cache;
mod consumer;
mod contracts;
#[cfg(all(feature = "embedded", feature = "nats"))]
mod engines;
mod frail;
mod given;
#[cfg(feature = "embedded")]
mod migrate;
#[cfg(feature = "embedded")]
mod migrate_contracts;
#[cfg(all(feature = "embedded", feature = "nats"))]
mod migrate_nats;
#[cfg(feature = "nats")]
mod nats;
mod owned_projection;
mod projection;
mod read_back;
mod reserved_keys;
mod scan;
mod spy;
mod state;
#[cfg(feature = "embedded")]
mod status;
mod store;
mod typed;
mod watch;
mod write;

use given::{Given, run};

/// One list of tests, each run on every engine. Those that need a clock that stands still, revisions that count for the whole
/// store, or values that expire in a bucket with history are marked.
macro_rules! on_every_engine {
    ($($module:ident: $($name:ident $(($($mark:tt)*))?)*;)*) => {
        mod memory {
            $(mod $module { $(
                #[test]
                fn $name() {
                    crate::run(async { crate::$module::$name(crate::Given::in_memory()).await });
                }
            )* })*
        }

        #[cfg(feature = "embedded")]
        mod embedded {
            $(mod $module { $(
                #[test]
                fn $name() {
                    crate::run(async { crate::$module::$name(crate::Given::in_a_directory().await).await });
                }
            )* })*
        }

        #[cfg(feature = "nats")]
        mod on_nats {
            $(mod $module { $( on_nats! { $module $name $(($($mark)*))? } )* })*
        }
    };
}

#[cfg(feature = "nats")]
macro_rules! on_nats {
    ($module:ident $name:ident) => {
        #[test]
        fn $name() {
            crate::run(async { crate::$module::$name(crate::Given::on_nats().await).await });
        }
    };
    ($module:ident $name:ident (not on NATS)) => {};
}

on_every_engine! {
    store:
        a_bucket_is_found_once_it_was_created
        creating_a_bucket_again_is_fine_unless_it_differs
        buckets_are_listed_updated_and_deleted
        a_closed_store_says_so
        what_is_no_name_is_refused_with_its_rule
        an_origin_travels_with_every_write
        an_origin_that_cannot_be_a_header_is_refused;
    bucket:
        a_put_is_read_back_with_its_revision (not on NATS)
        keys_and_values_come_in_many_forms
        old_records_are_read_by_revision
        history_shows_values_and_markers
        compacting_a_key_forgets_its_oldest_records
        the_status_counts_live_entries
        counts_take_any_selection;
    write:
        creating_a_live_key_is_a_conflict
        an_update_wins_only_from_the_newest_revision
        options_expect_and_expire (not on NATS)
        deletes_and_purges_take_expectations
        headers_travel_with_entries_and_markers
        a_batch_is_committed_whole_or_not_at_all (not on NATS)
        a_bad_operation_keeps_its_batch_from_being_committed
        a_batch_that_is_already_made_is_committed;
    scan:
        a_scan_reads_every_page_of_one_snapshot
        a_scan_honours_its_options
        keys_are_listed_in_order
        pages_are_turned_by_hand
        an_error_ends_a_scan
        a_scan_is_a_stream;
    watch:
        a_watch_delivers_what_passes_its_filter
        a_watch_of_latest_values_marks_where_they_end
        a_watch_from_a_revision_delivers_it_first
        a_watch_of_a_deleted_bucket_ends_with_an_error;
    consumer:
        a_consumer_goes_on_after_what_it_acknowledged
        a_consumer_begins_where_it_is_created
        a_consumer_delivers_what_passes_its_filters
        acknowledging_inside_a_batch_stops_there
        consumers_tell_how_far_they_are_behind (not on NATS)
        a_consumer_can_be_reset_and_deleted
        two_readers_of_one_consumer_both_see_everything
        a_consumer_is_a_stream;
    projection:
        a_projection_follows_its_source
        a_projection_begins_with_what_is_there
        a_projection_goes_on_where_it_was
        a_rebuild_derives_the_same_and_tells_its_progress
        a_projection_waits_for_changes
        of_two_runners_the_slower_stops
        a_failing_reducer_loses_nothing
        a_change_may_write_many_keys
        many_changes_are_committed_together (not on NATS)
        projections_can_be_chained
        a_target_belongs_to_one_projection
        a_projection_lets_go_of_the_feed_behind_it;
    contracts:
        a_contract_guards_its_buckets
        a_dangerous_contract_is_stopped_by_its_plan
        of_two_plans_the_second_to_be_applied_has_moved
        a_service_reads_and_writes_with_types
        typed_writes_carry_the_origin_of_their_store
        state_is_not_read_or_written_by_hand
        no_value_outlives_the_time_to_live_of_its_keyspace
        adopted_values_have_the_version_of_their_keyspace;
    typed:
        typed_values_survive
        typed_keys_survive_in_order
        a_bad_value_is_an_error_that_names_it
        a_bad_key_is_an_error_that_names_it
        what_cannot_be_encoded_is_not_written
        typed_history_and_watch_show_markers
        a_typed_update_can_lose_its_race
        typed_operations_go_into_a_batch;
    reserved_keys:
        reserved_keys_are_not_written_by_users
        a_migration_keeps_its_position_under_a_reserved_key;
    owned_projection:
        a_projection_writes_to_a_bucket_that_a_contract_owns
        what_a_projection_derives_is_judged_by_the_contract
        positions_are_no_values_of_the_contract;
    read_back:
        a_typed_value_that_cannot_be_read_back_is_not_written;
    cache:
        a_cached_bucket_reads_what_was_there_and_what_comes
        a_cached_bucket_sees_its_own_writes
        a_cached_bucket_never_goes_back_while_others_write
        a_dropped_cache_frees_its_watch
        a_cached_bucket_can_be_typed;
    state:
        the_outcome_table_holds
        pages_and_watches_are_ones_own
        someone_can_be_erased;
}
