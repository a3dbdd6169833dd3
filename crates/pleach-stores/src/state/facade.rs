use pleach_contract::StoreKind;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::older::Older;
use super::store::DynamicStore;
use super::typed::{MapStore, ValueStore};
use super::{Principal, Session, StateError};

/// A type with a method for each state store of a contract: what [`state_facade`](crate::state_facade) makes.
pub trait StateFacade: Sized {
    /// The stores of a session. That the contract declares them all, of those kinds and versions, is checked here.
    ///
    /// # Errors
    /// What the contract declares otherwise.
    fn of(session: &Session) -> Result<Self, StateError>;
}

/// A principal under a contract, for a program that knows the contract's stores by their types.
#[derive(Clone, Debug)]
pub struct Client<F> {
    session: Session,
    state: F,
}

impl<F> Client<F> {
    /// Its state stores.
    pub fn state(&self) -> &F {
        &self.state
    }

    /// Whose they are.
    pub fn principal(&self) -> &Principal {
        self.session.principal()
    }
}

impl Session {
    /// The session with the types of a program.
    ///
    /// # Errors
    /// [`StateError::UndeclaredStore`], [`StateError::WrongKind`] or [`StateError::OtherVersions`] if the program was written
    /// for another contract.
    pub fn client<F: StateFacade>(&self) -> Result<Client<F>, StateError> {
        Ok(Client { session: self.clone(), state: F::of(self)? })
    }

    /// A store that is of this kind and these versions.
    fn known<O: Older>(
        &self,
        name: &str,
        kind: StoreKind,
        version: &str,
    ) -> Result<DynamicStore, StateError> {
        let store = self.store(name)?;
        store.require(kind)?;
        store.compiled.require_versions(version, O::VERSIONS)?;
        Ok(store)
    }
}

/// A store with types, as a facade holds it.
#[doc(hidden)]
pub trait FromSession: Sized {
    /// The store of this name, if its values are of this version.
    fn from_session(session: &Session, name: &str, version: &str) -> Result<Self, StateError>;
}

impl<T: Serialize + DeserializeOwned, O: Older> FromSession for ValueStore<T, O> {
    fn from_session(session: &Session, name: &str, version: &str) -> Result<Self, StateError> {
        session.known::<O>(name, StoreKind::Value, version).map(Self::new)
    }
}

impl<T: Serialize + DeserializeOwned, O: Older> FromSession for MapStore<T, O> {
    fn from_session(session: &Session, name: &str, version: &str) -> Result<Self, StateError> {
        session.known::<O>(name, StoreKind::Map, version).map(Self::new)
    }
}

/// Makes a [`StateFacade`]: a type with a method for each state store of a contract. `pleach contract codegen` writes calls of
/// it, and so does `#[derive(Contract)]` with `state = "…"`: use one of those, so that contract and types agree.
///
/// Each store has its kind, a name for the method, its name and version in the contract, and the type of its values. If
/// it has older versions, an enum is made with a variant for each.
///
/// ```
/// use pleach_stores::state::{Client, GetOutcome, ListOptions, StateError};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # pub struct Preferences { theme: String, compact: bool }
/// # #[derive(Debug, Deserialize)]
/// # pub struct PreferencesV1 { theme: String }
/// # #[derive(Serialize, Deserialize)]
/// # pub struct Draft { title: String }
///
/// pleach_stores::state_facade! {
///     /// What the notes keep for whoever uses them.
///     pub struct NotesState {
///         /// How it looks.
///         value preferences("preferences", "v2"): Preferences, or OldPreferences {
///             V1(PreferencesV1) = "v1",
///         };
///         map drafts("drafts", "v1"): Draft;
///     }
/// }
///
/// async fn greet(client: &Client<NotesState>) -> Result<String, StateError> {
///     let _inbox = client.state().drafts().prefix("inbox").list(ListOptions::first(20)).await?;
///     Ok(match client.state().preferences().get().await? {
///         GetOutcome::Found(entry) => entry.value.theme,
///         GetOutcome::Absent => "light".into(),
///         GetOutcome::MigrationRequired(old) => match old.entry.value {
///             OldPreferences::V1(old) => old.theme,
///         },
///     })
/// }
/// ```
#[macro_export]
macro_rules! state_facade {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$store_about:meta])*
                $kind:ident $method:ident($store:literal, $version:literal): $value:ty
                $(, or $older:ident { $($variant:ident($old:ty) = $old_version:literal),+ $(,)? })?;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "a program need not use every store")]
        $visibility struct $name {
            $($method: $crate::state_facade!(@store $kind $value $(, $older)?),)*
        }

        #[allow(dead_code, reason = "a program need not use every store")]
        impl $name {
            $(
                $(#[$store_about])*
                $visibility fn $method(&self) -> &$crate::state_facade!(@store $kind $value $(, $older)?) {
                    &self.$method
                }
            )*
        }

        impl $crate::state::StateFacade for $name {
            fn of(session: &$crate::state::Session) -> ::std::result::Result<Self, $crate::state::StateError> {
                let _ = session;
                Ok(Self {
                    $($method: $crate::state::FromSession::from_session(session, $store, $version)?,)*
                })
            }
        }

        $($(
            #[doc = concat!("A value of an older version of `", $store, "`.")]
            #[derive(Debug)]
            #[allow(dead_code, reason = "a program need not use every store")]
            $visibility enum $older {
                $(
                    #[doc = concat!("Of the version `", $old_version, "`.")]
                    $variant($old),
                )+
            }

            impl $crate::state::Older for $older {
                const VERSIONS: ::std::option::Option<&'static [&'static str]> =
                    ::std::option::Option::Some(&[$($old_version),+]);

                fn read(
                    version: &str,
                    value: $crate::state::Json,
                ) -> ::std::result::Result<Self, ::std::string::String> {
                    match version {
                        $($old_version => $crate::state::read_variant(value).map(Self::$variant),)+
                        other => ::std::result::Result::Err($crate::state::unknown(other)),
                    }
                }
            }
        )?)*
    };
    (@store value $value:ty) => { $crate::state::ValueStore<$value, $crate::state::NoOlder> };
    (@store value $value:ty, $older:ident) => { $crate::state::ValueStore<$value, $older> };
    (@store map $value:ty) => { $crate::state::MapStore<$value, $crate::state::NoOlder> };
    (@store map $value:ty, $older:ident) => { $crate::state::MapStore<$value, $older> };
}
