use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::*;
use super::given::*;

/// A measurement, which a NaN makes unreadable: JSON has none, and writes `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    degrees: f64,
}

const WARM: Measured = Measured { degrees: 21.5 };
const UNKNOWN: Measured = Measured { degrees: f64::NAN };

pub(super) async fn a_value_that_its_type_cannot_read_back_is_not_written(given: Given) {
    let anything: MapStore<Measured> = given.ann().map("anything").unwrap();
    let seen = applied(anything.put("room", &WARM).await).revision;
    for expect in [Expect::Anything, Expect::Revision(seen)] {
        let error = anything.put_with("room", &UNKNOWN, expecting(expect)).await.unwrap_err();
        assert!(
            matches!(&error, StateError::NotReadBack { place, .. } if place.contains("room")),
            "{error:?}"
        );
    }
    let entry = found(anything.get("room").await);
    assert_eq!((entry.value, entry.revision), (WARM, seen));
}

pub(super) async fn a_migration_to_such_a_value_changes_nothing(given: Given) {
    let stores = |version: &str, more: Value| {
        let mut store = json!({"kind": "map", "schema": {"schema": "Any"}, "stateVersion": version});
        store["acceptedVersions"] = more;
        contract("acme.notes@v1", json!({"anything": store}))
    };
    let old: MapStore<Value> = given.session("user:ann", &stores("v1", json!({}))).map("anything").unwrap();
    let _ = applied(old.put("room", &json!({"degrees": 3})).await);
    let next = stores("v2", json!({"v1": {"schema": "Any"}}));
    let new: MapStore<Measured> = given.session("user:ann", &next).map("anything").unwrap();
    let error = new.migrate("room", |_| Ok(UNKNOWN)).await.unwrap_err();
    assert!(matches!(error, StateError::NotReadBack { .. }), "{error:?}");
    assert_eq!(found(old.get("room").await).value, json!({"degrees": 3}));
}
