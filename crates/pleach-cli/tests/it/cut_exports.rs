//! A part of an export is never taken for the whole, and what it says about contracts is not believed before.

use crate::given::given_nothing;

const CONTRACT: &str = r#"
format: pleach.contract.v1
id: acme.notes@v1
kind: app
displayName: Notes
description: Notes
schemas: {Note: {type: object}}
resources: {kv: {notes: {purpose: All notes, schema: {schema: Note}}}}
"#;

#[test]
fn an_export_that_was_cut_puts_no_contract_in_force() {
    let given = given_nothing();
    given.file("contract.yaml", CONTRACT);
    given.run(&["contract", "plan", "contract.yaml", "--out", "plan.json"]);
    given.ok(&["contract", "apply", "plan.json"]);
    for number in 0..3 {
        given.ok(&["kv", "put", "svc_notes_notes", &format!("n{number}"), "{}"]);
    }
    // A verification leaves a record of its own, which does not stand in the way.
    given.ok(&["contract", "verify"]);
    given.ok(&["kv", "export", "-o", "whole.ndjson"]);
    let whole = std::fs::read_to_string(given.path().join("whole.ndjson")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let first_entry = lines.iter().position(|line| line.contains("\"config\"")).unwrap();
    for kept in first_entry..lines.len() {
        let (cut, store) = (format!("cut{kept}.ndjson"), format!("file:./store{kept}"));
        given.file(&cut, format!("{}\n", lines[..kept].join("\n")));
        let import = given.run(&["--store", &store, "kv", "import", &cut, "--create-buckets"]);
        import.fails(2, "the input ends before the end of its export");
        let status = given.run(&["--store", &store, "contract", "status"]);
        assert!(!status.text().contains("version 1"), "{kept}: {}", status.text());
        // The whole of it goes on where the part ended.
        given.file(&cut, &whole);
        given.ok(&["--store", &store, "kv", "import", &cut, "--create-buckets", "--resume"]);
        let status = given.ok(&["--store", &store, "contract", "status"]);
        assert!(status.contains("acme.notes@v1"), "{status}");
        assert_eq!(given.ok(&["--store", &store, "kv", "ls", "svc_notes_notes"]).lines().count(), 3);
    }
}
