use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use pleach_contract::KvResource;
use pleach_contract::evolution::{Question, Subject, Verdict};
use pleach_engine::{BucketName, Engine, EngineError, Entry, Key, Revision, ScanQuery, Selection, Timestamp};

use crate::binding::Unstamped;
use crate::compiled::CompiledResource;
use crate::depths::{Depths, KEYS_COUNTED_MAX};
use crate::error::AuthorityError;
use crate::plan::{Answer, PlanFinding, SAMPLES_MAX, Scanned};
use crate::subject::Looked;

/// How many entries are read at a time.
const PAGE_ENTRIES: usize = 250;

/// After how many entries others get their turn: well within half a millisecond.
pub(crate) const TURN_ENTRIES: usize = 64;

/// How far a scan has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanProgress {
    /// The alias whose bucket is read.
    pub alias: String,
    /// How many entries were read.
    pub entries: u64,
    /// Whether that was all.
    pub is_done: bool,
}

/// Whoever wants to know how far a scan has come.
pub type OnProgress = Arc<dyn Fn(&ScanProgress) + Send + Sync>;

/// Who watches over a scan, and may stop it.
#[derive(Clone, Default)]
pub(crate) struct Watchers {
    pub(crate) progress: Option<OnProgress>,
    pub(crate) cancel: Option<Arc<AtomicBool>>,
}

/// One reading of a bucket, which answers everything that is asked about it.
pub(crate) struct Survey<'s> {
    pub(crate) bucket: BucketName,
    /// What is read of it.
    pub(crate) selection: Selection,
    /// Only entries after this revision.
    pub(crate) since: Revision,
    /// Which part an entry belongs to, by name; none is the first.
    pub(crate) part_of: fn(&Key) -> Option<&str>,
    pub(crate) parts: Vec<Part<'s>>,
}

/// The entries of one alias or of one state store, and what is asked about them.
pub(crate) struct Part<'s> {
    pub(crate) name: String,
    /// What the entries were written under; none if nobody owned the bucket.
    pub(crate) old: Option<Arc<CompiledResource>>,
    /// What they shall be read under; none if the alias is gone.
    pub(crate) new: Option<Arc<CompiledResource>>,
    pub(crate) resource: Option<&'s KvResource>,
    pub(crate) unstamped: Option<Unstamped>,
    pub(crate) asked: Vec<Asked>,
    /// What was found to be there.
    pub(crate) scanned: Scanned,
}

/// Something that is asked about the entries of a bucket.
pub(crate) struct Asked {
    /// Its place among the findings.
    pub(crate) finding: usize,
    pub(crate) keyspace: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) path: String,
    pub(crate) fix: String,
    pub(crate) question: Question,
    /// Whether its answer can make the plan dangerous.
    pub(crate) is_weighty: bool,
    pub(crate) answer: Answer,
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
        Some(Self {
            finding,
            keyspace,
            version,
            path: about.path.clone(),
            fix: about.fix.clone(),
            question: about.question.clone()?,
            is_weighty: about.declared != Verdict::Safe,
            answer: Answer::default(),
            taken: HashSet::new(),
        })
    }
}

