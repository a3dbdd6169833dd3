//! A typed put is checked before it is committed: what its type cannot read back is not written.

use pleach_engine::ErrorKind;
use pleach_stores::{KvError, KvStore, KvWriteError, Read, Service};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Given;
use crate::given::notes;

/// A measurement, which a NaN makes unreadable: JSON has none, and writes `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    degrees: f64,
}

/// A field that is read and not written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Forgetful {
    #[serde(skip_serializing)]
    secret: String,
}

const WARM: Measured = Measured { degrees: 21.5 };
const UNKNOWN: Measured = Measured { degrees: f64::NAN };

async fn store(given: &Given) -> KvStore {
    given.accept(&notes(json!({"type": ["object", "array"]}))).await;
    let service = Service::bind(&given.engine, &notes(json!({"type": ["object", "array"]}))).await.unwrap();
    service.kv("notes").unwrap()
}

async fn warm(store: &KvStore) -> Measured {
    match store.entries::<Measured>().unwrap().get("one").await.unwrap() {
        Some(Read::Current(found)) => found.value,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_value_that_its_type_cannot_read_back_is_not_written(given: Given) {
    let store = store(&given).await;
    let measured = store.entries::<Measured>().unwrap();
    let seen = measured.put("one", &WARM).await.unwrap();
    let error = measured.put("one", &UNKNOWN).await.unwrap_err();
    assert!(matches!(&error, KvError::NotReadBack { key, .. } if key.as_str() == "one"), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = measured.update("one", &UNKNOWN, seen).await.unwrap_err();
    assert!(matches!(error, KvWriteError::Failed(KvError::NotReadBack { .. })), "{error:?}");
    let error = measured.create("two", &UNKNOWN).await.unwrap_err();
    assert!(matches!(error, KvWriteError::Failed(KvError::NotReadBack { .. })), "{error:?}");
    let forgetful = store.entries::<Forgetful>().unwrap();
    let error = forgetful.put("one", &Forgetful { secret: "x".into() }).await.unwrap_err();
    assert!(error.to_string().contains("secret"), "{error}");
    assert_eq!(warm(&store).await, WARM);
    assert!(measured.get("two").await.unwrap().is_none());
}

pub(crate) async fn a_batch_with_such_a_value_writes_nothing(given: Given) {
    let store = store(&given).await;
    let measured = store.entries::<Measured>().unwrap();
    measured.put("one", &WARM).await.unwrap();
    let cold = Measured { degrees: -3.0 };
    let batch = store.batch().put(&measured, "one", &cold).put(&measured, "two", &UNKNOWN);
    let error = batch.commit().await.unwrap_err();
    assert!(matches!(error, KvWriteError::Failed(KvError::NotReadBack { .. })), "{error:?}");
    assert_eq!(warm(&store).await, WARM);
}

pub(crate) async fn a_value_that_no_reader_takes_is_not_written(given: Given) {
    let store = store(&given).await;
    let any = store.entries::<Value>().unwrap();
    let nested = |levels: usize| (0..levels).fold(json!({}), |value, _| json!([value]));
    any.put("deep", &nested(100)).await.unwrap();
    let error = any.put("deep", &nested(500)).await.unwrap_err();
    assert!(matches!(error, KvError::NotReadBack { .. } | KvError::Refused { .. }), "{error:?}");
    assert!(
        matches!(any.get("deep").await.unwrap(), Some(Read::Current(found)) if found.value == nested(100))
    );
}
