//! The rules of evolution against the validator itself.
//!
//! For random schemas, changes of them and values: if nothing is said to stand against it backward, no value that the old
//! schema accepted is refused by the new one, and forward the other way round.

mod choices;
mod mutation;
mod schema;
mod value;
mod work;

use std::cell::RefCell;

use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use serde_json::Value;

use super::given::contract;
use crate::CompiledSchema;
use crate::evolution::schema::{Change, Holds, Root, diff};
use crate::evolution::{Effect, Steps};
use choices::Choices;

/// How many cases to try, as `cargo xtask evolution` says.
const CASES_VARIABLE: &str = "PLEACH_EVOLUTION_CASES";

/// Which random numbers to take.
const SEED_VARIABLE: &str = "PLEACH_EVOLUTION_SEED";

/// How many cases are tried if nobody says how many.
const CASES_DEFAULT: u64 = 2_500;

/// How many values each schema of a pair is asked for.
const VALUES: usize = 12;

/// What was tried, so that a test that tries nothing fails.
#[derive(Debug, Default)]
struct Tally {
    pairs: u64,
    /// Pairs that accept different values by all we know, and yet are safe in one direction: backward, forward.
    safe: [u64; 2],
    /// Pairs that are said not to be safe, and the share of them of which a value shows it.
    unsafe_pairs: [u64; 2],
    shown: [u64; 2],
    /// Values of safe pairs, and those among them that were accepted and so could have been refused.
    values: u64,
    accepted: u64,
}

fn runner(divisor: u64) -> TestRunner {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number(CASES_VARIABLE).unwrap_or(CASES_DEFAULT) / divisor;
    TestRunner::new(Config {
        cases: u32::try_from(cases).unwrap_or(u32::MAX),
        rng_seed: RngSeed::Fixed(number(SEED_VARIABLE).unwrap_or(0)),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        max_global_rejects: u32::MAX,
        ..Config::default()
    })
}

fn choices() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 20..400)
}

#[test]
fn what_is_called_safe_refuses_nothing_that_was_accepted() {
    let tally = RefCell::new(Tally::default());
    let checked = runner(1).run(&choices(), |list| {
        let mut choices = Choices::new(list);
        let old = schema::root(&mut choices);
        let new = match choices.below(20) {
            0 => schema::root(&mut choices),
            _ => mutation::changed(&old, &mut choices),
        };
        check(&old, &new, &mut choices, &mut tally.borrow_mut())
    });
    let tally = tally.into_inner();
    if let Err(failure) = checked {
        panic!("{failure}\nto see it again: cargo test -p pleach-contract what_is_called_safe");
    }
    if std::env::var_os(CASES_VARIABLE).is_some() {
        #[allow(clippy::print_stdout, reason = "whoever asks for a long run wants to see what it tried")]
        {
            println!("{tally:?}");
        }
    }
    // A test that tries nothing shows nothing.
    let share = |part: u64, whole: u64| part * 100 / whole.max(1);
    assert!(share(tally.safe[0], tally.pairs) >= 15, "few pairs are safe backward: {tally:?}");
    assert!(share(tally.safe[1], tally.pairs) >= 15, "few pairs are safe forward: {tally:?}");
    assert!(share(tally.accepted, tally.values) >= 25, "few values are accepted: {tally:?}");
    // And neither does a diff that calls nothing safe.
    assert!(share(tally.shown[0], tally.unsafe_pairs[0]) >= 25, "many are scanned in vain: {tally:?}");
    assert!(share(tally.shown[1], tally.unsafe_pairs[1]) >= 25, "many are warned in vain: {tally:?}");
}

