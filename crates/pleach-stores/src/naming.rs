use pleach_contract::ContractId;
use pleach_engine::{BucketName, InvalidName, Key};

use crate::state::{STATE_BUCKET, STATE_LOG_BUCKET};

/// The bucket in which a store keeps what it knows about contracts. `docs/formats/system.md` describes it.
pub const SYSTEM_BUCKET: &str = "pleach_system";

/// The lineage as a token of a key: dots would be tokens of their own, and `@` is no letter of keys.
pub(crate) fn lineage_token(lineage: &str) -> String {
    lineage.replace('.', "/").replace('@', "=")
}

/// The service that a lineage is taken for, unless someone says otherwise: its last word.
pub(crate) fn service_of(id: &ContractId) -> String {
    let name = id.as_str().split('@').next().unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// The bucket of an alias: named after the service and the alias and never after the digest, so that a new version of
/// a contract finds the data of the old one.
pub(crate) fn bucket_name(service: &str, alias: &str) -> Result<BucketName, InvalidName> {
    let letter = |letter: char| match letter {
        'A'..='Z' => letter.to_ascii_lowercase(),
        'a'..='z' | '0'..='9' => letter,
        _ => '_',
    };
    let words = format!("svc_{service}_{alias}");
    BucketName::parse(words.chars().map(letter).collect::<String>())
}

/// The name of the system bucket, checked.
pub(crate) fn system_bucket() -> BucketName {
    BucketName::parse(SYSTEM_BUCKET).expect("it keeps the rules of names")
}

/// Whether a bucket holds what the store itself keeps: it is managed by nobody else, and no contract owns it.
pub fn is_reserved(bucket: &BucketName) -> bool {
    [SYSTEM_BUCKET, STATE_BUCKET, STATE_LOG_BUCKET].contains(&bucket.as_str())
}

/// Whether a bucket holds what users and devices have stored, or the record of who looked at that.
pub(crate) fn holds_state(bucket: &BucketName) -> bool {
    [STATE_BUCKET, STATE_LOG_BUCKET].contains(&bucket.as_str())
}

/// A key of the system bucket.
pub(crate) fn system_key(parts: &[&str]) -> Result<Key, InvalidName> {
    Key::parse(parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_named_after_service_and_alias() {
        let id = ContractId::parse("acme.case-notes@v2").unwrap();
        assert_eq!(service_of(&id), "case-notes");
        assert_eq!(
            bucket_name(&service_of(&id), "Activity.log").unwrap().as_str(),
            "svc_case_notes_activity_log"
        );
        assert_eq!(lineage_token(id.as_str()), "acme/case-notes=v2");
    }
}
