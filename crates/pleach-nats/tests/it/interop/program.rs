use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::client::{Client, Seen};
use crate::servers;

/// A client in another language: a program that takes requests and gives answers, one a line.
#[derive(Debug)]
pub(super) struct Program {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    #[allow(dead_code, reason = "the program ends with it")]
    child: Child,
}

/// What a program says.
#[derive(Debug, Deserialize)]
struct Answer {
    done: Option<Value>,
    #[serde(default)]
    conflict: bool,
    error: Option<String>,
}

impl Program {
    /// nats.py.
    pub(super) async fn python() -> Self {
        let mut command = Command::new("python3");
        command.arg(script("client.py")).arg(servers::server().url());
        command.env("PYTHONPATH", pleach_nats_testing::tool("nats-py"));
        Self::start(command)
    }

    /// @nats-io/kv.
    pub(super) async fn node() -> Self {
        let mut command = Command::new("node");
        command.arg(script("client.mjs")).arg(servers::server().url());
        command.arg(pleach_nats_testing::tool("nats-js"));
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!(
                "{:?} cannot be started ({error}): run `cargo xtask tools`",
                command.as_std().get_program()
            )
        });
        let (requests, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { requests, answers: BufReader::new(answers), child }
    }

    /// The answer to a request; none if a key was not as expected.
    async fn ask<T: DeserializeOwned>(&mut self, request: Value) -> Option<T> {
        self.requests.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).await.unwrap();
        let answer: Answer = serde_json::from_str(&answer).unwrap_or_else(|_| {
            panic!("{request} was answered with {answer:?}; see what it wrote to its errors")
        });
        if let Some(error) = answer.error {
            panic!("{request} failed: {error}");
        }
        (!answer.conflict).then(|| serde_json::from_value(answer.done.unwrap_or_default()).unwrap())
    }

    async fn done<T: DeserializeOwned>(&mut self, request: Value) -> T {
        let shown = request.to_string();
        self.ask(request).await.unwrap_or_else(|| panic!("{shown} was a conflict"))
    }
}

impl Client for Program {
    async fn create_bucket(&mut self, bucket: &str, history: u8, markers: Option<Duration>) {
        let markers = markers.map(|markers| markers.as_secs());
        let request =
            json!({"do": "create_bucket", "bucket": bucket, "history": history, "markers": markers});
        self.done::<()>(request).await;
    }

    async fn bind(&mut self, bucket: &str) {
        self.done::<()>(json!({"do": "bind", "bucket": bucket})).await;
    }

    async fn put(&mut self, key: &str, value: &str) -> u64 {
        self.done(json!({"do": "put", "key": key, "value": value})).await
    }

    async fn create(&mut self, key: &str, value: &str, ttl: Option<Duration>) -> Option<u64> {
        let ttl = ttl.map(|ttl| ttl.as_secs());
        self.ask(json!({"do": "create", "key": key, "value": value, "ttl": ttl})).await
    }

    async fn update(&mut self, key: &str, value: &str, revision: u64) -> Option<u64> {
        self.ask(json!({"do": "update", "key": key, "value": value, "revision": revision})).await
    }

    async fn delete(&mut self, key: &str) {
        self.done::<()>(json!({"do": "delete", "key": key})).await;
    }

    async fn purge(&mut self, key: &str) {
        self.done::<()>(json!({"do": "purge", "key": key})).await;
    }

    async fn get(&mut self, key: &str) -> Option<Seen> {
        self.done(json!({"do": "get", "key": key})).await
    }

    async fn keys(&mut self) -> BTreeSet<String> {
        self.done(json!({"do": "keys"})).await
    }

    async fn history(&mut self, key: &str) -> Vec<Seen> {
        self.done(json!({"do": "history", "key": key})).await
    }

    async fn watch(&mut self) {
        self.done::<()>(json!({"do": "watch"})).await;
    }

    async fn seen(&mut self, count: usize) -> Vec<Seen> {
        self.done(json!({"do": "seen", "count": count})).await
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("interop").join(name)
}
