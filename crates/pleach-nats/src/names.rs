use pleach_engine::{BucketName, Key};

use crate::options::{BucketPlace, NatsOptions};

/// What streams of buckets begin with, as every NATS client expects.
const STREAM_PREFIX: &str = "KV_";

/// What subjects of keys begin with, as every NATS client expects.
const SUBJECT_PREFIX: &str = "$KV.";

/// What the subjects begin with under which a stream of ours repeats what it has stored, for those who watch.
const REPEATED_PREFIX: &str = "$PLEACH.CHANGES.";

/// The key whose subject takes the messages that only carry a check. It is nobody's key: what is stored under it is never
/// shown. See `docs/formats/nats.md`.
const CHECK_KEY: &str = "_kv.check";

/// Where a bucket lies on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Its stream.
    pub(crate) stream: String,
    /// It does not lie where its name says.
    pub(crate) is_placed: bool,
    /// What the subjects of its keys begin with, with the last dot.
    subjects: String,
    /// What the subjects begin with under which its changes are repeated, with the last dot.
    repeated: String,
}

impl Names {
    pub(crate) fn new(options: &NatsOptions, bucket: &BucketName) -> Self {
        let place = options.places.get(bucket).cloned().unwrap_or_else(|| BucketPlace {
            stream: format!("{STREAM_PREFIX}{}{bucket}", options.namespace),
            subjects: format!("{SUBJECT_PREFIX}{}{bucket}", options.namespace),
        });
        let repeated = format!("{REPEATED_PREFIX}{}.", place.stream);
        let is_placed = options.places.contains_key(bucket);
        Self { stream: place.stream, is_placed, subjects: format!("{}.", place.subjects), repeated }
    }

    /// The bucket that lies in `stream`, if its name says so.
    pub(crate) fn bucket(options: &NatsOptions, stream: &str) -> Option<BucketName> {
        let placed = options.places.iter().find(|(_, place)| place.stream == stream);
        if let Some((bucket, _)) = placed {
            return Some(bucket.clone());
        }
        let name = stream.strip_prefix(STREAM_PREFIX)?.strip_prefix(options.namespace.as_str())?;
        let bucket = BucketName::parse(name).ok()?;
        // One that was placed elsewhere is not here, whatever has its name.
        (!options.places.contains_key(&bucket)).then_some(bucket)
    }

    pub(crate) fn subject(&self, key: &Key) -> String {
        [self.subjects.as_str(), key.as_str()].concat()
    }

    pub(crate) fn all_subjects(&self) -> String {
        format!("{}>", self.subjects)
    }

    pub(crate) fn all_repeated(&self) -> String {
        format!("{}>", self.repeated)
    }

    /// The key whose subject this is; none for messages that only carry a check.
    pub(crate) fn key(&self, subject: &str) -> Option<Key> {
        let key = subject.strip_prefix(&self.subjects)?;
        if key == CHECK_KEY {
            return None;
        }
        Key::parse_reserved(key).ok()
    }

    /// The same, of a key that scans, counts and watches show.
    pub(crate) fn listed_key(&self, subject: &str) -> Option<Key> {
        self.key(subject).filter(|key| !key.is_fence())
    }

    /// The subject of messages that only carry a check.
    pub(crate) fn check_subject(&self) -> String {
        [self.subjects.as_str(), CHECK_KEY].concat()
    }

    /// Whether nobody can write to a key.
    pub(crate) fn is_taken(key: &Key) -> bool {
        key.as_str() == CHECK_KEY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lies_where_nats_clients_look_for_it() {
        let (options, carts) = (NatsOptions::default(), BucketName::parse("carts").unwrap());
        let names = Names::new(&options, &carts);
        let key = Key::parse("user.42").unwrap();
        assert_eq!((names.stream.as_str(), names.subject(&key).as_str()), ("KV_carts", "$KV.carts.user.42"));
        assert_eq!(names.key("$KV.carts.user.42"), Some(key));
        assert_eq!(names.key("$KV.other.user.42"), None);
        assert_eq!(Names::bucket(&options, "KV_carts"), Some(carts));
        assert_eq!(Names::bucket(&options, "ORDERS"), None);
    }

    #[test]
    fn a_namespace_and_a_place_keep_stores_apart() {
        let carts = BucketName::parse("carts").unwrap();
        let mut options = NatsOptions { namespace: "shop_".into(), ..NatsOptions::default() };
        assert_eq!(Names::new(&options, &carts).stream, "KV_shop_carts");
        assert_eq!(Names::bucket(&options, "KV_carts"), None);
        let place = BucketPlace { stream: "MIRROR".into(), subjects: "$KV.elsewhere".into() };
        options.places.insert(carts.clone(), place);
        let names = Names::new(&options, &carts);
        assert_eq!((names.stream.as_str(), names.all_subjects().as_str()), ("MIRROR", "$KV.elsewhere.>"));
        assert_eq!(Names::bucket(&options, "MIRROR"), Some(carts));
        assert_eq!(Names::bucket(&options, "KV_shop_carts"), None);
    }
}
