use pleach_contract::key::{Grammar, Problem, Value};
use pleach_engine::{InvalidName, Key, RESERVED_PREFIX};

/// What a key of a keyspace can be made of: the values of its segments, a key, or its text.
///
/// The code that is made of a contract has a type for each keyspace, whose fields are the segments.
pub trait KeyOf: Sync {
    /// The key, if it is one of `grammar`; without a grammar, any key.
    ///
    /// # Errors
    /// Why it makes no such key.
    fn key(&self, grammar: Option<&Grammar>) -> Result<Key, InvalidKey>;
}

/// Why something makes no key of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// A value does not fit its segment, or the key not its keyspace.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// The text is no key at all.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Values were given where keys have no segments.
    #[error("the resource declares no keyspaces, so its keys are not made of values")]
    NoSegments,
    /// The key is one of the store's own.
    #[error("{key} starts with `{RESERVED_PREFIX}`, which is reserved")]
    Reserved {
        /// The key.
        key: Key,
    },
}

impl InvalidKey {
    /// The next step.
    pub fn help(&self) -> &str {
        match self {
            Self::Problem(problem) => &problem.help,
            Self::Name(error) => error.help(),
            Self::NoSegments => "give the key itself",
            Self::Reserved { .. } => "choose another beginning",
        }
    }
}

impl From<Problem> for InvalidKey {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl KeyOf for [Value<'_>] {
    fn key(&self, grammar: Option<&Grammar>) -> Result<Key, InvalidKey> {
        Ok(grammar.ok_or(InvalidKey::NoSegments)?.build(self)?)
    }
}

impl<const SEGMENTS: usize> KeyOf for [Value<'_>; SEGMENTS] {
    fn key(&self, grammar: Option<&Grammar>) -> Result<Key, InvalidKey> {
        self.as_slice().key(grammar)
    }
}

impl KeyOf for Vec<Value<'_>> {
    fn key(&self, grammar: Option<&Grammar>) -> Result<Key, InvalidKey> {
        self.as_slice().key(grammar)
    }
}

impl KeyOf for Key {
    fn key(&self, grammar: Option<&Grammar>) -> Result<Key, InvalidKey> {
        match grammar {
            Some(grammar) => drop(grammar.read(self.as_str())?),
            None if self.is_reserved() => return Err(InvalidKey::Reserved { key: self.clone() }),
            None => {}
        }
        Ok(self.clone())
    }
}

impl KeyOf for str {
    fn key(&self, grammar: Option<&Grammar>) -> Result<Key, InvalidKey> {
        Key::parse(self)?.key(grammar)
    }
}
