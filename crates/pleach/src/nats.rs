//! Stores on NATS servers: `nats://` and `tls://` URLs, and everything about them that a URL does not say.
//!
//! [`Store::connect`] takes a URL, [`Store::connect_nats`] the same as [`NatsOptions`]. A bucket is an ordinary NATS
//! key-value bucket; what servers cannot promise is in [`Store::capabilities`].
//!
//! ```no_run
//! use pleach::{GetOptions, Reads, Store};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::connect("nats://one,two,three?replicas=3").await?;
//! let carts = store.create_bucket("carts").await?;
//! let written = carts.put("user.42", "3 apples").await?;
//!
//! // Another process that was told `written` reads from any server that has come so far.
//! let options = GetOptions { reads: Some(Reads::AtLeast(written)) };
//! assert!(carts.get_with("user.42", options).await?.is_some());
//! # Ok(()) }
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pleach_engine::{Clock, EngineError, SystemClock};
use pleach_nats::NatsEngine;

use crate::origin::Source;
use crate::url::InvalidUrl;
use crate::{Error, IntoBucketName, OriginAddress, Store};

pub use pleach_nats::{Authentication, BucketPlace, NatsOptions, Scans, Storage, Tls};

/// The URL of a store on NATS servers; [`NatsOptions::parse`] says what can be in it.
///
/// It may hold a password or a token, so its text is shown without them and cannot be read again.
#[derive(Clone)]
pub struct NatsUrl {
    text: String,
    options: Box<NatsOptions>,
}

impl NatsUrl {
    /// Reads `text`.
    ///
    /// # Errors
    /// Says what is wrong with it, but shows nothing that may be a password.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let invalid = |reason: String| InvalidUrl::Nats { reason };
        check_user(text).map_err(|reason| invalid(reason.to_owned()))?;
        let options = NatsOptions::parse(text).map_err(|error| match error {
            EngineError::InvalidConfig { reason, .. } => invalid(reason),
            other => invalid(other.to_string()),
        })?;
        Ok(Self { text: text.to_owned(), options: Box::new(options) })
    }

    /// What it says.
    pub fn options(&self) -> &NatsOptions {
        &self.options
    }
}

impl PartialEq for NatsUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NatsUrl {}

impl Hash for NatsUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// Without user, password and token.
impl fmt::Display for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.text.split_once("://"), self.text.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, rest))) => write!(f, "{scheme}://…@{rest}"),
            _ => f.write_str(&self.text),
        }
    }
}

impl fmt::Debug for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NatsUrl({self})")
    }
}

/// Refuses a URL in which it is not certain what the password is: an error could show it as something else.
fn check_user(text: &str) -> Result<(), &'static str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (servers, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if after.contains('@') {
        return Err(
            "there is an @ after a / or ?; in a password write %2F, %3F and %40 for them, and %40 elsewhere",
        );
    }
    let mut parts = servers.split('@');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return Err("there is more than one @; one user or token is for all servers, and an @ in it is %40");
    }
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let has_no_port = |host: &str| host.rsplit_once(':').is_some_and(|(_, port)| !is_port(port));
    let mut hosts = second.unwrap_or(first).split(',');
    if hosts.any(|host| has_no_port(host) && !host.ends_with(']')) {
        return Err("what follows the colon after a host is no port; a user and a password end with an @");
    }
    Ok(())
}

/// What only stores on NATS servers have.
impl Store {
    /// Connects to the store on NATS servers that `options` describe.
    ///
    /// # Errors
    /// `Unreachable`, `Denied` by servers that do not let us in, `Refused` by those that are too old, `Unsupported` without JetStream.
    pub async fn connect_nats(options: NatsOptions) -> Result<Self, Error> {
        Self::connect_nats_with(options, Arc::new(SystemClock::new())).await
    }

    /// [`Store::connect_nats`], with a clock that is corrected by what the servers say.
    pub(crate) async fn connect_nats_with(
        options: NatsOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let engine = Arc::new(NatsEngine::connect_with_clock(options, Arc::clone(&clock)).await?);
        let nats = Some(Arc::clone(&engine));
        let mut store = Self::with_engine_and_clock(engine, clock);
        store.nats = nats;
        Ok(store)
    }

    /// Makes a read replica of a bucket: a stream of this name on the servers, which copies the bucket and is a little behind
    /// it. Whoever shall read from it gives the bucket a [`BucketPlace`] in [`NatsOptions::places`].
    ///
    /// # Errors
    /// `Unsupported` if the store is not on NATS servers, `BucketNotFound`, or what the servers could not do.
    pub async fn create_replica(&self, bucket: impl IntoBucketName, stream: &str) -> Result<(), Error> {
        Ok(self.nats()?.create_replica(&bucket.into_bucket_name()?, stream).await?)
    }

    /// The same store, with the server and the cluster that it is connected to in the headers of whatever is written
    /// through it, as of each write, and with the writer's address if it shall be shown.
    ///
    /// # Errors
    /// `Unsupported` if the store is not on NATS servers.
    pub fn with_connection_origin(&self, address: OriginAddress) -> Result<Self, Error> {
        let mut store = self.clone();
        store.origin = Source::Connection(Arc::clone(self.nats()?), address);
        Ok(store)
    }

    fn nats(&self) -> Result<&Arc<NatsEngine>, Error> {
        let missing = EngineError::Unsupported { what: "NATS servers" };
        self.nats.as_ref().ok_or(Error::Engine(missing))
    }
}

#[cfg(test)]
mod tests {
    use crate::StoreUrl;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for (text, shown) in [
            ("nats://host", "nats://host"),
            ("nats://ann:hunter2@one,two:5222/shop_?replicas=3", "nats://…@one,two:5222/shop_?replicas=3"),
            ("tls://hunter2@[::1]:4222", "tls://…@[::1]:4222"),
            ("nats://ann:a%40hunter2@host", "nats://…@host"),
        ] {
            let url = StoreUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("hunter2"), "{url:?}");
        }
    }

    #[test]
    fn a_wrong_url_shows_nothing_that_may_be_a_secret() {
        for text in [
            "nats://ann:hunter2",
            "nats://ann:hunter2/x@host",
            "nats://ann:x?hunter2@host",
            "nats://ann:hunter2@one,ann:hunter2@two",
            "nats://ann:x/hunter2@host?replicas=3",
            "nats://ann:%hunter2@host",
            "hunter2@host",
            "ann:hunter2@host",
        ] {
            let error = StoreUrl::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?} {}", error.help()).contains("hunter2"), "{text}: {error}");
        }
    }
}
