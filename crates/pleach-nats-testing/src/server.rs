use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::port::Port;
use crate::process::Process;
use crate::program;

/// How often a server is looked for until it answers.
const LOOKS: u32 = 3600;

/// The name of a server that is alone.
const NAME: &str = "alone";

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long one look waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What is special about a server, in the language of its configuration file.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// What is inside `jetstream { … }`; none turns JetStream off.
    pub jetstream: Option<&'a str>,
    /// What else is in the file.
    pub more: &'a str,
    /// Another program than the usual [`program`].
    pub program: Option<&'a Path>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { jetstream: Some(""), more: "", program: None }
    }
}

/// A server of its own, with JetStream.
#[derive(Debug)]
pub struct Server {
    node: Node,
    directory: TempDir,
}

impl Server {
    /// Starts one, and waits until it takes connections.
    pub fn start() -> Self {
        Self::start_with(Settings::default())
    }

    /// Starts one with something special about it.
    pub fn start_with(settings: Settings<'_>) -> Self {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let node = Node::start(directory.path(), NAME, Port::claim(), settings);
        node.wait();
        Self { node, directory }
    }

    /// Where it takes connections.
    pub fn url(&self) -> String {
        self.node.url()
    }

    /// Kills it as a crash does.
    pub fn kill(&mut self) {
        self.node.kill();
    }

    /// Starts it again where it was, and waits until it takes connections.
    pub fn restart(&mut self) {
        self.node.restart();
        self.node.wait();
    }

    /// Stops it without its noticing, as a machine that hangs does.
    pub fn stop(&self) {
        self.node.stop();
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.node.go_on();
    }

    /// Kills it, and keeps a copy of what it had stored.
    pub fn save(&mut self) -> Saved {
        self.kill();
        let saved = TempDir::new().expect("a temporary directory can be made");
        copy(&self.store(), saved.path());
        Saved(saved)
    }

    /// Kills it, and puts back what it had stored once, as a power cut does with what was not synced.
    pub fn set_back(&mut self, saved: &Saved) {
        self.kill();
        fs::remove_dir_all(self.store()).expect("its directory can be removed");
        copy(saved.0.path(), &self.store());
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join(NAME)
    }
}

/// What a server had stored at some moment.
#[derive(Debug)]
pub struct Saved(TempDir);

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("a directory can be listed").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

/// One server, alone or of a cluster.
#[derive(Debug)]
pub(crate) struct Node {
    port: Port,
    configuration: PathBuf,
    log: PathBuf,
    program: PathBuf,
    process: Option<Process>,
}

impl Node {
    pub(crate) fn start(directory: &Path, name: &str, port: Port, settings: Settings<'_>) -> Self {
        let (configuration, log) =
            (directory.join(format!("{name}.conf")), directory.join(format!("{name}.log")));
        let store = directory.join(name);
        let jetstream =
            settings.jetstream.map(|inside| format!("jetstream {{ store_dir: {store:?}\n{inside} }}"));
        let text = format!(
            "server_name: {name}\nlisten: \"127.0.0.1:{}\"\n{}\n{}\n",
            port.number(),
            jetstream.unwrap_or_default(),
            settings.more
        );
        fs::write(&configuration, text).expect("its configuration can be written");
        let program = settings.program.map_or_else(program, Path::to_owned);
        let process = Some(Process::start(&program, &configuration, &log));
        Self { port, configuration, log, program, process }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port.number())
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    pub(crate) fn restart(&mut self) {
        self.process = None;
        self.process = Some(Process::start(&self.program, &self.configuration, &self.log));
    }

    pub(crate) fn stop(&self) {
        self.process.iter().for_each(Process::stop);
    }

    pub(crate) fn go_on(&self) {
        self.process.iter().for_each(Process::go_on);
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it takes connections.
    pub(crate) fn wait(&self) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port.number()));
        let greets = || {
            let mut greeting = [0; 4];
            let mut stream = TcpStream::connect_timeout(&address, ANSWER_MAX).ok()?;
            stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
            stream.read_exact(&mut greeting).ok()?;
            Some(greeting == *b"INFO")
        };
        until(|| greets() == Some(true), || format!("no server answers; it says:\n{}", self.log()));
    }
}

/// Looks again and again until `done`.
pub(crate) fn until(mut done: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    for _ in 0..LOOKS {
        if done() {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    panic!("{}", otherwise());
}
