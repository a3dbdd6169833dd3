//! State with types: one contract as text and in Rust, and what is made of either.

use std::sync::Arc;

use pleach_contract::{Contract, ContractType, Notation};
use pleach_engine::{MemoryEngine, SystemClock};
use pleach_stores::state::{
    Cell, Client, GetOutcome, ListOptions, MigrateOutcome, PutOutcome, State, StateContract, StateFacade,
};
use pleach_stores::{ApplyOptions, Contracts, Guarded, PlanOptions};
use serde_json::{Value, json};

use crate::generated::{awkward, notes};

/// The contract of `notes.yaml` in Rust.
mod derived {
    use pleach_contract::Contract;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// Notes that follow their author.
    #[derive(Contract)]
    #[contract(
        id = "acme.notes@v1",
        kind = "app",
        name = "Notes",
        state = "NotesState",
        crate = "pleach_contract",
        stores = "pleach_stores"
    )]
    #[allow(dead_code, reason = "the fields stand for stores")]
    pub(super) struct Notes {
        /// How it looks.
        #[state(
            kind = "value",
            version = "preferences.v2",
            accepts("preferences.v1" = PreferencesV1, v0 = PreferencesV0)
        )]
        preferences: Preferences,
        #[state(kind = "map")]
        drafts: Draft,
        #[state(kind = "map", name = "read-marks", version = "v3", accepts(v2 = Draft))]
        read_marks: Draft,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub(super) struct Preferences {
        pub(super) theme: String,
        pub(super) compact: bool,
    }

    impl Preferences {
        pub(super) fn new(compact: bool, theme: String) -> Self {
            Self { theme, compact }
        }
    }

    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    pub(super) struct PreferencesV1 {
        pub(super) theme: String,
    }

    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    pub(super) struct PreferencesV0(String);

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub(super) struct Draft {
        pub(super) title: String,
    }

    impl Draft {
        pub(super) fn new(title: String) -> Self {
            Self { title }
        }
    }

    impl From<PreferencesV0> for String {
        fn from(old: PreferencesV0) -> Self {
            old.0
        }
    }
}

fn of_text() -> Contract {
    let text = include_bytes!("../../../pleach-contract/testdata/notes.yaml");
    Contract::parse(text, Notation::Yaml).unwrap().contract
}

/// A session of Ann with the types of a program, and one with an older contract in which the preferences are a text.
async fn clients<F: StateFacade>(contract: &Contract) -> (Client<F>, pleach_stores::state::Session) {
    let mut before = contract.to_value();
    before["state"]["preferences"] =
        json!({"kind": "value", "schema": {"schema": "PreferencesV0"}, "stateVersion": "v0"});
    let before = Contract::from_value(&before).unwrap().contract;
    let state = accepted(&[&before, contract]).await;
    let (contract, before) =
        (state.contract(contract).await.unwrap(), state.contract(&before).await.unwrap());
    let session = |contract: &StateContract| state.session("user:ann".parse().unwrap(), contract);
    (session(&contract).client().unwrap(), session(&before))
}

/// The state in a store that has accepted these contracts, one after the other.
async fn accepted(contracts: &[&Contract]) -> State {
    let engine = Guarded::new(Arc::new(MemoryEngine::new()), Arc::new(SystemClock::new()));
    for contract in contracts {
        let plan = Contracts::of(&engine).plan(contract, PlanOptions::default()).await.unwrap();
        let options = ApplyOptions::by("olga").acknowledging("a test");
        Contracts::of(&engine).apply(&plan, options).await.unwrap();
    }
    State::open(&engine).await.unwrap()
}

#[test]
fn text_derive_and_code_are_of_one_contract() {
    let (text, derived) = (of_text(), derived::Notes::contract().unwrap().contract);
    let code = Contract::parse(notes::CONTRACT.as_bytes(), Notation::Json).unwrap().contract;
    assert_eq!(derived.canonical(), text.canonical());
    assert_eq!((derived.digest(), code.digest()), (text.digest(), text.digest()));
    assert_eq!(notes::Notes::DIGEST, text.digest().as_str());
    assert_eq!(derived, text, "down to what is said about the stores");
}

/// One program, with the types of a module.
macro_rules! a_program {
    ($name:ident, $module:ident) => {
        #[test]
        fn $name() {
            pollster::block_on(async {
                let (client, before) = clients::<$module::NotesState>(&of_text()).await;
                let state = client.state();
                let drafts = state.drafts().prefix("inbox");
                let _ = drafts.put("first", &$module::Draft::new("Dear".into())).await.unwrap();
                let page = state.drafts().prefix("inbox").list(ListOptions::first(20)).await.unwrap();
                for cell in page.entries {
                    match cell {
                        Cell::Entry(entry) => {
                            assert_eq!((entry.key.as_deref(), &*entry.value.title), (Some("first"), "Dear"));
                        }
                        Cell::Bad(bad) => panic!("{bad:?}"),
                    }
                }
                assert_eq!(state.read_marks().count().await.unwrap(), 0);

                let old = before.value::<Value>("preferences").unwrap();
                let PutOutcome::Applied(_) = old.put(&json!("dark")).await.unwrap() else { panic!("a put") };
                let theme = match state.preferences().get().await.unwrap() {
                    GetOutcome::Absent => panic!("it was put"),
                    GetOutcome::Found(entry) => entry.value.theme,
                    GetOutcome::MigrationRequired(old) => match old.entry.value {
                        $module::OldPreferences::PreferencesV1(old) => old.theme,
                        $module::OldPreferences::V0(old) => String::from(old),
                    },
                };
                assert_eq!(theme, "dark");
                let migrated = state.preferences().migrate(|old| {
                    Ok(match old.entry.value {
                        $module::OldPreferences::PreferencesV1(old) => $module::Preferences::new(false, old.theme),
                        $module::OldPreferences::V0(old) => $module::Preferences::new(false, old.into()),
                    })
                });
                let MigrateOutcome::Migrated(new) = migrated.await.unwrap() else { panic!("it was old") };
                let found = state.preferences().get().await.unwrap();
                assert!(matches!(found, GetOutcome::Found(entry) if entry == new));
            });
        }
    };
}

a_program!(a_program_of_the_derive_works, derived);
a_program!(a_program_of_the_code_works, notes);

#[test]
fn awkward_stores_have_a_facade() {
    pollster::block_on(async {
        let contract = Contract::parse(awkward::CONTRACT.as_bytes(), Notation::Json).unwrap().contract;
        let state = accepted(&[&contract]).await;
        let contract = state.contract(&contract).await.unwrap();
        let session = state.session("device:tv".parse().unwrap(), &contract);
        let client = session.client::<awkward::TypeState>().unwrap();
        let value = awkward::Option2::new(None, "t".into());
        assert!(matches!(client.state().r#fn().put(&value).await.unwrap(), PutOutcome::Applied(_)));
        assert_eq!(client.state().self_value().count().await.unwrap(), 0);
    });
}
