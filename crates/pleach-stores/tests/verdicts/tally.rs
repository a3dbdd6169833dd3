//! What a campaign has seen, in numbers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use pleach_contract::evolution::Verdict;
use pleach_stores::Plan;

/// Findings that tell of a change of names or meaning, which no judge of stored values can see: that a program no longer finds
/// what it looks for. A plan that has one of these among its dangers is no false alarm.
const DECLARED: [&str; 12] = [
    "contract.kind",
    "property.removed",
    "property.renamed",
    "property.returned",
    "property.reused",
    "resource.removed",
    "resource.renamed",
    "state.kind",
    "state.removed",
    "state.renamed",
    "keyspace.removed",
    "key.changed",
];

/// Counts over many cases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Stores that were played with, each from a seed of its own.
    pub(crate) stories: u64,
    /// Contracts that were planned over stored data or another contract.
    pub(crate) plans: u64,
    pub(crate) safe: u64,
    pub(crate) dangerous: u64,
    /// Plans that are dangerous, and something stored would be refused, out of reach or not kept.
    pub(crate) justified: u64,
    /// Dangerous plans that would lose nothing, and have a danger of names or meaning.
    pub(crate) declared: u64,
    /// Dangerous plans that would lose nothing, for no such reason.
    pub(crate) false_alarms: u64,
    /// The codes of the dangers of false alarms, each counted once a plan.
    pub(crate) codes: BTreeMap<String, u64>,
    disagreements: RefCell<BTreeMap<&'static str, u64>>,
}

impl Tally {
    /// Counts a plan, and what the judge says that it would lose.
    pub(crate) fn planned(&mut self, plan: &Plan, losses: &[String]) {
        self.plans += 1;
        if plan.verdict() == Verdict::Safe {
            self.safe += 1;
            return;
        }
        self.dangerous += 1;
        let mut codes: Vec<&str> = plan.dangers().map(|danger| danger.code.as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        if !losses.is_empty() {
            self.justified += 1;
        } else if codes.iter().any(|code| DECLARED.contains(code)) {
            self.declared += 1;
        } else {
            self.false_alarms += 1;
            for code in codes {
                *self.codes.entry(code.to_owned()).or_default() += 1;
            }
        }
    }

    pub(crate) fn disagrees(&self, reason: &'static str) {
        *self.disagreements.borrow_mut().entry(reason).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.stories += other.stories;
        self.plans += other.plans;
        self.safe += other.safe;
        self.dangerous += other.dangerous;
        self.justified += other.justified;
        self.declared += other.declared;
        self.false_alarms += other.false_alarms;
        for (code, count) in &other.codes {
            *self.codes.entry(code.clone()).or_default() += count;
        }
        for (reason, count) in other.disagreements.borrow().iter() {
            *self.disagreements.borrow_mut().entry(reason).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
        writeln!(
            f,
            "{} cases in {} stores: {} plans are safe, {} dangerous",
            self.plans, self.stories, self.safe, self.dangerous
        )?;
        writeln!(
            f,
            "of the dangerous ones: {} would lose something stored, {} change names or meaning, {} are false alarms",
            self.justified, self.declared, self.false_alarms
        )?;
        writeln!(
            f,
            "false alarms: {:.2} % of all plans, {:.2} % of the dangerous ones",
            share(self.false_alarms, self.plans),
            share(self.false_alarms, self.dangerous)
        )?;
        for (code, count) in &self.codes {
            writeln!(f, "  {code}: {count}")?;
        }
        for (reason, count) in self.disagreements.borrow().iter() {
            writeln!(f, "the judge and the validator disagree {count} times: {reason}")?;
        }
        Ok(())
    }
}
