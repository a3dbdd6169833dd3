use std::borrow::Cow;
use std::sync::Arc;

use pleach_engine::{Headers, InvalidHeader, Operation};
use pleach_stores::Mark;

/// Who writes. Adds these facts as headers to every entry that a handle with an origin writes.
///
/// A write that itself sets any of these headers keeps them as they are and is given no other of them, so that
/// copied entries keep the origin they had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The address of the writer, as [`Origin::ADDRESS`].
    pub address: Option<String>,
    /// The server the writer is connected to, as [`Origin::SERVER`].
    pub server: Option<String>,
    /// The cluster of that server, as [`Origin::CLUSTER`].
    pub cluster: Option<String>,
}

impl Origin {
    /// The header that names the writer's address.
    pub const ADDRESS: &'static str = "KV-Origin";
    /// The header that names the server.
    pub const SERVER: &'static str = "KV-Origin-Server";
    /// The header that names the cluster.
    pub const CLUSTER: &'static str = "KV-Origin-Cluster";

    /// Reads what was written with an origin.
    pub fn of(headers: &Headers) -> Self {
        let get = |name| headers.get(name).map(str::to_owned);
        Self { address: get(Self::ADDRESS), server: get(Self::SERVER), cluster: get(Self::CLUSTER) }
    }

    /// Its headers.
    ///
    /// # Errors
    /// If a value has control characters or all are too long.
    pub fn headers(&self) -> Result<Headers, InvalidHeader> {
        let mut headers = Headers::new();
        let parts =
            [(Self::ADDRESS, &self.address), (Self::SERVER, &self.server), (Self::CLUSTER, &self.cluster)];
        for (name, value) in parts {
            if let Some(value) = value {
                headers.set(name, value)?;
            }
        }
        Ok(headers)
    }
}

/// Whether writers say from which address they write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginAddress {
    /// They do not.
    #[default]
    Hidden,
    /// They do, as [`Origin::ADDRESS`].
    Shown,
}

/// Where the origin of what a handle writes comes from.
#[derive(Clone)]
pub(crate) enum Source {
    /// These headers, or none.
    Fixed(Headers),
    /// The server that the engine is connected to when it is asked.
    #[cfg(feature = "nats")]
    Connection(Arc<pleach_nats::NatsEngine>, OriginAddress),
}

impl Source {
    /// The headers of what is written now.
    pub(crate) fn headers(&self) -> Result<Cow<'_, Headers>, InvalidHeader> {
        match self {
            Self::Fixed(headers) => Ok(Cow::Borrowed(headers)),
            #[cfg(feature = "nats")]
            Self::Connection(engine, address) => {
                let pleach_nats::Connected { server, cluster, address: from } = engine.connected();
                let address = from.filter(|_| *address == OriginAddress::Shown);
                Origin { address, server: Some(server), cluster }.headers().map(Cow::Owned)
            }
        }
    }

    /// What adds its headers to whatever a service writes; none if there are none to add.
    pub(crate) fn mark(&self) -> Option<Mark> {
        if let Self::Fixed(headers) = self
            && headers.is_empty()
        {
            return None;
        }
        let source = self.clone();
        Some(Arc::new(move |operation: &mut Operation| {
            let headers = source.headers()?;
            add_headers(operation, &headers)
        }))
    }
}

/// Adds the headers of an origin to `operation`, unless it has an origin: parts of two would be neither.
pub(crate) fn add_headers(operation: &mut Operation, origin: &Headers) -> Result<(), InvalidHeader> {
    if Origin::of(&operation.headers) != Origin::default() {
        return Ok(());
    }
    for (name, value) in origin.iter() {
        operation.headers.set(name, value)?;
    }
    Ok(())
}
