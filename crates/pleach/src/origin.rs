use pleach_engine::{Headers, InvalidHeader, Operation};

/// Who writes. Adds these facts as headers to every entry that a handle with an origin writes.
///
/// A header that the write itself sets stays as it is, so that copied entries keep the origin they had.
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

/// Adds those of `headers` that `operation` does not have.
pub(crate) fn add_headers(operation: &mut Operation, headers: &Headers) -> Result<(), InvalidHeader> {
    for (name, value) in headers.iter() {
        if operation.headers.get(name).is_none() {
            operation.headers.set(name, value)?;
        }
    }
    Ok(())
}
