use std::ops::Bound;

use bytes::Bytes;
use pleach_engine::Revision;

use crate::index::{IndexChange, IndexHome, IndexKey, MemoryHome, Meta, ReadAt};

/// An index as it was on its disk once. It may come back, as from a backup of that disk alone.
pub(super) struct OldIndex {
    applied: Revision,
    pairs: Vec<(Bytes, Bytes)>,
}

impl OldIndex {
    /// What is there, of an index that nobody has open; none if there is nothing yet.
    pub(super) fn copy(home: &MemoryHome) -> Option<Self> {
        let index = home.open(0).expect("a sound index");
        let meta = index.get(&IndexKey::meta(), ReadAt::Newest).expect("a sound index")?;
        let applied = Meta::decode(meta).expect("what an index says about itself").applied;
        let pairs = index.range(Bound::Unbounded, Bound::Unbounded, ReadAt::Newest);
        Some(Self { applied, pairs: pairs.collect::<Result<_, _>>().expect("a sound index") })
    }

    /// Takes the place of what is there now; says how far it goes.
    pub(super) fn put_back(&self, home: &MemoryHome) -> Revision {
        home.lose();
        let index = home.open(0).expect("an empty index");
        let insert = |(key, value): &(Bytes, Bytes)| IndexChange::Insert(key.clone(), value.clone());
        index.write(self.applied, self.pairs.iter().map(insert).collect());
        index.seal();
        index.flush(usize::MAX, self.applied).expect("flushed");
        self.applied
    }
}
