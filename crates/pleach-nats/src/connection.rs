use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use tokio::sync::{Notify, watch};

use pleach_engine::EngineError;

use crate::options::{Authentication, NatsOptions};

/// The oldest server that has everything this engine needs: atomic batches that it recognises when they come again, TTLs of
/// messages, markers.
const SERVER_MIN: (i64, i64, i64) = (2, 12, 1);

/// How many messages may wait for whoever follows changes. A consumer sends up to 32 MiB before it waits for us, also of small messages.
const SUBSCRIPTION_MESSAGES_MAX: usize = 256 * 1024;

/// How long between attempts to connect again, at most.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(1);

/// How often a server must show that it is there. One that misses two is taken to be gone.
const PING_EVERY: Duration = Duration::from_secs(5);

/// How many denials are remembered.
const DENIALS_MAX: usize = 64;

/// How the connection is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// There is one now.
    pub(crate) is_up: bool,
    /// How often it was made: whoever follows changes looks again after each time.
    pub(crate) times: u64,
}

/// The subjects that a server lately said we may not publish to, so that nobody waits for answers that cannot come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denials(Arc<Denied>);

#[derive(Debug, Default)]
struct Denied {
    subjects: Mutex<VecDeque<String>>,
    /// Wakes those who wait for an answer that may not come.
    added: Notify,
}

impl Denials {
    fn add(&self, error: &str) {
        let Some(subject) = denied_subject(error) else { return };
        let mut denied = self.lock();
        denied.push_front(subject.to_owned());
        denied.truncate(DENIALS_MAX);
        drop(denied);
        self.0.added.notify_waiters();
    }

    /// Waits until it is denied to publish to `subject`.
    pub(crate) async fn wait(&self, subject: &str) {
        loop {
            let mut added = std::pin::pin!(self.0.added.notified());
            added.as_mut().enable();
            if self.take(subject) {
                return;
            }
            added.await;
        }
    }

    /// Whether it was denied to publish to `subject`. Each denial explains one answer that did not come.
    pub(crate) fn take(&self, subject: &str) -> bool {
        let mut denied = self.lock();
        let place = denied.iter().position(|denied| denied == subject);
        place.and_then(|place| denied.remove(place)).is_some()
    }

    /// Forgets them: another server, or the same with other permissions, may let us.
    fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.subjects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subject in `Permissions Violation for Publish to "subject"`.
fn denied_subject(error: &str) -> Option<&str> {
    let lower = error.to_ascii_lowercase();
    let start = lower.find("permissions violation for publish to")?;
    error.get(start..)?.split('"').nth(1)
}

/// Connects, and tells from then on how the connection is.
pub(crate) async fn connect(
    options: &NatsOptions,
    link: watch::Sender<Link>,
    denials: Denials,
) -> Result<Client, EngineError> {
    let addresses: Result<Vec<ServerAddr>, _> =
        options.servers.iter().map(|address| address.parse()).collect();
    let addresses = addresses.map_err(|error: std::io::Error| EngineError::Refused {
        action: format!("connect to {}", options.servers.join(", ")),
        reason: error.to_string(),
    })?;
    let client = settings(options, link, denials).await?.connect(addresses).await;
    let client = client.map_err(|error| {
        let servers = options.servers.join(", ");
        match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                EngineError::Denied { action: format!("log in at {servers}"), reason: error.to_string() }
            }
            _ => EngineError::Unreachable { reason: format!("{servers}: {error}") },
        }
    })?;
    let (major, minor, patch) = SERVER_MIN;
    if !client.is_server_compatible(major, minor, patch) {
        return Err(EngineError::Refused {
            action: "be used".to_owned(),
            reason: format!(
                "it is nats-server {}, and this engine needs {major}.{minor}.{patch} or newer",
                client.server_info().version
            ),
        });
    }
    Ok(client)
}

async fn settings(
    options: &NatsOptions,
    link: watch::Sender<Link>,
    denials: Denials,
) -> Result<ConnectOptions, EngineError> {
    let settings = ConnectOptions::new()
        .name("pleach")
        .subscription_capacity(SUBSCRIPTION_MESSAGES_MAX)
        .ping_interval(PING_EVERY)
        .request_timeout(Some(options.request_timeout))
        .connection_timeout(options.request_timeout)
        .require_tls(options.tls.required)
        .reconnect_delay_callback(|attempts| {
            let millis = 10_u64.saturating_mul(1 << attempts.min(10));
            Duration::from_millis(millis).min(RECONNECT_DELAY_MAX)
        })
        .event_callback(move |event| {
            match event {
                Event::Connected => {
                    denials.clear();
                    link.send_modify(|link| {
                        link.is_up = true;
                        link.times += 1;
                    });
                }
                Event::Disconnected | Event::Closed => link.send_modify(|link| link.is_up = false),
                Event::ServerError(error) => denials.add(&error.to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_names_its_subject() {
        let denials = Denials::default();
        denials.add("nats: Permissions Violation for Publish to \"$KV.a.b\"");
        denials.add("something else");
        assert!(!denials.take("$KV.a.c") && denials.take("$KV.a.b"));
        assert!(!denials.take("$KV.a.b"), "the next answer that is lost was lost otherwise");
    }
}