impl Survey<'_> {
    /// Reads the bucket once, on one snapshot. One that is not there holds nothing.
    pub(crate) async fn run(
        &mut self,
        engine: &dyn Engine,
        now: Timestamp,
        watchers: &Watchers,
    ) -> Result<(), AuthorityError> {
        for part in &mut self.parts {
            part.scanned.bucket = self.bucket.to_string();
        }
        let depths = match self.parts.iter().filter_map(Part::depth_asked).min() {
            Some(kept) => Depths::count(engine, &self.bucket, kept, KEYS_COUNTED_MAX, watchers).await?,
            None => Depths::default(),
        };
        let selection = self.selection.clone();
        let mut query = ScanQuery { selection, limit: PAGE_ENTRIES, ..ScanQuery::default() };
        loop {
            let page = match engine.scan(&self.bucket, query.clone()).await {
                Err(EngineError::BucketNotFound { .. }) => return Ok(()),
                scanned => scanned?,
            };
            for (index, entry) in page.entries.iter().enumerate() {
                if index % TURN_ENTRIES == 0 {
                    watchers.may_go_on()?;
                    take_turns().await;
                }
                let name = (self.part_of)(&entry.key);
                let part = self.parts.iter_mut().find(|part| name.is_none_or(|name| part.name == name));
                if let Some(part) = part {
                    let records = depths.of(engine, &self.bucket, &entry.key).await?;
                    part.look(entry, records, self.since, now);
                }
            }
            for part in &mut self.parts {
                part.scanned.revision = page.revision;
                watchers.tell(&part.name, part.scanned.entries, page.next.is_none());
            }
            match page.next {
                Some(next) => query.page = Some(next),
                None => return Ok(()),
            }
        }
    }
}

impl Part<'_> {
    /// The fewest records of a key that someone asks whether it has more.
    fn depth_asked(&self) -> Option<u64> {
        let depth = |asked: &Asked| match asked.question {
            Question::Deeper { history } => Some(history),
            _ => None,
        };
        self.asked.iter().filter_map(depth).min()
    }

    fn look(&mut self, entry: &Entry, records: u64, since: Revision, now: Timestamp) {
        self.scanned.entries += 1;
        if entry.revision <= since {
            return;
        }
        let mut looked = Looked::at(entry, self.old.as_deref(), self.new.as_deref(), self.unstamped.as_ref());
        self.scanned.bytes += entry.value.len() as u64;
        *self.scanned.versions.entry(looked.stamped().unwrap_or_default().to_owned()).or_default() += 1;
        looked.records = records;
        ask(&mut self.asked, &looked, self.resource, now);
    }
}

/// Asks an entry everything, and notes what stands against what.
fn ask(all: &mut [Asked], looked: &Looked<'_>, resource: Option<&KvResource>, now: Timestamp) {
    let mut is_blamed = false;
    for asked in all.iter_mut() {
        if !looked.is_of(asked.keyspace.as_deref(), asked.version.as_deref()) {
            continue;
        }
        asked.answer.of += 1;
        if let Some(against) = looked.answer(asked, resource, now).filter(|against| against.is_its_own) {
            is_blamed |= asked.is_weighty && asked.question == Question::Refused;
            note(asked, looked, against);
        }
    }
    if is_blamed || looked.refusal().is_none() {
        return;
    }
    // Refused for something that no finding names: then each that was to look for it has it.
    for asked in all.iter_mut().filter(|asked| asked.question == Question::Refused) {
        if looked.is_of(asked.keyspace.as_deref(), asked.version.as_deref())
            && let Some(against) = looked.answer(asked, resource, now)
        {
            note(asked, looked, against);
        }
    }
}

fn note(asked: &mut Asked, looked: &Looked<'_>, against: crate::subject::Against) {
    asked.answer.count += 1;
    if asked.answer.samples.len() < SAMPLES_MAX {
        let sample = looked.sample(against, &asked.fix);
        asked.answer.samples.push(sample);
    }
}

impl Watchers {
    pub(crate) fn may_go_on(&self) -> Result<(), AuthorityError> {
        match &self.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(AuthorityError::Cancelled),
            _ => Ok(()),
        }
    }

    fn tell(&self, alias: &str, entries: u64, is_done: bool) {
        if let Some(progress) = &self.progress {
            progress(&ScanProgress { alias: alias.to_owned(), entries, is_done });
        }
    }
}

/// Lets others on this thread go on, whatever runtime there is, and other threads on this processor: those that commit wake up
/// often and for a moment, and would wait for a scan that never rests.
pub(crate) async fn take_turns() {
    std::thread::yield_now();
    let mut had_theirs = false;
    poll_fn(|context| {
        if had_theirs {
            return Poll::Ready(());
        }
        had_theirs = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
