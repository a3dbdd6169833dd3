use pleach_engine::ErrorKind;
use serde_json::{Value, json};

use super::super::*;
use super::given::*;
use super::meddler::Call;

fn upgraded(old: Migration) -> Result<Value, String> {
    let theme = old.entry.value.get("theme").cloned().ok_or("there is no theme")?;
    Ok(json!({"theme": theme, "compact": false}))
}

async fn old_preferences(given: &Given) -> StateEntry<Value> {
    applied(given.ann().value("preferences").unwrap().put(&json!({"theme": "dark"})).await)
}

fn is_old(migration: &Migration, entry: &StateEntry<Value>) {
    assert_eq!(&migration.entry, entry);
    assert_eq!(migration.state_version, "preferences.v1");
    assert_eq!(migration.current_state_version, "preferences.v2");
    assert_eq!(migration.writer_contract_digest, first().digest().as_str());
}

pub(super) async fn an_older_version_asks_for_migration_everywhere(given: Given) {
    let entry = old_preferences(&given).await;
    let preferences = given.session("user:ann", &second()).value::<Value>("preferences").unwrap();
    let GetOutcome::MigrationRequired(old) = preferences.get().await.unwrap() else { panic!("it is old") };
    is_old(&old, &entry);
    let new = json!({"theme": "light", "compact": true});
    for expect in [Expect::Absent, Expect::Revision("r0".parse().unwrap())] {
        let outcome = preferences.put_with(&new, expecting(expect)).await.unwrap();
        let PutOutcome::MigrationRequired(old) = outcome else { panic!("{outcome:?}") };
        is_old(&old, &entry);
    }
    let reply = preferences.get().await.unwrap().to_json();
    assert_eq!((&reply["migrationRequired"], reply.get("found")), (&json!(true), None));
    // In a list too.
    let maps = |version: &str, accepted: Value| {
        let store = json!({"kind": "map", "schema": {"schema": "Draft"}, "stateVersion": version, "acceptedVersions": accepted});
        contract("acme.notes@v1", json!({ "drafts": store }))
    };
    let _ = applied(given.drafts().put("a", &draft("one")).await);
    let later = maps("v2", json!({"v1": {"schema": "Draft"}}));
    let drafts = given.session("user:ann", &later).map::<Value>("drafts").unwrap();
    let _ = applied(drafts.put("b", &draft("two")).await);
    let page = drafts.list(ListOptions::first(10)).await.unwrap();
    assert!(matches!(&page.entries[..], [Cell::MigrationRequired(_), Cell::Entry(_)]), "{page:?}");
    assert_eq!((keys(&page), page.count), (vec!["a", "b"], 2));
}

pub(super) async fn migrating_is_under_the_revision_that_was_read(given: Given) {
    given.accepted(&first());
    let preferences = given.session("user:ann", &second()).value::<Value>("preferences").unwrap();
    assert_eq!(preferences.migrate(upgraded).await.unwrap(), MigrateOutcome::Absent);
    let old = old_preferences(&given).await;
    let MigrateOutcome::Migrated(new) = preferences.migrate(upgraded).await.unwrap() else {
        panic!("it was old")
    };
    assert_eq!(new.value, json!({"theme": "dark", "compact": false}));
    assert_ne!(new.revision, old.revision);
    assert_eq!(found(preferences.get().await), new);
    assert_eq!(preferences.migrate(upgraded).await.unwrap(), MigrateOutcome::Current(new));
}

pub(super) async fn a_migration_that_fails_changes_nothing(given: Given) {
    let old = old_preferences(&given).await;
    let preferences = given.session("user:ann", &second()).value::<Value>("preferences").unwrap();
    let refused = preferences.migrate(|_| Err("not today".into())).await;
    assert!(matches!(refused, Err(StateError::NotMigrated { reason, .. }) if reason == "not today"));
    let invalid = preferences.migrate(|_| Ok(json!({"theme": "dark"}))).await;
    assert!(matches!(invalid, Err(StateError::InvalidValue { .. })));
    assert_eq!(found(given.ann().value("preferences").unwrap().get().await), old);
}

pub(super) async fn a_migration_that_lost_the_race_starts_over(given: Given) {
    old_preferences(&given).await;
    let preferences = given.session("user:ann", &second()).value::<Value>("preferences").unwrap();
    let (ann, other) = (given.ann(), preferences.clone());
    // Another program of the first version writes first; what it wrote is migrated.
    given.engine.before(Call::Commit, move |_| {
        let _ = applied(pollster::block_on(ann.value("preferences").unwrap().put(&json!({"theme": "blue"}))));
    });
    let MigrateOutcome::Migrated(new) = preferences.migrate(upgraded).await.unwrap() else {
        panic!("it was old")
    };
    assert_eq!(new.value["theme"], json!("blue"));
    // Another program of the second version writes first; that stays.
    old_preferences(&given).await;
    given.engine.before(Call::Commit, move |_| {
        let _ = applied(pollster::block_on(other.put(&json!({"theme": "red", "compact": true}))));
    });
    let outcome = preferences.migrate(upgraded).await.unwrap();
    assert!(
        matches!(&outcome, MigrateOutcome::Current(entry) if entry.value["theme"] == "red"),
        "{outcome:?}"
    );
}

