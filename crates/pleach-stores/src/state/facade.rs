use serde::Serialize;
use serde::de::DeserializeOwned;

use super::typed::{MapStore, ValueStore};
use super::{Session, StateError};

/// A store with types, as a facade holds it.
pub trait FromSession: Sized {
    /// The store of this name.
    ///
    /// # Errors
    /// If the session's contract does not declare it, or declares another kind.
    fn from_session(session: &Session, name: &str) -> Result<Self, StateError>;
}

impl<T: Serialize + DeserializeOwned> FromSession for ValueStore<T> {
    fn from_session(session: &Session, name: &str) -> Result<Self, StateError> {
        session.value(name)
    }
}

impl<T: Serialize + DeserializeOwned> FromSession for MapStore<T> {
    fn from_session(session: &Session, name: &str) -> Result<Self, StateError> {
        session.map(name)
    }
}

/// Makes a type with a method for each store of a contract. That the contract declares them all, and of those kinds, is
/// checked once, when a session is opened with it.
///
/// ```
/// use pleach_stores::state::{MapStore, Session, StateError, ValueStore};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # pub struct Preferences { theme: String }
/// # #[derive(Serialize, Deserialize)]
/// # pub struct Draft { title: String }
///
/// pleach_stores::state_facade! {
///     /// What the notes keep for whoever uses them.
///     pub struct NotesState {
///         preferences: ValueStore<Preferences>,
///         drafts: MapStore<Draft>,
///     }
/// }
///
/// async fn greet(session: &Session) -> Result<(), StateError> {
///     let state = NotesState::new(session)?;
///     let _preferences = state.preferences().get().await?;
///     let _inbox = state.drafts().prefix("inbox")?.count().await?;
///     Ok(())
/// }
/// ```
#[macro_export]
macro_rules! state_facade {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident { $($store:ident: $kind:ty),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        $visibility struct $name {
            $($store: $kind,)+
        }

        impl $name {
            /// The stores of a session.
            ///
            /// # Errors
            /// If its contract does not declare one of them, or declares another kind.
            $visibility fn new(
                session: &$crate::state::Session,
            ) -> ::std::result::Result<Self, $crate::state::StateError> {
                Ok(Self {
                    $($store: <$kind as $crate::state::FromSession>::from_session(session, stringify!($store))?,)+
                })
            }

            $(
                /// The store of this name.
                $visibility fn $store(&self) -> &$kind {
                    &self.$store
                }
            )+
        }
    };
}
