use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use tokio::sync::watch;

use pleach_engine::EngineError;

use crate::options::{Authentication, NatsOptions};

/// The oldest server that has everything this engine needs: atomic batches, TTLs of messages, markers.
const SERVER_MIN: (i64, i64, i64) = (2, 12, 0);

/// How many messages may wait for whoever follows changes.
const SUBSCRIPTION_MESSAGES_MAX: usize = 256 * 1024;

/// How long between attempts to connect again, at most.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(1);

/// How the connection is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// There is one now.
    pub(crate) is_up: bool,
    /// How often it was made: whoever follows changes looks again after each time.
    pub(crate) times: u64,
}

/// Connects, and tells from then on how the connection is.
pub(crate) async fn connect(options: &NatsOptions, link: watch::Sender<Link>) -> Result<Client, EngineError> {
    let addresses: Result<Vec<ServerAddr>, _> =
        options.servers.iter().map(|address| address.parse()).collect();
    let addresses = addresses.map_err(|error: std::io::Error| EngineError::Refused {
        action: format!("connect to {}", options.servers.join(", ")),
        reason: error.to_string(),
    })?;
    let client = settings(options, link).await?.connect(addresses).await.map_err(|error| {
        let reason = format!("{}: {error}", options.servers.join(", "));
        EngineError::Unreachable { reason }
    })?;
    let (major, minor, patch) = SERVER_MIN;
    if !client.is_server_compatible(major, minor, patch) {
        return Err(EngineError::Refused {
            action: "be used".to_owned(),
            reason: format!(
                "it is nats-server {}, and this engine needs {major}.{minor} or newer",
                client.server_info().version
            ),
        });
    }
    Ok(client)
}

async fn settings(options: &NatsOptions, link: watch::Sender<Link>) -> Result<ConnectOptions, EngineError> {
    let settings = ConnectOptions::new()
        .name("pleach")
        .subscription_capacity(SUBSCRIPTION_MESSAGES_MAX)
        .request_timeout(Some(options.request_timeout))
        .connection_timeout(options.request_timeout)
        .require_tls(options.tls.required)
        .reconnect_delay_callback(|attempts| {
            let millis = 10_u64.saturating_mul(1 << attempts.min(10));
            Duration::from_millis(millis).min(RECONNECT_DELAY_MAX)
        })
        .event_callback(move |event| {
            match event {
                Event::Connected => link.send_modify(|link| {
                    link.is_up = true;
                    link.times += 1;
                }),
                Event::Disconnected | Event::Closed => link.send_modify(|link| link.is_up = false),
                _ => {}
            }
            std::future::ready(())
        });
    let settings = options
        .tls
        .roots
        .iter()
        .fold(settings, |settings, roots| settings.add_root_certificates(roots.clone()));
    let settings = match &options.tls.certificate {
        Some((certificate, key)) => settings.add_client_certificate(certificate.clone(), key.clone()),
        None => settings,
    };
    match &options.authentication {
        Authentication::None => Ok(settings),
        Authentication::User { user, password } => {
            Ok(settings.user_and_password(user.clone(), password.clone()))
        }
        Authentication::Token(token) => Ok(settings.token(token.clone())),
        Authentication::Nkey(seed) => Ok(settings.nkey(seed.clone())),
        Authentication::Credentials(path) => settings.credentials_file(path).await.map_err(|source| {
            EngineError::Io { action: "read the credentials in", path: path.clone(), source }
        }),
    }
}