pub(super) async fn a_migrated_entry_expires_when_the_old_one_did(given: Given) {
    let old = given.ann().value::<Value>("preferences").unwrap();
    let old = applied(old.put_with(&json!({"theme": "dark"}), living(2000)).await);
    let preferences = given.session("user:ann", &second()).value::<Value>("preferences").unwrap();
    given.advance(500);
    let MigrateOutcome::Migrated(new) = preferences.migrate(upgraded).await.unwrap() else {
        panic!("it was old")
    };
    assert_eq!(new.expires_at, old.expires_at);
    given.advance_to(500, 2000);
    assert_eq!(preferences.get().await.unwrap(), GetOutcome::Absent);
}

pub(super) async fn a_dropped_version_cannot_be_read(given: Given) {
    let old = old_preferences(&given).await;
    let before = given.ann();
    let preferences = given.session("user:ann", &third()).value::<Value>("preferences").unwrap();
    let refused = |error: StateError| {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("/stateVersion"), "{error}");
        assert!(matches!(error, StateError::UnknownVersion { version, .. } if version == "preferences.v1"));
    };
    let new = json!({"theme": "x", "compact": true});
    refused(preferences.get().await.unwrap_err());
    refused(preferences.put_with(&new, expecting(Expect::Absent)).await.unwrap_err());
    refused(preferences.migrate(upgraded).await.unwrap_err());
    assert_eq!(found(before.value("preferences").unwrap().get().await), old, "nothing was written");
    let _ = applied(preferences.put(&new).await);
}

/// As in a KV resource.
pub(super) async fn a_stored_value_against_its_schema_cannot_be_read(given: Given) {
    let stamps = [("Pleach-Version", "v1"), ("Pleach-Contract", "digest")];
    given.damage("user:ann", "drafts", Some("a"), "{\"title\": 1}", &stamps);
    let error = given.drafts().get("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(matches!(error, StateError::InvalidStored { .. }), "{error}");
    assert_eq!(
        given.drafts().delete("a").await.unwrap(),
        DeleteOutcome::Deleted,
        "whose it is may delete it"
    );
}

pub(super) async fn a_damaged_entry_can_be_replaced_and_deleted(given: Given) {
    let whole = [("Pleach-Version", "v1"), ("Pleach-Contract", "digest")];
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("{\"title\": \"x\"}", &[]),
        ("{\"title\": \"x\"}", &whole[..1]),
        ("{\"title\": \"x\"}", &whole[1..]),
        ("{", &whole),
    ];
    let drafts = given.drafts();
    for (value, headers) in cases {
        given.damage("user:ann", "drafts", Some("a"), value, headers);
        let corrupt = |error: StateError| {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(matches!(error, StateError::Corrupt { .. }), "{error}");
        };
        corrupt(drafts.get("a").await.unwrap_err());
        corrupt(drafts.put_with("a", &draft("x"), expecting(Expect::Absent)).await.unwrap_err());
        assert_eq!(drafts.count().await.unwrap(), 1, "it is still there");
        let _ = applied(drafts.put("a", &draft("whole")).await);
        assert_eq!(found(drafts.get("a").await).value, draft("whole"));
        let whole = found(drafts.get("a").await).revision;
        given.damage("user:ann", "drafts", Some("a"), value, headers);
        let damaged = StateRevision(given.newest_revision("a").await);
        for (expect, outcome) in [
            (whole, DeleteOutcome::NotDeleted),
            (damaged, DeleteOutcome::Deleted),
            (damaged, DeleteOutcome::NotDeleted),
        ] {
            let options = DeleteOptions { expect: Some(expect) };
            assert_eq!(drafts.delete_with("a", options).await.unwrap(), outcome);
        }
        given.damage("user:ann", "drafts", Some("a"), value, headers);
        assert_eq!(drafts.delete("a").await.unwrap(), DeleteOutcome::Deleted);
        assert_eq!((drafts.get("a").await.unwrap(), drafts.count().await.unwrap()), (GetOutcome::Absent, 0));
    }
}

pub(super) async fn one_bad_cell_does_not_spoil_the_page(given: Given) {
    let drafts = given.drafts();
    for key in ["a", "e"] {
        let _ = applied(drafts.put(key, &draft(key)).await);
    }
    let stamps = [("Pleach-Version", "v1"), ("Pleach-Contract", "digest")];
    given.damage("user:ann", "drafts", Some("b"), "{}", &[]);
    given.damage("user:ann", "drafts", Some("c"), "{}", &stamps);
    given.damage(
        "user:ann",
        "drafts",
        Some("d"),
        "{\"title\": \"x\"}",
        &[("Pleach-Version", "v9"), ("Pleach-Contract", "d")],
    );
    let page = drafts.list(ListOptions::first(10)).await.unwrap();
    assert_eq!((keys(&page), page.count), (vec!["a", "b", "c", "d", "e"], 5));
    let error = |number: usize| match &page.entries[number] {
        Cell::Bad(bad) => &bad.error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(error(1), StateError::Corrupt { .. }));
    assert!(matches!(error(2), StateError::InvalidStored { .. }));
    assert!(matches!(error(3), StateError::UnknownVersion { .. }));
    assert!(matches!((&page.entries[0], &page.entries[4]), (Cell::Entry(_), Cell::Entry(_))));
}
