use std::process::Command;

use serde_json::Value;

use crate::given::{Given, given_nothing};

const OLD: &str = "\
format: pleach.contract.v1
id: acme.notes@v1
kind: service
displayName: Notes
description: Notes of a team
schemas:
  Note:
    type: object
    properties:
      title: {type: string}
      stars: {type: integer}
    required: [title]
resources:
  kv:
    notes:
      purpose: Notes by id
      schema: {schema: Note}
      history: 5
";

fn given_history() -> Given {
    let given = given_nothing();
    given.file("contract.yaml", OLD);
    git(&given, &["init", "-q"]);
    git(&given, &["add", "."]);
    git(&given, &["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first"]);
    given
}

fn git(given: &Given, arguments: &[&str]) {
    let done = Command::new("git").args(arguments).current_dir(given.path()).status();
    assert!(done.expect("git is needed for this test: install it").success());
}

/// Writes the contract anew with a part replaced.
fn change(given: &Given, from: &str, to: &str) {
    assert!(OLD.contains(from), "{from}");
    given.file("contract.yaml", OLD.replace(from, to));
}

#[test]
fn nothing_changed_is_said_and_ends_with_zero() {
    let given = given_history();
    let run = given.run(&["contract", "diff", "contract.yaml"]);
    assert_eq!((run.code, run.text().trim()), (0, "nothing has changed in acme.notes@v1"));
    change(&given, "Notes of a team", "Notes of all teams");
    assert_eq!(
        given.run(&["contract", "diff", "contract.yaml", "--strict"]).code,
        2,
        "prose is a safe change"
    );
}

#[test]
fn exit_codes_tell_changes_from_dangerous_ones() {
    let given = given_history();
    change(&given, "history: 5", "history: 9");
    assert_eq!(given.run(&["contract", "diff", "contract.yaml", "--strict"]).code, 2);
    change(&given, "required: [title]", "required: [title, stars]");
    assert_eq!(given.run(&["contract", "diff", "contract.yaml"]).code, 2);
    assert_eq!(given.run(&["contract", "diff", "contract.yaml", "--strict"]).code, 3);
    change(&given, "history: 5", "history: 1");
    assert_eq!(given.run(&["contract", "diff", "contract.yaml"]).code, 3);
}

#[test]
fn a_finding_reads_like_a_review() {
    let given = given_history();
    change(&given, "required: [title]", "required: [title, stars]");
    let text = given.run(&["contract", "diff", "contract.yaml", "--against", "git:HEAD"]).text();
    for part in [
        "contract.yaml:12:",
        "scan:",
        "`stars`",
        "[",
        "  at    /schemas/Note/required",
        "  why   ",
        "  fix   ",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.contains("`pleach contract plan contract.yaml` looks at it"), "{text}");
}

#[test]
fn every_form_names_the_same_findings() {
    let given = given_history();
    change(&given, "history: 5", "history: 1");
    let run = given.run(&["--json", "contract", "diff", "contract.yaml"]);
    let lines: Vec<Value> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["verdict"], "dangerous");
    assert_eq!(
        (lines[0]["path"].as_str(), lines[0]["line"].as_u64()),
        (Some("/resources/kv/notes/history"), Some(18))
    );
    assert_eq!(lines[1]["event"], "compared");
    let code = lines[0]["code"].as_str().unwrap().to_owned();
    let junit = given.run(&["contract", "diff", "contract.yaml", "--format", "junit"]);
    assert!(junit.text().contains(&format!("<failure type=\"{code}\"")), "{}", junit.text());
    let github = given.run(&["contract", "diff", "contract.yaml", "--format", "github"]);
    assert!(github.text().starts_with("::error file=contract.yaml,line=18,"), "{}", github.text());
    assert_eq!((run.code, junit.code, github.code), (3, 3, 3));
}

#[test]
fn all_older_versions_count() {
    let given = given_history();
    given.file("first.yaml", OLD);
    given.file("second.yaml", OLD.replace("stars: {type: integer}", "stars: {type: [integer, string]}"));
    let old = given.run(&["contract", "diff", "contract.yaml", "--against", "first.yaml"]);
    let both = ["contract", "diff", "contract.yaml", "--against", "first.yaml", "--against", "second.yaml"];
    assert_eq!((old.code, given.run(&both).code), (0, 2));
}

#[test]
fn what_cannot_be_compared_ends_with_one() {
    let given = given_history();
    given.file("other.yaml", OLD.replace("acme.notes@v1", "acme.notes@v2"));
    given.file("broken.yaml", "format: pleach.contract.v1\n");
    let run = |arguments: &[&str], says: &str| {
        let all: Vec<&str> = ["contract", "diff"].iter().chain(arguments).copied().collect();
        given.run(&all).fails(1, says);
    };
    run(&["contract.yaml", "--against", "other.yaml"], "contracts of two lineages have no common history");
    run(&["contract.yaml", "--against", "git:nowhere"], "git has no nowhere:contract.yaml");
    run(&["contract.yaml", "--against", "git:--output=x"], "names no commit");
    run(&["gone.yaml"], "cannot read the contract gone.yaml");
    run(&["contract.yaml", "--colour"], "--colour");
    let broken = given.run(&["contract", "diff", "contract.yaml", "--against", "broken.yaml"]);
    assert_eq!(broken.code, 1);
    assert!(broken.text().contains("[field.missing]"), "{}", broken.text());
    assert!(broken.stderr.contains("pleach contract check broken.yaml"), "{}", broken.stderr);
}
