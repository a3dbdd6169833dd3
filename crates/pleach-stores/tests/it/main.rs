//! Contracts on real engines: what is refused, what a plan says, and what an apply does, whenever it is interrupted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod adoption;
mod applying;
mod aside;
mod between;
mod codegen;
mod conformance;
mod crash;
mod damage;
mod evidence;
mod evolution;
mod facades;
mod fencing;
mod generated;
mod given;
mod guarding;
mod in_force;
mod judging;
mod kv;
mod planning;
mod process;
mod property;
mod racing;
mod read_back;
mod show;
mod since_the_plan;
mod state_behind_apply;
mod state_claims;
mod state_killed;
mod stored_state;
mod strict;
mod transfer;
mod verifying;
mod watched;

use given::Given;

/// Every test of the list, on the in-memory and on the embedded engine.
macro_rules! on_both_engines {
    ($($module:ident: $($name:ident)*;)*) => {
        mod in_memory {
            $(mod $module { $(
                #[test]
                fn $name() {
                    pollster::block_on(crate::$module::$name(crate::Given::in_memory()));
                }
            )* })*
        }
        mod embedded {
            $(mod $module { $(
                #[test]
                fn $name() {
                    pollster::block_on(crate::$module::$name(crate::Given::embedded()));
                }
            )* })*
        }
    };
}

on_both_engines! {
    guarding:
        an_owned_bucket_takes_what_its_contract_allows
        a_refused_batch_writes_nothing
        raw_writes_are_stamped_with_the_version_in_force
        a_key_must_be_of_a_keyspace
        an_owned_bucket_is_not_managed_by_hand
        no_way_leads_to_the_system_bucket
        buckets_that_nobody_owns_are_as_they_were
        breaking_the_glass_passes_and_is_recorded
        the_glass_is_broken_by_someone_for_a_reason
        a_keyspace_has_its_own_time_to_live
        no_value_outlives_the_time_to_live_of_its_keyspace
        what_the_store_keeps_itself_is_not_touched_by_hand
        what_the_store_keeps_itself_is_not_made_by_hand
        guards_are_there_after_a_restart;
    planning:
        a_plan_changes_nothing_for_writers
        an_identical_presentation_reuses_the_plan
        a_contract_in_force_leaves_nothing_to_do
        a_bucket_in_the_way_is_named
        two_lineages_never_share_a_bucket
        a_service_is_chosen_once
        a_plan_can_be_cancelled_and_tells_its_progress
        a_plan_survives_its_text;
    applying:
        a_contract_comes_into_force
        a_plan_whose_base_moved_is_refused
        a_plan_of_another_store_is_refused
        an_edited_plan_is_refused
        an_expired_plan_is_refused
        a_rejected_plan_is_refused
        of_two_applies_at_once_one_wins
        a_drifted_bucket_is_configured_again
        what_was_decided_is_kept
        code_is_bound_to_what_was_accepted;
    evolution:
        a_safe_change_needs_no_word
        a_scan_that_finds_nothing_is_safe
        a_scan_that_finds_something_is_dangerous
        a_bucket_is_read_once_for_all_findings
        what_was_written_since_the_plan_is_looked_at
        a_guarded_plan_refuses_violators_at_once
        an_acknowledged_danger_is_applied_and_kept
        values_of_accepted_versions_stay_readable
        shorter_lives_and_histories_are_counted
        histories_are_read_in_one_go
        histories_that_are_too_much_at_once_are_read_singly
        keyspaces_that_are_declared_later_are_looked_at
        a_unique_index_compares_values_and_not_texts
        stored_values_that_are_no_json_are_counted;
    adoption:
        an_adopted_bucket_keeps_its_values
        values_that_do_not_fit_are_found
        another_owner_or_retention_is_dangerous
        what_cannot_be_adopted_is_refused
        the_version_of_unstamped_values_is_that_of_their_keyspace
        what_was_adopted_long_ago_is_still_read
        an_adopted_bucket_is_given_back;
    aside:
        a_removed_alias_is_set_aside_and_restored
        a_bucket_that_was_set_aside_goes_after_its_time
        an_alias_that_returns_takes_its_bucket_back
        a_bucket_that_is_being_taken_back_is_not_swept
        a_sweep_goes_on_wherever_it_was_interrupted
        what_is_left_of_an_apply_takes_over_nothing
        values_that_no_longer_fit_are_found_on_return;
    between:
        writes_to_a_bucket_that_was_just_made_keep_its_contract
        writes_past_the_guards_of_a_bucket_that_was_just_made_are_stamped
        writes_to_a_bucket_that_is_not_yet_adopted_are_not_stamped
        a_rejection_is_whole_or_not_at_all
        the_guards_of_what_was_accepted_do_not_run_out
        what_a_failed_plan_made_is_set_aside_with_its_contract
        a_plan_that_follows_a_failed_one_takes_nothing_from_it
        an_apply_first_ends_what_was_interrupted_before_it
        whoever_is_overtaken_is_told;
    stored_state:
        what_users_and_devices_have_stored_weighs_in
        state_that_fits_is_safe_until_something_else_is_written;
    damage:
        a_damaged_owner_stops_writes_to_its_bucket_only
        a_damaged_owner_concerns_nobody_else
        a_damaged_authority_or_plan_concerns_nobody_else
        a_damaged_authority_is_named
        a_damaged_contract_is_named
        a_damaged_plan_is_named
        every_damage_is_told
        a_decision_that_leads_nowhere_is_damaged
        a_record_that_says_what_cannot_be_is_damaged;
    in_force:
        after_a_failed_step_the_contract_in_force_is_the_old_one
        after_a_failed_step_programs_are_bound_by_what_is_in_force
        a_contract_whose_apply_is_unfinished_binds_nothing
        a_first_contract_that_is_not_in_force_binds_nothing
        an_older_record_of_a_failed_apply_is_understood
        a_plan_that_is_in_force_is_applied_again_without_doing_anything
        a_lineage_sweeps_only_its_own_buckets;
    read_back:
        a_value_that_its_type_cannot_read_back_is_not_written
        a_batch_with_such_a_value_writes_nothing
        a_value_that_no_reader_takes_is_not_written;
    verifying:
        every_value_that_breaks_the_contract_is_found
        an_acknowledged_apply_leaves_what_verify_finds
        overrides_are_told_until_the_next_verification
        the_records_of_the_store_itself_are_no_values
        state_that_breaks_the_contract_is_found
        an_engine_without_room_for_all_records_is_verified_by_its_live_keys;
    strict:
        repeated_fields_are_refused_by_the_guards
        stored_values_with_repeated_fields_count_as_refused
        state_with_repeated_fields_is_refused
        keyspaces_are_split_merged_and_renamed_without_a_loss
        a_contract_on_record_by_an_older_digest_stays_in_force;
    crash:
        an_apply_goes_on_wherever_it_was_interrupted
        a_failed_step_keeps_the_old_bindings;
    racing:
        no_violator_slips_in_behind_an_apply
        an_apply_waits_for_writes_that_are_under_way
        an_apply_waits_for_writes_that_are_older_than_a_sweep
        an_apply_without_its_guards_is_not_accepted;
}
