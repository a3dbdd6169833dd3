use std::fmt;
use std::str::FromStr;

use super::StateError;

/// The longest id of a user or a device, in UTF-8 bytes.
pub const OWNER_ID_BYTES_MAX: usize = 1024;

/// Whoever makes a request, as the door that authenticated them knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A person.
    User(String),
    /// A device.
    Device(String),
    /// Another program. Services have KV resources of their own, and no state.
    Service(String),
    /// Nobody that is known.
    Stranger,
}

impl Caller {
    /// The principal whose state the caller may use.
    ///
    /// # Errors
    /// [`StateError::NotAllowed`] for a service or a stranger, [`StateError::InvalidPrincipal`] for an id that cannot
    /// be one. Nothing was looked up by then.
    pub fn principal(self) -> Result<Principal, StateError> {
        match self {
            Self::User(id) => Principal::user(id),
            Self::Device(id) => Principal::device(id),
            Self::Service(id) => Err(StateError::NotAllowed { caller: format!("the service {id:?}") }),
            Self::Stranger => Err(StateError::NotAllowed { caller: "a stranger".into() }),
        }
    }
}

/// Whose state it is. Ids are any text; two that differ in one byte are two principals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// A person.
    User(OwnerId),
    /// A device.
    Device(OwnerId),
}

impl Principal {
    /// The user with this id.
    ///
    /// # Errors
    /// If the id is empty or longer than [`OWNER_ID_BYTES_MAX`].
    pub fn user(id: impl Into<String>) -> Result<Self, StateError> {
        OwnerId::new(id.into()).map(Self::User)
    }

    /// The device with this id.
    ///
    /// # Errors
    /// If the id is empty or longer than [`OWNER_ID_BYTES_MAX`].
    pub fn device(id: impl Into<String>) -> Result<Self, StateError> {
        OwnerId::new(id.into()).map(Self::Device)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        let (Self::User(id) | Self::Device(id)) = self;
        id.as_str()
    }

    /// What kind of principal it is, in a word: `user` or `device`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Device(_) => "device",
        }
    }
}

/// Writes `user:ID` or `device:ID`.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.id())
    }
}

/// Reads `user:ID` or `device:ID`; everything after the first colon is the id.
impl FromStr for Principal {
    type Err = StateError;

    fn from_str(text: &str) -> Result<Self, StateError> {
        match text.split_once(':') {
            Some(("user", id)) => Self::user(id),
            Some(("device", id)) => Self::device(id),
            _ => {
                Err(StateError::InvalidPrincipal { reason: "it is neither `user:ID` nor `device:ID`".into() })
            }
        }
    }
}

/// The id of a user or a device: any text that is not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(Box<str>);

impl OwnerId {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn new(id: String) -> Result<Self, StateError> {
        let invalid = |reason| Err(StateError::InvalidPrincipal { reason });
        match id.len() {
            0 => invalid("its id is empty".to_owned()),
            bytes if bytes > OWNER_ID_BYTES_MAX => {
                invalid(format!("its id has {bytes} bytes, more than {OWNER_ID_BYTES_MAX}"))
            }
            _ => Ok(Self(id.into())),
        }
    }
}
