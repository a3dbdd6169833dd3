use std::collections::HashSet;

use pleach_engine::{Action, Capabilities, Entry, Key, Operation};

/// Operations that are collected before they are written.
const WINDOW_OPERATIONS_MAX: usize = 500;

/// Bytes that are collected before they are written, unless a single key has more.
const WINDOW_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What one batch can hold besides the position.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    pub(super) operations: usize,
    pub(super) bytes: usize,
}

impl BatchLimits {
    /// Leaves room for the position, which is in every batch.
    const POSITION_BYTES_MAX: usize = 8 * 1024;

    /// As much as the target takes.
    pub(super) fn most(target: &Capabilities) -> Self {
        let operations = target.batch_operations_max.saturating_sub(1).max(1);
        Self { operations, bytes: target.batch_bytes_max.saturating_sub(Self::POSITION_BYTES_MAX) }
    }

    /// As much as is written at once if nothing has to stay together.
    pub(super) fn usual(target: &Capabilities) -> Self {
        let Self { operations, bytes } = Self::most(target);
        Self { operations: operations.min(WINDOW_OPERATIONS_MAX), bytes: bytes.min(WINDOW_BYTES_MAX) }
    }
}

/// The records of some keys, on their way to the target.
#[derive(Debug, Default)]
pub(super) struct Window {
    keys: HashSet<Key>,
    records: Vec<Vec<Operation>>,
    operations: usize,
    bytes: usize,
}

impl Window {
    /// Adds what is to be written of a key, oldest first.
    pub(super) fn add(&mut self, key: &Key, operations: Vec<Operation>) {
        if operations.is_empty() || !self.keys.insert(key.clone()) {
            return;
        }
        self.operations += operations.len();
        self.bytes += operations.iter().map(bytes).sum::<usize>();
        self.records.push(operations);
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.keys.contains(key)
    }

    pub(super) fn is_full(&self) -> bool {
        self.operations >= WINDOW_OPERATIONS_MAX || self.bytes >= WINDOW_BYTES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The batches that write it: no key twice in one, and the records of a key in order.
    pub(super) fn into_batches(self, limits: BatchLimits) -> Vec<Vec<Operation>> {
        let mut batches = Vec::new();
        let mut rest: Vec<_> = self.records.into_iter().map(Vec::into_iter).collect();
        loop {
            let round: Vec<Operation> = rest.iter_mut().filter_map(Iterator::next).collect();
            if round.is_empty() {
                return batches;
            }
            batches.extend(cut(round, limits));
        }
    }
}

/// Operations on different keys, in batches that are not too large.
pub(super) fn cut(operations: Vec<Operation>, limits: BatchLimits) -> Vec<Vec<Operation>> {
    let (mut batches, mut batch, mut size) = (Vec::new(), Vec::new(), 0);
    for operation in operations {
        let more = bytes(&operation);
        if !batch.is_empty() && (batch.len() >= limits.operations || size + more > limits.bytes) {
            batches.push(std::mem::take(&mut batch));
            size = 0;
        }
        size += more;
        batch.push(operation);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// What an operation takes in a batch.
pub(super) fn bytes(operation: &Operation) -> usize {
    let value = match &operation.action {
        Action::Put { value, .. } => value.len(),
        Action::Delete | Action::Purge => 0,
    };
    operation.key.as_bytes().len() + value + operation.headers.bytes()
}

/// How many of `source`, the records of a key that are to be copied, are in the target already, whose records are
/// `target`: as many as its last ones are their first. The target has what the source had at first, up to some point, and
/// the source may have let go of the oldest since.
pub(super) fn copied(source: &[&Entry], target: &[&Entry]) -> usize {
    let most = source.len().min(target.len());
    let overlap = |count: &usize| {
        let (last, first) = (&target[target.len() - count..], &source[..*count]);
        last.iter().zip(first).all(|(one, other)| is_same(one, other))
    };
    (0..=most).rev().find(overlap).unwrap_or(0)
}

/// Whether a record of the target is the copy of one of the source.
pub(super) fn is_same(one: &Entry, other: &Entry) -> bool {
    one.op == other.op && one.value == other.value && one.headers == other.headers
}

#[cfg(test)]
mod tests {
    use pleach_engine::{Headers, Op, Revision, Timestamp};

    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn entry(value: &str) -> Entry {
        Entry {
            key: key("k"),
            value: value.to_owned().into(),
            revision: Revision::new(1),
            time: Timestamp::default(),
            expires: None,
            op: Op::Put,
            headers: Headers::new(),
        }
    }

    #[test]
    fn no_batch_has_a_key_twice_and_records_stay_in_order() {
        let mut window = Window::default();
        for name in ["a", "b", "c"] {
            let puts = ["1", "2", "3"].map(|value| Operation::put(key(name), value));
            window.add(&key(name), puts.to_vec());
        }
        window.add(&key("a"), vec![Operation::delete(key("a"))]);
        let batches = window.into_batches(BatchLimits { operations: 2, bytes: 1000 });
        let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 2, 1, 2, 1]);
        let of_a: Vec<_> = batches.iter().flatten().filter(|op| op.key == key("a")).collect();
        let values = ["1", "2", "3"].map(|value| Operation::put(key("a"), value));
        assert!(of_a.into_iter().eq(&values));
    }

    #[test]
    fn what_is_copied_already_is_found() {
        let all = ["1", "2", "3", "2"].map(entry);
        let refs = |entries: &'static [usize]| -> Vec<usize> { entries.to_vec() };
        let pick = |which: Vec<usize>| which.into_iter().map(|at| &all[at]).collect::<Vec<_>>();
        assert_eq!(copied(&pick(refs(&[0, 1, 2, 3])), &pick(refs(&[]))), 0);
        assert_eq!(copied(&pick(refs(&[0, 1, 2, 3])), &pick(refs(&[0, 1]))), 2);
        assert_eq!(copied(&pick(refs(&[0, 1, 2, 3])), &pick(refs(&[0, 1, 2, 3]))), 4);
        // The source has let go of the first since.
        assert_eq!(copied(&pick(refs(&[1, 2, 3])), &pick(refs(&[0, 1]))), 1);
        assert_eq!(copied(&pick(refs(&[2, 3])), &pick(refs(&[0, 1]))), 0);
    }
}
