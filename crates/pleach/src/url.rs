use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use pleach_engine::ErrorKind;

/// Where a store is: `file:PATH`, `nats://…`, `tls://…` or `mem:`.
///
/// The path is taken as it is written, relative or absolute, without percent-decoding; `file:///srv/data`
/// means the same as `file:/srv/data`. A path that is not UTF-8 has no exact text; make it with the variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreUrl {
    /// In the memory of this process, new and empty.
    Memory,
    /// In a directory.
    File(PathBuf),
    /// On NATS servers. Its text has no passwords, so it names the place but does not open it.
    #[cfg(feature = "nats")]
    Nats(crate::nats::NatsUrl),
}

impl StoreUrl {
    /// The schemes this build knows, each with its colon.
    pub const SCHEMES: &'static [&'static str] = match (cfg!(feature = "embedded"), cfg!(feature = "nats")) {
        (true, true) => &["file:", "nats:", "tls:", "mem:"],
        (true, false) => &["file:", "mem:"],
        (false, true) => &["nats:", "tls:", "mem:"],
        (false, false) => &["mem:"],
    };

    /// Reads `text`.
    ///
    /// # Errors
    /// Says what is wrong with it, and which schemes there are.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, InvalidUrl> {
        let text = text.as_ref();
        let Some((scheme, rest)) = text.split_once(':') else {
            // What is before an @ may be a secret.
            let shown = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
            return Err(InvalidUrl::NoScheme { text: shown.to_owned() });
        };
        match scheme {
            "mem" if rest.is_empty() => Ok(Self::Memory),
            "mem" => Err(InvalidUrl::NotEmpty { rest: rest.to_owned() }),
            "file" if cfg!(feature = "embedded") => file_path(rest).map(Self::File),
            #[cfg(feature = "nats")]
            "nats" | "tls" => crate::nats::NatsUrl::parse(text).map(Self::Nats),
            _ => Err(InvalidUrl::UnknownScheme { scheme: scheme.to_owned() }),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("mem:"),
            Self::File(path) => {
                let path = path.display().to_string();
                // Two slashes after the colon would announce a host: an empty one keeps the path whole.
                let host = if path.starts_with("//") { "//" } else { "" };
                write!(f, "file:{host}{path}")
            }
            #[cfg(feature = "nats")]
            Self::Nats(url) => url.fmt(f),
        }
    }
}

impl FromStr for StoreUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        Self::parse(text)
    }
}

fn file_path(rest: &str) -> Result<PathBuf, InvalidUrl> {
    let path = match rest.strip_prefix("//") {
        Some(path) if path.is_empty() || path.starts_with('/') => path,
        Some(path) => {
            return Err(InvalidUrl::Host { host: path.split('/').next().unwrap_or(path).to_owned() });
        }
        None => rest,
    };
    if path.is_empty() {
        return Err(InvalidUrl::NoPath);
    }
    Ok(path.into())
}

/// A URL that names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrl {
    /// There is no colon in it.
    #[error("the store URL {text:?} has no scheme; there are {}", known())]
    NoScheme {
        /// The whole of it, from an `@` on.
        text: String,
    },
    /// Its scheme is not one of [`StoreUrl::SCHEMES`].
    #[error("the store URL scheme \"{scheme}:\" is not known; there are {}", known())]
    UnknownScheme {
        /// The scheme, without its colon.
        scheme: String,
    },
    /// `file:` without a path.
    #[error("the store URL has no path after \"file:\"")]
    NoPath,
    /// `file:` with the name of a host.
    #[error("the store URL names the host {host:?}, but a file is on this machine")]
    Host {
        /// The host.
        host: String,
    },
    /// `nats:` or `tls:` with something that cannot be read.
    #[error("the store URL cannot be read: {reason}")]
    Nats {
        /// What is wrong with it.
        reason: String,
    },
    /// `mem:` with something behind it.
    #[error("the store URL has {rest:?} after \"mem:\"")]
    NotEmpty {
        /// What is there.
        rest: String,
    },
}

fn known() -> String {
    match StoreUrl::SCHEMES {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

impl InvalidUrl {
    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownScheme { .. } => ErrorKind::Unsupported,
            Self::NoScheme { .. }
            | Self::NoPath
            | Self::Host { .. }
            | Self::Nats { .. }
            | Self::NotEmpty { .. } => ErrorKind::Invalid,
        }
    }

    /// The next step.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::NoScheme { .. } => "for a directory, put file: in front of its path",
            Self::UnknownScheme { .. } => "use one of these, or build Pleach with the feature for the other",
            Self::NoPath => "name the store's directory, as in file:./data",
            Self::Host { .. } => "write file:PATH or file:///PATH",
            Self::Nats { .. } => {
                "write nats://[USER:PASSWORD@]HOST[:PORT][,HOST…][/NAMESPACE][?OPTION=VALUE&…]"
            }
            Self::NotEmpty { .. } => "write mem: and nothing more",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_mem_and_nothing_more() {
        assert_eq!(StoreUrl::parse("mem:").unwrap(), StoreUrl::Memory);
        assert_eq!(StoreUrl::Memory.to_string(), "mem:");
        assert_eq!(StoreUrl::parse("mem:x"), Err(InvalidUrl::NotEmpty { rest: "x".into() }));
    }

    #[cfg(feature = "embedded")]
    #[test]
    fn file_urls_survive_their_text() {
        for (text, path) in [
            ("file:./.pleach", "./.pleach"),
            ("file:data", "data"),
            ("file:/srv/a b%20c", "/srv/a b%20c"),
            ("file:///srv/data", "/srv/data"),
            ("file:////srv", "//srv"),
            ("file:a:b", "a:b"),
        ] {
            let url = StoreUrl::parse(text).unwrap();
            assert_eq!(url, StoreUrl::File(path.into()));
            assert_eq!(url.to_string().parse(), Ok(url));
        }
        assert_eq!(StoreUrl::parse("file:"), Err(InvalidUrl::NoPath));
        assert_eq!(StoreUrl::parse("file://"), Err(InvalidUrl::NoPath));
        assert_eq!(StoreUrl::parse("file://host/x"), Err(InvalidUrl::Host { host: "host".into() }));
    }

    #[test]
    fn an_unknown_scheme_is_refused_with_those_there_are() {
        let error = StoreUrl::parse("redis://localhost").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        for scheme in StoreUrl::SCHEMES {
            assert!(error.to_string().contains(scheme), "{error}");
        }
        assert!(matches!(StoreUrl::parse("./data"), Err(InvalidUrl::NoScheme { .. })));
    }
}
