use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use bytes::{BufMut, Bytes};
use pleach_engine::{ConsumerInfo, ConsumerName, Revision, Timestamp};

use crate::log::{take, take_u64};

/// The consumers of a bucket.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    by_name: RwLock<BTreeMap<ConsumerName, Consumer>>,
}

/// A consumer, and the revision of the record that says where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Consumer {
    pub(crate) info: ConsumerInfo,
    pub(crate) revision: Revision,
}

impl Consumers {
    pub(crate) fn get(&self, name: &ConsumerName) -> Option<Consumer> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every consumer, by name.
    pub(crate) fn all(&self) -> Vec<Consumer> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn set(&self, consumer: Consumer) {
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        by_name.insert(consumer.info.name.clone(), consumer);
    }

    pub(crate) fn remove(&self, name: &ConsumerName) {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

impl Consumer {
    /// Its state as the index keeps it.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = self.revision.get().to_le_bytes().to_vec();
        bytes.extend(encode_info(&self.info));
        bytes.into()
    }

    /// Reads what [`Consumer::encode`] wrote about the consumer `name`; none means damage.
    pub(crate) fn decode(name: &str, mut bytes: Bytes) -> Option<Self> {
        let revision = Revision::new(take_u64(&mut bytes)?);
        Some(Self { info: decode_info(name, bytes)?, revision })
    }
}

/// Where a consumer is, as the log keeps it.
pub(crate) fn encode_info(info: &ConsumerInfo) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(25);
    bytes.put_u64_le(info.next.get());
    bytes.put_u64_le(info.created.as_micros());
    bytes.put_u8(u8::from(info.acknowledged.is_some()));
    bytes.put_u64_le(info.acknowledged.unwrap_or_default().as_micros());
    bytes
}

/// Reads what [`encode_info`] wrote about the consumer `name`; none means damage.
pub(crate) fn decode_info(name: &str, mut bytes: Bytes) -> Option<ConsumerInfo> {
    let name = ConsumerName::parse(name).ok()?;
    let next = Revision::new(take_u64(&mut bytes)?);
    let created = Timestamp::from_micros(take_u64(&mut bytes)?);
    let is_acknowledged = match take(&mut bytes, 1)?[0] {
        0 => false,
        1 => true,
        _ => return None,
    };
    let acknowledged = Timestamp::from_micros(take_u64(&mut bytes)?);
    let info = ConsumerInfo { name, next, created, acknowledged: is_acknowledged.then_some(acknowledged) };
    bytes.is_empty().then_some(info)
}
