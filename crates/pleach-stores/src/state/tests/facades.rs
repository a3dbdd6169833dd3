use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::*;
use super::given::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Preferences {
    theme: String,
    compact: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct PreferencesV1 {
    theme: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Draft {
    title: String,
}

crate::state_facade! {
    /// The stores of the second version of the notes.
    pub(super) struct Notes {
        /// How it looks.
        value preferences("preferences", "preferences.v2"): Preferences, or OldPreferences {
            V1(PreferencesV1) = "preferences.v1",
        };
        map drafts("drafts", "v1"): Draft;
    }
}

crate::state_facade! {
    /// Takes one store for what it is not.
    struct Mistaken {
        map preferences("preferences", "preferences.v2"): Preferences;
    }
}

crate::state_facade! {
    /// Does not know the older version.
    struct Forgetful {
        value preferences("preferences", "preferences.v2"): Preferences;
    }
}

fn upgraded(old: OldPreferences) -> Preferences {
    match old {
        OldPreferences::V1(PreferencesV1 { theme }) => Preferences { theme, compact: false },
    }
}

fn client(given: &Given) -> Client<Notes> {
    given.session("user:ann", &second()).client().unwrap()
}

pub(super) async fn a_facade_has_the_stores_of_its_contract(given: Given) {
    let client = client(&given);
    assert_eq!(client.principal().to_string(), "user:ann");
    let dark = Preferences { theme: "dark".into(), compact: true };
    assert_eq!(applied(client.state().preferences().put(&dark).await).value, dark);
    assert_eq!(found(client.state().preferences().get().await).value, dark);
    let first = Draft { title: "x".into() };
    let inbox = client.state().drafts().prefix("inbox");
    let _ = applied(inbox.put("a", &first).await);
    assert_eq!(found(client.state().drafts().get("inbox/a").await).value, first);
    let page = client.state().drafts().prefix("inbox").list(ListOptions::first(20)).await.unwrap();
    // There are no older drafts, so nothing has to be said of them.
    let titles: Vec<&str> = page
        .entries
        .iter()
        .map(|cell| match cell {
            Cell::Entry(entry) => entry.value.title.as_str(),
            Cell::MigrationRequired(old) => match old.entry.value {},
            Cell::Bad(bad) => panic!("{bad:?}"),
        })
        .collect();
    assert_eq!(titles, ["x"]);
}

pub(super) async fn a_facade_is_not_for_another_contract(given: Given) {
    let session = given.session("user:ann", &second());
    let refused = |refused: Option<StateError>| refused.expect("it is of another contract");
    assert!(matches!(refused(session.client::<Mistaken>().err()), StateError::WrongKind { .. }));
    let error = refused(session.client::<Forgetful>().err());
    let StateError::OtherVersions { known, declared, .. } = &error else { panic!("{error}") };
    assert_eq!(
        (known.join(" "), declared.join(" ")),
        ("preferences.v2".into(), "preferences.v1 preferences.v2".into())
    );
    // The first version writes what the program takes for old; the third has forgotten that, and is fine.
    let error = refused(given.ann().client::<Notes>().err());
    assert!(matches!(error, StateError::OtherVersions { .. }), "{error}");
    assert!(given.session("user:ann", &third()).client::<Notes>().is_ok());
    let other = contract("acme.other@v1", json!({"drafts": {"kind": "map", "schema": {"schema": "Draft"}}}));
    let error = refused(given.session("user:ann", &other).client::<Notes>().err());
    assert!(matches!(error, StateError::UndeclaredStore { .. }), "{error}");
}

pub(super) async fn older_versions_have_their_own_types(given: Given) {
    let preferences = given.ann().value::<Value>("preferences").unwrap();
    let old = applied(preferences.put(&json!({"theme": "dark"})).await);
    let client = client(&given);
    let preferences = client.state().preferences();
    let theme = match preferences.get().await.unwrap() {
        GetOutcome::Absent => panic!("it is there"),
        GetOutcome::Found(entry) => panic!("{entry:?} is old"),
        GetOutcome::MigrationRequired(Migration { entry, state_version, .. }) => {
            assert_eq!((state_version.as_str(), entry.revision), ("preferences.v1", old.revision));
            match entry.value {
                OldPreferences::V1(PreferencesV1 { theme }) => theme,
            }
        }
    };
    assert_eq!(theme, "dark");
    let light = Preferences { theme: "light".into(), compact: true };
    let outcome = preferences.put_with(&light, expecting(Expect::Absent)).await.unwrap();
    assert!(matches!(outcome, PutOutcome::MigrationRequired(_)), "{outcome:?}");
    let migrated = preferences.migrate(|old| Ok(upgraded(old.entry.value))).await.unwrap();
    let MigrateOutcome::Migrated(entry) = migrated else { panic!("{migrated:?}") };
    assert_eq!(entry.value, Preferences { theme: "dark".into(), compact: false });
    assert_eq!(found(preferences.get().await), entry);
}

pub(super) async fn a_type_that_does_not_agree_with_its_schema_is_told(given: Given) {
    // The schema of the first version allows more fields, and so of other types.
    let first = given.ann().value::<Value>("preferences").unwrap();
    let _ = applied(first.put(&json!({"theme": "dark"})).await);
    crate::state_facade! {
        struct Wrong {
            value preferences("preferences", "preferences.v2"): Vec<u8>, or OldWrong { V1(Vec<u8>) = "preferences.v1" };
            map drafts("drafts", "v1"): Vec<u8>;
        }
    }
    let client = given.session("user:ann", &second()).client::<Wrong>().unwrap();
    let error = client.state().preferences().get().await.unwrap_err();
    assert!(
        matches!(&error, StateError::WrongType { expected, .. } if expected.contains("OldWrong")),
        "{error}"
    );
    let _ = applied(given.drafts().put("a", &draft("x")).await);
    let page = client.state().drafts().list(ListOptions::first(1)).await.unwrap();
    assert!(matches!(&page.entries[..], [Cell::Bad(bad)] if bad.key.as_deref() == Some("a")), "{page:?}");
}