fn check(old: &Value, new: &Value, choices: &mut Choices, tally: &mut Tally) -> Result<(), TestCaseError> {
    let (Ok(before), Ok(after)) = (CompiledSchema::compile(old), CompiledSchema::compile(new)) else {
        return Err(TestCaseError::reject("no schema of a contract"));
    };
    let (changes, more) = compared(old, new);
    documented(&changes)?;
    let is_safe = |of: fn(&Change) -> Holds| !more && changes.iter().all(|change| of(change) == Holds::Yes);
    let safe = [is_safe(|change| change.backward), is_safe(|change| change.forward)];
    let mut values: Vec<Value> = (0..VALUES).map(|_| value::of(old, choices)).collect();
    values.extend((0..VALUES).map(|_| value::of(new, choices)));
    let is_changed = changes.iter().any(|change| !change.is_idle());
    tally.pairs += u64::from(is_changed);
    let mut shown = [false; 2];
    for value in &values {
        let accepted = [before.validate(value).is_ok(), after.validate(value).is_ok()];
        let refused = [accepted[0] && !accepted[1], accepted[1] && !accepted[0]];
        for direction in [0, 1] {
            if refused[direction] && safe[direction] {
                let what = ["backward", "forward"][direction];
                let message =
                    format!("called safe {what}:\n  old {old}\n  new {new}\n  value {value}\n  {changes:#?}");
                return Err(TestCaseError::fail(message));
            }
            shown[direction] |= refused[direction];
            if is_changed && safe[direction] {
                tally.values += 1;
                tally.accepted += u64::from(accepted[direction]);
            }
        }
    }
    for direction in [0, 1].into_iter().filter(|_| is_changed) {
        tally.safe[direction] += u64::from(safe[direction]);
        tally.unsafe_pairs[direction] += u64::from(!safe[direction]);
        tally.shown[direction] += u64::from(shown[direction]);
    }
    Ok(())
}

fn compared(old: &Value, new: &Value) -> (Vec<Change>, bool) {
    let of = |schema| Root { schema, path: String::new() };
    diff(&of(old), &of(new), &[], &mut Steps::new())
}

/// The table of codes says what a code can do.
fn documented(changes: &[Change]) -> Result<(), TestCaseError> {
    for change in changes {
        let (backward, forward): (Effect, Effect) = (change.backward.backward(), change.forward.forward());
        let is_listed = change.code.backward().contains(&backward)
            && change.code.forward().contains(&forward)
            && change.code.verdicts().contains(&change.verdict());
        if !is_listed {
            return Err(TestCaseError::fail(format!("the table of codes does not know of {change:#?}")));
        }
    }
    Ok(())
}

#[test]
fn any_two_schemas_are_compared_within_the_budget() {
    let checked = runner(3).run(&choices(), |list| {
        let mut choices = Choices::new(list);
        let (old, new) = (schema::wild(&mut choices), schema::wild(&mut choices));
        let is_schema = |schema: &Value| CompiledSchema::compile(schema).is_ok();
        if !is_schema(&old) || !is_schema(&new) {
            return Err(TestCaseError::reject("no schema of a contract"));
        }
        let (changes, _) = compared(&old, &new);
        documented(&changes)?;
        let paths = [&old, &new];
        for change in &changes {
            let leads = paths.iter().any(|schema| schema.pointer(&change.path).is_some());
            if !leads {
                return Err(TestCaseError::fail(format!("{} leads nowhere in {old} or {new}", change.path)));
            }
        }
        // Nothing is different from itself.
        if let Some(change) = compared(&old, &old.clone()).0.first() {
            return Err(TestCaseError::fail(format!("{change:?} in what is the same: {old}")));
        }
        // As a contract, all is told with a reason and a fix.
        let of = |schema: &Value| contract(serde_json::json!({"Thing": schema}), serde_json::json!({}));
        let found = crate::evolution::diff(&of(&old), &of(&new));
        let is_whole =
            found.findings.iter().all(|finding| !finding.reason.is_empty() && !finding.fix.is_empty());
        if is_whole { Ok(()) } else { Err(TestCaseError::fail(format!("{found:#?}"))) }
    });
    if let Err(failure) = checked {
        panic!("{failure}");
    }
}
