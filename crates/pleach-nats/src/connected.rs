use async_nats::ServerInfo;

/// The server that an engine is connected to, and who the engine is to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The name of the server.
    pub server: String,
    /// The cluster that it belongs to, if it does.
    pub cluster: Option<String>,
    /// The address from which the server sees the engine, if it says so.
    pub address: Option<String>,
}

impl Connected {
    pub(crate) fn of(info: &ServerInfo) -> Self {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Self {
            server: info.server_name.clone(),
            cluster: info.cluster.as_ref().and_then(given),
            address: given(&info.client_ip),
        }
    }
}
