//! Small runs of every benchmark that CI can afford. They check each answer of each engine; their figures mean nothing.

use std::process::{Command, Stdio};

/// Runs the program with these arguments, and shows what it printed if it fails.
fn runs(arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach-bench"));
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "pleach-bench {} ended with {}\n{}\n{}",
        arguments.join(" "),
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains('|'), "no table was printed:\n{}", text(&output.stdout));
}

#[test]
fn every_engine_gives_the_right_answers() {
    runs(&["--small"]);
}

#[test]
fn state_gives_the_right_answers() {
    runs(&["state", "--small"]);
}

#[test]
fn both_clients_of_one_server_give_the_right_answers() {
    runs(&["nats", "--small"]);
}

#[test]
fn both_clients_of_a_cluster_give_the_right_answers() {
    runs(&["nats", "--small", "--cluster"]);
}
