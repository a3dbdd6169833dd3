use std::collections::BTreeMap;

use bytes::Bytes;
use pleach_engine::{Key, Operation};

use crate::{Bucket, Error, IntoKey, IntoValue};

/// The most operations of several changes in one commit, beside the position.
const GROUP_OPERATIONS_MAX: usize = 500;

/// The most bytes of keys and values of several changes in one commit.
const GROUP_BYTES_MAX: usize = 1024 * 1024;

/// What a key of the target is to become: a value, or none.
type Writes = BTreeMap<Key, Option<Bytes>>;

/// The target of a projection as a reducer sees it: with everything that came before the change, and with
/// what the reducer itself has written. Nothing is committed until the reducer has returned.
#[derive(Debug)]
pub struct Derived {
    target: Bucket,
    /// What the changes before this one write, yet to be committed.
    group: Writes,
    /// What the group takes at most; a key that was written twice counts twice.
    group_bytes: usize,
    /// What this change writes.
    change: Writes,
}

impl Derived {
    pub(super) fn new(target: Bucket) -> Self {
        Self { target, group: Writes::new(), group_bytes: 0, change: Writes::new() }
    }

    /// Returns the value of a key of the target, if it has one.
    ///
    /// # Errors
    /// What is wrong with the key, or what the engine could not do.
    pub async fn get(&self, key: impl IntoKey) -> Result<Option<Bytes>, Error> {
        let key = key.into_key()?;
        match self.change.get(&key).or_else(|| self.group.get(&key)) {
            Some(written) => Ok(written.clone()),
            None => Ok(self.target.get(key).await?.map(|entry| entry.value)),
        }
    }

    /// Gives a key of the target a value.
    ///
    /// # Errors
    /// What is wrong with the key; reserved ones cannot be written.
    pub fn put(&mut self, key: impl IntoKey, value: impl IntoValue) -> Result<(), Error> {
        self.change.insert(own(key)?, Some(value.into_value()));
        Ok(())
    }

    /// Deletes a key of the target.
    ///
    /// # Errors
    /// What is wrong with the key; reserved ones cannot be deleted.
    pub fn delete(&mut self, key: impl IntoKey) -> Result<(), Error> {
        self.change.insert(own(key)?, None);
        Ok(())
    }

    /// Whether what this change writes can be committed together with what came before.
    pub(super) fn fits(&self) -> bool {
        let limit = GROUP_OPERATIONS_MAX.min(self.target.store().capabilities().batch_operations_max - 1);
        let fit = self.group.len() + self.change.len() <= limit;
        self.group.is_empty() || (fit && self.group_bytes + bytes(&self.change) <= GROUP_BYTES_MAX)
    }

    /// Makes this change one of those that came before.
    pub(super) fn join(&mut self) {
        self.group_bytes += bytes(&self.change);
        self.group.append(&mut self.change);
    }

    /// Forgets what this change writes.
    pub(super) fn discard(&mut self) {
        self.change.clear();
    }

    /// What is yet to be committed of the changes before this one.
    pub(super) fn take_group(&mut self) -> impl Iterator<Item = Operation> + use<> {
        self.group_bytes = 0;
        std::mem::take(&mut self.group).into_iter().map(|(key, value)| match value {
            Some(value) => Operation::put(key, value),
            None => Operation::delete(key),
        })
    }
}

/// A key that is not reserved, however it comes.
fn own(key: impl IntoKey) -> Result<Key, Error> {
    let key = key.into_key()?;
    if key.is_reserved() { Key::parse(key.as_str()).map_err(Error::Key) } else { Ok(key) }
}

fn bytes(writes: &Writes) -> usize {
    let of =
        |(key, value): (&Key, &Option<Bytes>)| key.as_bytes().len() + value.as_ref().map_or(0, Bytes::len);
    writes.iter().map(of).sum()
}
