//! Runs the shell sessions of the README and of the guide: fenced `console` blocks, with a command after each `$ ` and
//! what it prints below. The lines of a fenced `sh` block that begin with `cargo run --release -- ` are run as `pleach`, whatever
//! they print, as long as they succeed. In what is printed, `…` alone in a line stands for any lines, and elsewhere for any text. A
//! fenced block that names a file, such as `yaml contract.yaml`, is written to that file first.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pleach_nats_testing::Server;

use crate::given::given_nothing;

/// Where the README has a NATS server. A real one takes its place.
const SERVER: &str = "nats://localhost";

/// How a step begins that writes a file: its name follows, and what would be expected is what it holds.
const WRITE: &str = "write ";

/// How a line of a `sh` block begins that is run.
const FROM_SOURCE: &str = "cargo run --release -- ";

/// What is expected of it.
const SUCCEEDS: &str = "(it succeeds)";

/// A command of a session, and what it shall print.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

#[test]
fn the_shell_sessions_of_the_guide_run_as_written() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut chapters = 0;
    for chapter in fs::read_dir(guide).expect("there is a guide in docs/guide") {
        let path = chapter.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).unwrap();
            run_sessions(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            chapters += 1;
        }
    }
    assert!(chapters > 0);
}

#[test]
fn the_shell_sessions_of_the_readme_run_as_written() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(readme).expect("there is a README.md at the root");
    run_sessions(&text).unwrap();
}

/// Runs all sessions in one new directory, up to the first step that prints something else.
fn run_sessions(text: &str) -> Result<(), String> {
    let directory = given_nothing();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_pleach"));
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths =
        env::join_paths(binary.parent().map(PathBuf::from).into_iter().chain(env::split_paths(&paths)));
    let paths = paths.unwrap();
    let server = text.contains(SERVER).then(Server::start);
    for Step { line, command, expected } in steps(text) {
        if let Some(file) = command.strip_prefix(WRITE) {
            directory.file(file, expected.join("\n") + "\n");
            continue;
        }
        let mut shell = Command::new("sh");
        let there = |text: &str| match &server {
            Some(server) => text.replace(SERVER, &server.url()),
            None => text.to_owned(),
        };
        let command = there(&command);
        let expected: Vec<String> = expected.iter().map(|line| there(line)).collect();
        shell
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .current_dir(directory.path())
            .env("PATH", &paths);
        shell.env_remove("PLEACH_STORE").stdin(Stdio::null());
        let output = shell.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        if expected == [SUCCEEDS] {
            if !output.status.success() {
                return Err(format!("line {line}: $ {command}\nshall succeed\nbut prints\n{printed}"));
            }
            continue;
        }
        let printed: Vec<&str> = printed.lines().collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        if !lines_match(&expected, &printed) {
            let (expected, printed) = (expected.join("\n"), printed.join("\n"));
            return Err(format!("line {line}: $ {command}\nshall print\n{expected}\nbut prints\n{printed}"));
        }
    }
    Ok(())
}

/// The steps of all sessions. A command goes on in the next line after a backslash.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_session = false;
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            let file = line.trim().split_once(' ').map(|(_, file)| file);
            if let Some(file) = file.filter(|_| !in_session) {
                let command = format!("{WRITE}{file}");
                steps.push(Step { line: index + 1, command, expected: Vec::new() });
            }
            in_session = !in_session && (line.trim() == "```console" || file.is_some());
            goes_on = false;
        } else if let Some(arguments) = line.strip_prefix(FROM_SOURCE).filter(|_| !in_session) {
            let command = format!("pleach {arguments}");
            steps.push(Step { line: index + 1, command, expected: vec![SUCCEEDS.into()] });
        } else if in_session && goes_on {
            let step = steps.last_mut().expect("a command goes on");
            step.command.push('\n');
            step.command.push_str(line);
            goes_on = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_session) {
            steps.push(Step { line: index + 1, command: command.to_owned(), expected: Vec::new() });
            goes_on = command.ends_with('\\');
        } else if in_session {
            let step = steps.last_mut().expect("a session begins with a command");
            step.expected.push(line.to_owned());
        }
    }
    for step in &mut steps {
        while step.expected.last().is_some_and(String::is_empty) {
            step.expected.pop();
        }
    }
    steps
}

fn lines_match(expected: &[&str], printed: &[&str]) -> bool {
    match (expected, printed) {
        ([], []) => true,
        (["…", rest @ ..], _) => (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..])),
        ([first, expected @ ..], [line, printed @ ..]) => {
            text_matches(first, line) && lines_match(expected, printed)
        }
        _ => false,
    }
}

fn text_matches(expected: &str, printed: &str) -> bool {
    match expected.split_once('…') {
        None => expected == printed,
        Some((start, rest)) => printed.strip_prefix(start).is_some_and(|left| {
            left.char_indices()
                .map(|(at, _)| at)
                .chain([left.len()])
                .any(|at| text_matches(rest, &left[at..]))
        }),
    }
}

#[test]
fn a_session_runs_in_one_directory_and_fails_on_any_other_output() {
    let session = "```console\n$ pleach kv bucket add b\nbucket b is ready\n$ pleach kv get b k\nerror: …\nhelp: …\n```\n";
    run_sessions(session).unwrap();
    let error = run_sessions(&session.replace("ready", "red")).unwrap_err();
    assert!(error.starts_with("line 2: $ pleach kv bucket add b\n"), "{error}");
}

#[test]
fn sessions_are_found_with_their_commands_and_output() {
    let text =
        "```sh\n$ no\n```\n```console\n$ one \\\n  more\nout\n\n$ two\n```\n$ no\n```rust\n$ no\n```\n";
    let step = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.into(),
        expected: expected.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(steps(text), [step(5, "one \\\n  more", &["out"]), step(9, "two", &[])]);
}

#[test]
fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
    assert!(lines_match(&["a", "…", "z"], &["a", "b", "c", "z"]));
    assert!(lines_match(&["…"], &[]));
    assert!(lines_match(&["at … by me", "end…"], &["at 12:00 by me", "end"]));
    assert!(!lines_match(&["a"], &["a", "b"]));
    assert!(!lines_match(&["a", "b"], &["a"]));
    assert!(!lines_match(&["at … by me"], &["at 12:00 by you"]));
}
