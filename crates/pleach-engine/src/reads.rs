use crate::Revision;

/// What a read promises to see, where servers can be behind each other. An engine whose reads are linearizable keeps
/// the strongest of these always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// What the server or read replica that answers first has: it may be a little behind.
    Any,
    /// Everything that this engine has written or seen in the bucket.
    #[default]
    OwnWrites,
    /// Everything up to this revision of the bucket.
    AtLeast(Revision),
    /// What the leader of the bucket's servers has.
    Leader,
}
