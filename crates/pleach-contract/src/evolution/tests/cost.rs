//! Hostile and large schemas take bounded time.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::given::{schemas, shown};
use crate::evolution::schema::{self, Root};
use crate::evolution::{DIFF_STEPS_MAX, FINDINGS_MAX, Steps, Verdict};

/// Generous, as tests are built without optimisation and share the machine.
const PATIENCE: Duration = Duration::from_secs(300);

#[allow(clippy::disallowed_methods, reason = "the test is about time")]
fn in_time<T>(work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
    done
}

/// Compares two schemas that need not be of a contract, and says how many changes there are.
fn raw(old: &Value, new: &Value) -> usize {
    let of = |schema| Root { schema, path: String::new() };
    in_time(|| schema::diff(&of(old), &of(new), &[], &mut Steps::new()).0.len())
}

#[test]
fn five_hundred_properties_are_compared() {
    let of = |kind: &str, more: usize| {
        let properties: Map<String, Value> =
            (0..500).map(|at| (format!("p{}", at + more), json!({"type": kind, "maxLength": 9}))).collect();
        json!({"type": "object", "properties": properties})
    };
    let found = in_time(|| schemas(of("string", 0), of("integer", 0)));
    assert_eq!(found.findings.iter().filter(|finding| finding.verdict == Verdict::Dangerous).count(), 500);
    let found = in_time(|| schemas(of("string", 0), of("string", 500)));
    assert_eq!((found.findings.len(), found.more), (FINDINGS_MAX, false));
}

#[test]
fn more_findings_than_are_listed_are_said_to_be_there() {
    let of = |kind: &str| {
        let properties: Map<String, Value> =
            (0..FINDINGS_MAX + 5).map(|at| (format!("p{at}"), json!({"type": kind}))).collect();
        json!({"type": "object", "properties": properties})
    };
    let found = in_time(|| schemas(of("integer"), of("number")));
    assert_eq!((found.findings.len(), found.more), (FINDINGS_MAX, true));
    // Of what is not listed nothing is known.
    assert_eq!(found.verdict(), Some(Verdict::Scan));
}

#[test]
fn deep_schemas_need_no_stack() {
    let of = |kind: &str| {
        let step = |at: usize| json!({"properties": {"a": {"$ref": format!("#/$defs/d{}", at + 1)}}});
        let mut defs: Map<String, Value> = (0..5_000).map(|at| (format!("d{at}"), step(at))).collect();
        defs.insert("d5000".into(), json!({"type": kind}));
        json!({"$defs": defs, "$ref": "#/$defs/d0"})
    };
    assert_eq!(raw(&of("integer"), &of("number")), 1);
}

/// Two circles of lengths without a common factor meet in every pair of their nodes.
#[test]
fn circles_that_never_meet_end() {
    let circle = |length: usize, kind: &str| {
        let step = |at: usize| {
            let next = format!("#/$defs/d{}", (at + 1) % length);
            json!({"type": kind, "properties": {"a": {"$ref": next}}})
        };
        let defs: Map<String, Value> = (0..length).map(|at| (format!("d{at}"), step(at))).collect();
        json!({"$defs": defs, "$ref": "#/$defs/d0"})
    };
    raw(&circle(999, "object"), &circle(997, "array"));
    let found = in_time(|| schemas(circle(97, "object"), circle(89, "object")));
    assert_eq!(shown(&found), [""; 0]);
}

#[test]
fn fanned_out_references_are_compared_once() {
    let fan = |kind: &str| {
        let step = |at: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            json!({"properties": {"a": next, "b": next}})
        };
        let mut defs: Map<String, Value> = (0..60).map(|at| (format!("d{at}"), step(at))).collect();
        defs.insert("d60".into(), json!({"type": kind}));
        json!({"$defs": defs, "$ref": "#/$defs/d0"})
    };
    let found = in_time(|| schemas(fan("integer"), fan("number")));
    assert_eq!(shown(&found), ["type.widened ok/breaks safe"]);
}

#[test]
fn over_the_budget_it_is_undecided() {
    // Every branch of one is compared with every branch of the other, at every step.
    let wide = |from: usize| {
        let branches: Vec<Value> = (0..50)
            .map(|at| json!({"title": format!("t{}", at + from), "properties": {"a": {"$ref": "#"}}}))
            .collect();
        json!({"anyOf": branches})
    };
    raw(&wide(0), &wide(100));
    let mut spent = Steps::new();
    spent.spend(DIFF_STEPS_MAX);
    let (old, new) = (json!({"type": "integer"}), json!({"type": "number"}));
    let of = |schema| Root { schema, path: String::new() };
    let (changes, _) = schema::diff(&of(&old), &of(&new), &[], &mut spent);
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].code.as_str(), changes[0].verdict()), ("schema.undecided", Verdict::Scan));
}

#[test]
fn many_choices_are_compared_by_sets() {
    let of = |from: usize| json!({"enum": (from..from + 20_000).collect::<Vec<usize>>()});
    assert_eq!(raw(&of(0), &of(1)), 1);
}
