use pleach_engine::ErrorKind;
use pleach_stores::{KvError, Misfit, Read};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::given::{Given, case_key, on_every_engine};

const KEY: &str = "t.acme.case.000007";

/// What is said about a case that holds this.
async fn complaint(given: &Given, value: &str, version: Option<&str>) -> KvError {
    given.put_raw(KEY, value, version).await;
    let revision = given.raw(KEY).await.unwrap().revision;
    let error = given.cases().get(&case_key(7)).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(KEY) && text.contains(&format!("revision {revision}")), "{text}");
    assert!(!error.help().is_empty());
    // Nothing is lost by looking at it.
    assert_eq!(given.raw(KEY).await.unwrap().value, value.to_owned());
    error
}

#[test]
fn a_bad_stored_value_is_an_error_that_names_key_and_revision() {
    on_every_engine(async |given| {
        let not_json = complaint(&given, "{\"status\":", Some("v2")).await;
        assert!(matches!(&not_json, KvError::Stored { misfit: Misfit::NotJson { .. }, .. }), "{not_json:?}");
        assert_eq!(not_json.kind(), ErrorKind::Corrupt);
        let not_allowed = complaint(&given, r#"{"status":"LOST"}"#, Some("v2")).await;
        assert!(matches!(&not_allowed, KvError::Stored { misfit: Misfit::Value(_), .. }), "{not_allowed:?}");
        let unknown = complaint(&given, r#"{"status":"OPEN"}"#, Some("v9")).await;
        let KvError::Stored { misfit: Misfit::Version { version, known }, .. } = &unknown else {
            panic!("{unknown:?}")
        };
        assert_eq!((version.as_str(), known.join(" ")), ("v9", "v2 v1".to_owned()));
        let not_even_old = complaint(&given, r#"{"status":"LOST"}"#, Some("v1")).await;
        assert!(
            matches!(&not_even_old, KvError::Stored { misfit: Misfit::Value(_), .. }),
            "{not_even_old:?}"
        );
        let unstamped = complaint(&given, r#"{"status":"OPEN","title":"x"}"#, None).await;
        assert!(matches!(&unstamped, KvError::Unstamped { .. }), "{unstamped:?}");
        // A put mends it.
        given.cases().put(&case_key(7), &super::given::open("x")).await.unwrap();
        assert!(given.cases().get(&case_key(7)).await.is_ok());
    });
}

#[test]
fn an_accepted_old_version_is_migration_required() {
    on_every_engine(async |given| {
        given.put_first(7, "OPEN").await;
        let Some(Read::MigrationRequired(old)) = given.cases().get(&case_key(7)).await.unwrap() else {
            panic!("it is old")
        };
        assert_eq!((old.key.as_str(), &old.value), (KEY, &json!({"status": "OPEN"})));
        assert_eq!((old.version.as_str(), old.current_version.as_str()), ("v1", "v2"));
        assert_eq!(old.revision, given.raw(KEY).await.unwrap().revision);
        let first = given.first_service().kv("cases").unwrap();
        assert_eq!(old.envelope().unwrap().writer, first.digest().to_string());
        // What a newer program writes, an older one does not understand, and says so.
        given.cases().put(&case_key(8), &super::given::open("x")).await.unwrap();
        let error = first.get(&"t.acme.case.000008".parse().unwrap()).await.unwrap_err();
        assert!(matches!(&error, KvError::Stored { misfit: Misfit::Version { .. }, .. }), "{error:?}");
    });
}

#[test]
fn unstamped_values_of_an_adopted_bucket_have_the_version_of_its_binding() {
    on_every_engine(async |given| {
        given.put_raw(KEY, r#"{"status":"OPEN"}"#, None).await;
        let read = async |version: &str| {
            let store = given.service_with_unstamped(version).kv("cases").unwrap();
            store.get(&KEY.parse().unwrap()).await
        };
        let Ok(Some(Read::MigrationRequired(old))) = read("v1").await else { panic!("it is old") };
        assert_eq!((old.version.as_str(), old.envelope()), ("v1", None));
        let error = read("v2").await.unwrap_err();
        assert!(matches!(&error, KvError::Stored { misfit: Misfit::Value(_), .. }), "{error:?}");
    });
}

#[test]
fn a_value_that_the_schema_allows_and_the_type_does_not_is_an_error() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Narrow {
        status: String,
        title: String,
    }
    on_every_engine(async |given| {
        given.put_raw(KEY, r#"{"status":"OPEN","title":"x","more":1}"#, Some("v2")).await;
        let narrow = given.store().keyspace::<Narrow>("case").unwrap();
        let error = narrow.get(&case_key(7)).await.unwrap_err();
        assert!(matches!(&error, KvError::Type { reason, .. } if reason.contains("more")), "{error:?}");
        assert!(given.cases().get(&case_key(7)).await.is_ok());
    });
}

#[test]
fn an_expired_value_is_absent_even_if_its_bytes_are_bad() {
    on_every_engine(async |given| {
        use pleach_engine::{Batch, Expiry, Operation};
        let operation = Operation::put("t.acme.lock.door".parse().unwrap(), "no json")
            .expiring(Expiry::After(super::given::MINUTE));
        given.engine.commit(given.store().bucket(), Batch::from(operation)).await.unwrap();
        let locks = given.store().keyspace::<super::given::Lock>("lock").unwrap();
        let key = ["acme".into(), "door".into()];
        assert!(locks.get(&key).await.is_err());
        given.clock.advance(super::given::MINUTE);
        assert_eq!(locks.get(&key).await.unwrap(), None);
    });
}
