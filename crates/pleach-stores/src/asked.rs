use std::collections::HashSet;
use std::time::Duration;

use pleach_contract::evolution::{Question, Subject, Verdict};
use pleach_engine::{Entry, Key, Timestamp};

use crate::evidence::{Answer, Expiring, KeptAnswer, SAMPLES_MAX, Sample};
use crate::plan::PlanFinding;

/// Of how many keys a tally remembers that it has counted them; what is beyond is counted as no further key.
const KEYS_REMEMBERED_MAX: usize = 100_000;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What was counted against a change, or against a contract as a whole.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) of: u64,
    pub(crate) samples: Vec<Sample>,
    kept: u64,
    kept_keys: HashSet<Key>,
    pub(crate) expiring: Option<Expiring>,
}

impl Tally {
    /// Counts a live entry.
    pub(crate) fn note(&mut self, sample: impl FnOnce() -> Sample) {
        self.count += 1;
        self.show(sample);
    }

    /// Counts an older record of a key.
    pub(crate) fn note_kept(&mut self, key: &Key, sample: impl FnOnce() -> Sample) {
        self.kept += 1;
        if self.kept_keys.len() < KEYS_REMEMBERED_MAX && !self.kept_keys.contains(key) {
            self.kept_keys.insert(key.clone());
        }
        self.show(|| Sample { kept: true, ..sample() });
    }

    fn show(&mut self, sample: impl FnOnce() -> Sample) {
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(sample());
        }
    }

    /// Whether anything was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.kept == 0
    }

    /// How many live entries and older records were counted.
    pub(crate) fn total(&self) -> u64 {
        self.count + self.kept
    }

    pub(crate) fn into_answer(self) -> Answer {
        let kept =
            (self.kept > 0).then_some(KeptAnswer { records: self.kept, keys: self.kept_keys.len() as u64 });
        let Self { count, of, samples, expiring, .. } = self;
        Answer { count, of, samples, kept, expiring }
    }
}

/// Something that a finding asks about the records of a bucket. What it answers explains the finding; whether the plan is
/// safe is decided by judging every record.
pub(crate) struct Asked {
    /// Its place among the findings.
    pub(crate) finding: usize,
    pub(crate) keyspace: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) path: String,
    pub(crate) fix: String,
    pub(crate) question: Question,
    /// Whether only records that would be lost answer it: it asks who is there, and some are there and stay readable.
    pub(crate) is_of_lost: bool,
    /// Whether its answer can make the plan dangerous.
    pub(crate) is_weighty: bool,
    pub(crate) tally: Tally,
    /// The keys of a unique index so far.
    pub(crate) taken: HashSet<String>,
}

impl Asked {
    /// What a finding asks about a bucket.
    pub(crate) fn of(finding: usize, about: &PlanFinding) -> Option<Self> {
        let (keyspace, version) = match &about.subject {
            Subject::Kv { keyspace, version, .. } => (keyspace.clone(), version.clone()),
            Subject::State { version, .. } => (None, version.clone()),
            Subject::Contract => (None, None),
        };
        let question = about.question.clone()?;
        let expiring = matches!(question, Question::Older { .. }).then(Expiring::default);
        Some(Self {
            finding,
            keyspace,
            version,
            path: about.path.clone(),
            fix: about.fix_for(false),
            is_of_lost: about.is_settled_by_data(),
            question,
            is_weighty: about.declared != Verdict::Safe,
            tally: Tally { expiring, ..Tally::default() },
            taken: HashSet::new(),
        })
    }

    /// Whether it can explain why a record would be refused.
    pub(crate) fn explains(&self) -> bool {
        let about_reading = matches!(
            self.question,
            Question::Refused | Question::KeyRefused | Question::Present | Question::Carries { .. }
        );
        self.is_weighty && about_reading
    }

    /// When an entry would expire with a shorter time to live, if that is sooner than it would without. Counts it.
    pub(crate) fn expires_sooner(&mut self, entry: &Entry, ms: u64, now: Timestamp) -> Option<Timestamp> {
        let then = sooner(entry, ms)?;
        let expiring = self.tally.expiring.get_or_insert_default();
        let place = match then {
            then if then <= now => &mut expiring.at_once,
            then if then <= now.saturating_add(HOUR) => &mut expiring.within_hour,
            then if then <= now.saturating_add(DAY) => &mut expiring.within_day,
            _ => &mut expiring.later,
        };
        *place += 1;
        Some(then)
    }
}

/// When a record would expire with a shorter time to live, if that is sooner than it would without.
pub(crate) fn sooner(entry: &Entry, ms: u64) -> Option<Timestamp> {
    let then = entry.time.saturating_add(Duration::from_millis(ms));
    entry.expires.is_none_or(|expires| then < expires).then_some(then)
}
