use std::num::NonZeroU8;
use std::path::PathBuf;
use std::time::Duration;

use pleach_engine::EngineError;

use crate::options::{Authentication, NatsOptions, Reads, Scans, Storage};

/// Where a server listens if its address does not say.
const PORT: &str = "4222";

impl NatsOptions {
    /// Reads the address of a store:
    ///
    /// ```text
    /// nats://[user:password@ | token@]host[:port][,host[:port]…][/namespace][?option=value&…]
    /// ```
    ///
    /// or the same with `tls://`. The options are `creds`, `root`, `domain`, `prefix`, `replicas`, `storage` (`file`, `memory`),
    /// `reads` (`own`, `any`, `leader`), `scans` (`cached`, `direct`), `synced` (`true` if the servers sync always), `timeout` and
    /// `patience` in seconds.
    ///
    /// # Errors
    /// `InvalidConfig`, naming what cannot be read.
    pub fn parse(address: &str) -> Result<Self, EngineError> {
        let invalid = |reason: String| EngineError::InvalidConfig { field: "address", reason };
        let Some((scheme, rest)) = address.split_once("://") else {
            return Err(invalid("it does not begin with nats:// or tls://".to_owned()));
        };
        if !matches!(scheme, "nats" | "tls") {
            return Err(invalid(format!("{scheme}:// is neither nats:// nor tls://")));
        }
        let (rest, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let (rest, namespace) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = rest.rsplit_once('@').map_or((None, rest), |(user, hosts)| (Some(user), hosts));
        if !namespace.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            return Err(invalid(format!(
                "the namespace {namespace:?} has other characters than a-z A-Z 0-9 _ -"
            )));
        }
        let mut options = Self { namespace: namespace.to_owned(), ..Self::default() };
        options.tls.required = scheme == "tls";
        options.servers = hosts.split(',').map(|host| server(scheme, host)).collect::<Result<_, _>>()?;
        options.authentication = match user.map(|user| user.split_once(':')) {
            None => Authentication::None,
            Some(Some((user, password))) => {
                Authentication::User { user: decoded(user)?, password: decoded(password)? }
            }
            Some(None) => Authentication::Token(decoded(user.unwrap_or_default())?),
        };
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            options.set(name, decoded(value)?)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), EngineError> {
        let invalid = |reason: String| EngineError::InvalidConfig { field: "address", reason };
        let wrong = |choices: &str| invalid(format!("{name} is {value:?}, which is not {choices}"));
        let seconds = || value.parse().map(Duration::from_secs).map_err(|_| wrong("a number of seconds"));
        match name {
            "creds" => self.authentication = Authentication::Credentials(PathBuf::from(value)),
            "root" => self.tls.roots.push(PathBuf::from(value)),
            "domain" => self.domain = Some(value),
            "prefix" => self.api_prefix = Some(value),
            "replicas" => {
                self.replicas = value.parse::<NonZeroU8>().map_err(|_| wrong("a number from 1 on"))?
            }
            "storage" => {
                self.storage = match value.as_str() {
                    "file" => Storage::File,
                    "memory" => Storage::Memory,
                    _ => return Err(wrong("file or memory")),
                }
            }
            "reads" => {
                self.reads = match value.as_str() {
                    "own" => Reads::OwnWrites,
                    "any" => Reads::Any,
                    "leader" => Reads::Leader,
                    _ => return Err(wrong("own, any or leader")),
                }
            }
            "scans" => {
                self.scans = match value.as_str() {
                    "cached" => Scans::Cached,
                    "direct" => Scans::Direct,
                    _ => return Err(wrong("cached or direct")),
                }
            }
            "synced" => self.servers_sync = value.parse().map_err(|_| wrong("true or false"))?,
            "timeout" => self.request_timeout = seconds()?,
            "patience" => self.patience = seconds()?,
            _ => return Err(invalid(format!("there is no option {name:?}"))),
        }
        Ok(())
    }
}

/// The address of one server.
fn server(scheme: &str, host: &str) -> Result<String, EngineError> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if host.is_empty() || host.contains(char::is_whitespace) {
        let reason = format!("{host:?} is no host");
        return Err(EngineError::InvalidConfig { field: "address", reason });
    }
    Ok(if has_port { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{PORT}") })
}

/// Text in which any byte may be written as `%` and two hexadecimal digits.
fn decoded(text: &str) -> Result<String, EngineError> {
    let invalid = || EngineError::InvalidConfig {
        field: "address",
        reason: "a % is not followed by two hexadecimal digits of readable text".to_owned(),
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits =
                after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(invalid)?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| invalid())?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_servers_and_how_to_use_them() {
        let options =
            NatsOptions::parse("nats://one,two:5222/shop_?replicas=3&reads=leader&timeout=2").unwrap();
        assert_eq!(options.servers, ["nats://one:4222", "nats://two:5222"]);
        assert_eq!((options.namespace.as_str(), options.replicas.get()), ("shop_", 3));
        assert_eq!((options.reads, options.request_timeout), (Reads::Leader, Duration::from_secs(2)));
        assert!(!options.tls.required && matches!(options.authentication, Authentication::None));
        let options =
            NatsOptions::parse("tls://ann:a%40b@host?root=/a/b.pem&scans=direct&synced=true").unwrap();
        assert_eq!(options.servers, ["tls://host:4222"]);
        assert!(options.tls.required && options.servers_sync && options.scans == Scans::Direct);
        assert_eq!(options.tls.roots, [PathBuf::from("/a/b.pem")]);
        assert!(matches!(options.authentication, Authentication::User { user, password }
            if user == "ann" && password == "a@b"));
        let options = NatsOptions::parse("nats://secret@host").unwrap();
        assert!(matches!(options.authentication, Authentication::Token(token) if token == "secret"));
    }

    #[test]
    fn an_address_that_cannot_be_read_says_why() {
        for (address, part) in [
            ("host:4222", "nats://"),
            ("http://host", "http"),
            ("nats://", "no host"),
            ("nats://host/a.b", "namespace"),
            ("nats://host?replicas=0", "replicas"),
            ("nats://host?reads=some", "own, any or leader"),
            ("nats://host?colour=red", "colour"),
            ("nats://a%zz@host", "%"),
            ("nats://a%4@host", "%"),
        ] {
            let error = NatsOptions::parse(address).unwrap_err().to_string();
            assert!(error.contains(part), "{address}: {error}");
        }
    }
}
