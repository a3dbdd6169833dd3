use pleach::codec::{Escape, Json, Lz4};
use pleach::{Error, ErrorKind, TypedBucket, WriteError};

use crate::given::Given;

pub(crate) async fn a_typed_value_that_cannot_be_read_back_is_not_written(given: Given) {
    let bucket = given.bucket().await;
    let plain = bucket.typed::<f64>();
    let packed: TypedBucket<str, f64> = bucket.with_codecs(Escape, Json.then(Lz4::default()));
    for degrees in [plain, packed] {
        let seen = degrees.put("room", &21.5).await.unwrap();
        let error = degrees.put("room", &f64::NAN).await.unwrap_err();
        assert!(matches!(&error, Error::NotReadBack { key, .. } if key.as_str() == "room"), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let error = degrees.update("room", &f64::INFINITY, seen).await.unwrap_err();
        assert!(matches!(error, WriteError::Failed(Error::NotReadBack { .. })), "{error:?}");
        assert!(degrees.stored("room", &f64::NAN).is_err());
        assert_eq!(degrees.get("room").await.unwrap().unwrap().value, 21.5);
    }
}
