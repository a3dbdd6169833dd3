use std::path::PathBuf;

use anyhow::Context as _;
use pleach::{Bucket, BucketName, Error, ErrorKind, OpenOptions, Store, StoreUrl};

use crate::credentials::{self, Credentials};
use crate::exit::Exit;
use crate::failure::Problem;
use crate::output::Output;
use crate::progress::Opening;

/// Where the store is if nobody says otherwise.
const STORE_DEFAULT: &str = "file:./.pleach";

/// What every command needs: the store, opened when it is first needed, and a place to print to.
#[derive(Debug)]
pub(crate) struct App {
    url: String,
    credentials: Credentials,
    /// Why the guards of contracts are passed by, if they are.
    glass: Option<String>,
    store: Option<Store>,
    pub(crate) output: Output,
    /// What the command ends with.
    pub(crate) exit: Exit,
}

impl App {
    /// An app on the store at `url`, which is not opened yet.
    pub(crate) fn new(url: Option<String>, credentials: Credentials, output: Output) -> Self {
        let url = url.unwrap_or_else(|| STORE_DEFAULT.into());
        Self { url, credentials, glass: None, store: None, output, exit: Exit::default() }
    }

    /// The same, past the guards of contracts if there is a reason.
    pub(crate) fn breaking_glass(self, why: Option<String>) -> Self {
        Self { glass: why, ..self }
    }

    /// Who we are to servers, as far as the command line says.
    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Works on the store at `url`, if one is named.
    pub(crate) fn name_store(&mut self, url: Option<&str>) {
        if let Some(url) = url {
            self.url = url.to_owned();
        }
    }

    /// Opens the store, which must be there.
    pub(crate) async fn store(&mut self) -> anyhow::Result<Store> {
        if let (None, StoreUrl::File(path)) = (&self.store, StoreUrl::parse(&self.url).map_err(Error::Url)?) {
            // Reading from a mistyped path shall not leave a directory there.
            if !path.exists() {
                let problem = Problem::not_found(format!("there is no store at {}", path.display()));
                let named =
                    if self.url == STORE_DEFAULT { String::new() } else { format!("--store {} ", self.url) };
                let help = format!(
                    "create it with its first bucket: `pleach {named}kv bucket add BUCKET`; or name another with --store"
                );
                return Err(problem.help(help).into());
            }
        }
        self.open(OpenOptions { create: false, ..OpenOptions::default() }).await
    }

    /// Whether the store would be in a directory that is not there.
    pub(crate) fn is_missing(&self) -> anyhow::Result<bool> {
        let url = StoreUrl::parse(&self.url).map_err(Error::Url)?;
        Ok(self.store.is_none() && matches!(url, StoreUrl::File(path) if !path.exists()))
    }

    /// The directory of a store that is worked on as files. `on_servers` says what to do where there are none.
    pub(crate) fn directory(&self, on_servers: &str) -> anyhow::Result<PathBuf> {
        match StoreUrl::parse(&self.url).map_err(Error::Url)? {
            StoreUrl::File(path) if path.exists() => Ok(path),
            StoreUrl::File(path) => {
                let problem = Problem::not_found(format!("there is no store at {}", path.display()));
                Err(problem.help("name another with --store").into())
            }
            StoreUrl::Nats(url) => {
                let message = format!("the store at {url} has no files here that this command could work on");
                Err(Problem::new(ErrorKind::Unsupported, message).help(on_servers).into())
            }
            _ => {
                let problem =
                    Problem::new(ErrorKind::Unsupported, "only a store in a directory can be inspected");
                Err(problem.help("name one with --store file:PATH").into())
            }
        }
    }

    /// Opens the store, and creates it if there is none.
    pub(crate) async fn store_or_create(&mut self) -> anyhow::Result<Store> {
        self.open(OpenOptions::default()).await
    }

    /// Opens the store, which must be there, and finds a bucket in it.
    pub(crate) async fn bucket(&mut self, name: &BucketName) -> anyhow::Result<Bucket> {
        Ok(self.store().await?.bucket(name).await?)
    }

    /// Where the store is, in a form that is the same from every directory.
    pub(crate) fn place(&self) -> String {
        match StoreUrl::parse(&self.url) {
            Ok(StoreUrl::File(path)) => path.canonicalize().unwrap_or(path).display().to_string(),
            // Without passwords.
            Ok(url) => url.to_string(),
            Err(_) => String::new(),
        }
    }

    /// Closes the store and hands everything printed to its reader.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        if let Some(store) = self.store.take() {
            store.close().await.context("cannot close the store")?;
        }
        self.output.flush()
    }

    async fn open(&mut self, options: OpenOptions) -> anyhow::Result<Store> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        let options = OpenOptions { progress: Some(Opening::shown_on(&self.output)), ..options };
        let store = match StoreUrl::parse(&self.url).map_err(Error::Url)? {
            StoreUrl::Nats(url) => {
                let mut options = url.options().clone();
                self.credentials.add_to(&mut options)?;
                Store::connect_nats(options).await.map_err(credentials::explained)?
            }
            _ if self.credentials.file.is_some() => {
                let problem = Problem::invalid("--creds is for stores on NATS, and this is none");
                return Err(problem.help("leave it out, or name a store with --store nats://HOST").into());
            }
            url => Store::connect_with(url, options).await?,
        };
        let store = match &self.glass {
            Some(why) => store.break_glass(&who(), why)?,
            None => store,
        };
        Ok(self.store.insert(store).clone())
    }
}

/// Who runs the command, for what is recorded: the user of this process. The environment could say anything.
#[cfg(unix)]
pub(crate) fn who() -> String {
    let user = rustix::process::geteuid().as_raw();
    let users = std::fs::read("/etc/passwd").unwrap_or_default();
    name_of(user, &String::from_utf8_lossy(&users)).unwrap_or_else(|| format!("uid {user}"))
}

#[cfg(not(unix))]
pub(crate) fn who() -> String {
    std::env::var("USERNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".into())
}

/// The name of a user in a list of lines `name:password:uid:…`.
#[cfg(unix)]
fn name_of(user: u32, users: &str) -> Option<String> {
    let lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut found = lines.filter(|fields| fields.get(2).and_then(|id| id.parse().ok()) == Some(user));
    found.find_map(|fields| fields.first().filter(|name| !name.is_empty()).map(|name| (*name).to_owned()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_the_list_of_users() {
        let users = "root:x:0:0:root:/:/bin/sh\nbroken\n:x:7:7::/:\nann:x:1000:1000:Ann:/:/bin/sh\n";
        assert_eq!(name_of(1000, users).as_deref(), Some("ann"));
        assert_eq!(name_of(0, users).as_deref(), Some("root"));
        assert_eq!((name_of(7, users), name_of(1, users)), (None, None));
    }
}
