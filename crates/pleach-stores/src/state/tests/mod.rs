//! What `docs/state.md` says, through the library, on every engine.
//!
//! | what is asked of State | shown by |
//! |---|---|
//! | stores are declared by kind, schema and versions, with defaults | the tests of documents in `pleach-contract`; `facades` |
//! | users and devices only; services and strangers are refused before any look-up | `services_and_strangers_have_no_session` |
//! | no argument chooses whose entries they are; a namespace each, whatever characters an id has | `isolation`, and in `address` `a_long_id_…` |
//! | the contract's id names the place, not its digest; entries follow upgrades | `entries_survive_…`, `what_an_optional_field_adds_…`, `contracts_and_stores_share_nothing` |
//! | a value store takes no key, a map needs one, only maps are listed | `the_key_rule_of_each_kind_holds` |
//! | the outcome table of puts, and deletes | `outcomes`, `state_agrees_with_a_plain_map` |
//! | a lost race is the row that holds now, with the caller's own value | `races` |
//! | keys, prefixes, values, pages, TTLs and revisions have their limits and forms, in this order | `checks`, `a_prefix_has_a_limit`, `a_page_has_a_limit_…` |
//! | nothing is coerced, nothing is written that is refused | `checks`, with `nothing_is_there` |
//! | expiry to the moment: get, list, count, conditions, delete; a put without a TTL clears it; a reaper | `an_expired_entry_…`, `a_put_without_a_ttl_…`, `counts_are_exact_through_expiry`, `expiry_is_seen_by_a_watch` |
//! | entries carry version and writer; migration in get, list and a failed put; unknown, invalid and damaged ones | `migrations` |
//! | migrating is the program's, under a revision check | `migrating_is_under_…`, `a_migration_that_lost_…`, `older_versions_have_their_own_types` |
//! | byte order, live pages with exact counts, 0 is a limit | `lists`, `counts_are_right_whatever_happens_meanwhile` |
//! | a page reads its own values only; an entry costs the same in any map | `a_page_reads_no_value_outside_it`, `an_entry_costs_the_same_…` |
//! | prefixes split at `/`, respect segments, compose, and make keys relative | `a_view_has_what_is_below_its_path`, `views_compose_…`, `the_keys_of_a_view_are_paths` |
//! | one authority: sessions bind to accepted contracts, and write what those in force allow; nobody else reads it | `authority` |
//! | one bad cell spoils nothing | `one_bad_cell_does_not_spoil_the_page` |
//! | replies | `replies_have_the_documented_shape` |
//! | watches see their own store | `watches` |
//! | administrators: explicit targets, on record; find, export, erase | `admin` |
//! | crashes | `crash`, and `tests/it/state_killed.rs` |

mod admin;
mod authority;
mod checks;
mod crash;
mod facades;
mod given;
mod isolation;
mod lists;
mod meddler;
mod migrations;
mod model;
mod outcomes;
mod races;
mod read_back;
mod watches;

/// A list of tests, run on each of some engines.
macro_rules! on_engines {
    ([$($engine:ident)*] $tests:tt) => {
        $(mod $engine { crate::state::tests::on_engine! { $engine $tests } })*
    };
}

macro_rules! on_engine {
    ($engine:ident { $($group:ident: $($name:ident),+;)+ }) => {
        $($(#[test]
        fn $name() {
            use crate::state::tests::given::{Given, run};
            run(Given::$engine, crate::state::tests::$group::$name);
        })+)+
    };
}

use on_engine;

on_engines! { [in_memory embedded nats] {
    outcomes:
        a_put_expecting_nothing_is_applied,
        a_put_expecting_absence_creates_once,
        a_put_expecting_a_revision_replaces_that_one,
        the_revision_of_a_deletion_is_no_entry,
        the_revision_of_another_key_is_another,
        a_delete_says_whether_it_deleted,
        a_value_store_holds_one_value,
        an_expired_entry_is_absent_for_everyone,
        a_put_without_a_ttl_clears_the_expiry,
        an_expired_entry_is_absent_even_if_it_is_bad,
        entries_survive_a_new_version_of_the_contract,
        what_an_optional_field_adds_needs_no_new_version,
        replies_have_the_documented_shape;
    checks:
        services_and_strangers_have_no_session,
        an_undeclared_store_is_refused,
        the_key_rule_of_each_kind_holds,
        a_key_of_the_limit_is_taken_and_a_longer_one_refused,
        a_value_of_the_limit_is_taken_and_a_larger_one_refused,
        a_value_against_the_schema_is_refused_without_coercion,
        a_value_must_be_json,
        checks_come_in_their_order,
        a_revision_that_no_reply_gave_is_a_lost_race,
        a_ttl_has_a_floor_and_a_ceiling;
    facades:
        a_facade_has_the_stores_of_its_contract,
        a_facade_is_not_for_another_contract,
        older_versions_have_their_own_types,
        a_type_that_does_not_agree_with_its_schema_is_told;
    migrations:
        an_older_version_asks_for_migration_everywhere,
        migrating_is_under_the_revision_that_was_read,
        a_migration_that_fails_changes_nothing,
        a_migration_that_lost_the_race_starts_over,
        a_migrated_entry_expires_when_the_old_one_did,
        a_dropped_version_cannot_be_read,
        a_stored_value_against_its_schema_cannot_be_read,
        a_damaged_entry_can_be_replaced_and_deleted,
        one_bad_cell_does_not_spoil_the_page;
    lists:
        a_list_is_in_the_byte_order_of_keys,
        pages_tell_the_count_and_the_next_offset,
        pages_are_live,
        a_page_of_nothing_counts,
        a_page_has_a_limit_and_past_the_end_it_is_empty,
        a_view_has_what_is_below_its_path,
        views_compose_and_their_keys_are_relative,
        the_keys_of_a_view_are_paths,
        a_prefix_has_a_limit,
        counts_are_exact_through_expiry;
    races:
        of_two_creators_one_wins_and_the_other_sees_its_entry,
        a_create_that_lost_to_an_entry_now_gone_is_applied,
        an_update_that_lost_to_a_delete_finds_nothing,
        an_update_that_lost_to_a_writer_sees_its_entry,
        a_delete_that_lost_to_a_delete_says_so,
        a_delete_without_a_condition_deletes_what_is_there_now,
        a_page_that_changes_while_it_is_read_is_of_one_moment,
        concurrent_increments_lose_nothing,
        creates_and_deletes_at_once_take_turns,
        of_many_who_wait_for_an_expiry_one_creates,
        counts_are_right_whatever_happens_meanwhile;
    authority:
        a_contract_that_was_never_accepted_has_no_session,
        a_program_of_the_previous_contract_goes_on,
        what_breaks_the_contract_in_force_is_not_written,
        a_store_that_the_contract_in_force_dropped_takes_nothing,
        a_contract_that_is_not_in_force_yet_has_no_session,
        ordinary_handles_do_not_show_state;
    isolation:
        principals_with_hostile_ids_share_nothing,
        hostile_keys_are_keys_like_others,
        contracts_and_stores_share_nothing;
    watches:
        a_watch_sees_its_own_store_only,
        a_watch_begins_with_what_is_there,
        a_watch_goes_on_after_a_revision,
        a_view_watches_what_is_below_it,
        expiry_is_seen_by_a_watch;
    admin:
        an_act_needs_a_name_and_a_reason,
        every_act_is_recorded_before_it_is_done,
        an_act_that_failed_is_recorded_without_an_outcome,
        a_target_is_one_store,
        an_administrator_looks_at_and_deletes_damaged_entries,
        a_principals_whole_state_is_found_and_exported,
        erasing_leaves_nothing_of_one_and_everything_of_others,
        erasing_takes_history_along,
        an_erasure_takes_so_many_at_a_time,
        an_erasure_goes_on_where_it_was_cut_off;
    read_back:
        a_value_that_its_type_cannot_read_back_is_not_written,
        a_migration_to_such_a_value_changes_nothing;
    model:
        state_agrees_with_a_plain_map;
}}

/// Where a commit is judged by the same moment as a read: what a server takes for a second longer is a promise of its own.
mod to_the_moment {
    on_engines! { [in_memory embedded] {
        races:
            an_update_that_lost_to_expiry_finds_nothing;
    }}
}

mod in_a_large_map {
    on_engines! { [in_memory roomy nats] {
        lists:
            a_page_reads_no_value_outside_it,
            an_entry_costs_the_same_however_many_there_are;
    }}
}
