use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures_util::StreamExt;
use pleach_contract::KvResource;
use pleach_contract::evolution::Question;
use pleach_engine::{
    BucketName, Engine, EngineError, Entry, ErrorKind, Key, Revision, ScanQuery, Selection, Timestamp,
    WatchEvent, WatchQuery, WatchStart,
};

use crate::asked::{Asked, Tally, sooner};
use crate::depths::{Depths, KEYS_COUNTED_MAX};
use crate::error::AuthorityError;
use crate::evidence::{Sample, Scanned};
use crate::judge::Judge;
use crate::surveyed_entry::{Against, Fate, Judges, SurveyedEntry, against_all, too_deep};

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

/// One reading of a bucket: every record is judged under the new contract, and everything that findings ask is answered.
pub(crate) struct Survey<'s> {
    pub(crate) bucket: BucketName,
    /// What is read of it.
    pub(crate) selection: Selection,
    /// Only records after this revision.
    pub(crate) since: Revision,
    /// Which part an entry belongs to, by name; none is the first.
    pub(crate) part_of: fn(&Key) -> Option<&str>,
    pub(crate) parts: Vec<Part<'s>>,
    /// What makes a part for entries that belong to none; without it they are not looked at.
    pub(crate) further: Option<fn(&str) -> Part<'s>>,
}

/// The records of one alias or of one state store, what they are judged by, and what is asked about them.
pub(crate) struct Part<'s> {
    pub(crate) name: String,
    /// The contract in force; none if there is none.
    pub(crate) old: Option<Judge>,
    /// The new contract.
    pub(crate) new: Judge,
    /// Whether both read every record alike, so that none has to be judged.
    pub(crate) is_alike: bool,
    pub(crate) resource: Option<&'s KvResource>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) found: Found,
}

/// What a survey found in a part.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What was there.
    pub(crate) scanned: Scanned,
    /// Everything that the new contract refuses, whether or not it was readable before.
    pub(crate) refused: Tally,
    /// What would be lost and no finding explains.
    pub(crate) unexplained: Tally,
    /// What cannot be read under the contract in force either.
    pub(crate) unreadable: Tally,
    /// Whether there are older records that could not be read.
    pub(crate) is_unread: bool,
}

impl<'s> Part<'s> {
    pub(crate) fn new(name: &str, old: Option<Judge>, new: Judge) -> Self {
        let (asked, found) = (Vec::new(), Found::default());
        Self { name: name.to_owned(), old, new, is_alike: false, resource: None, asked, found }
    }
}

impl Survey<'_> {
    /// Reads the bucket once, on one snapshot, and the older records of its keys if it keeps any. One that is not there
    /// holds nothing.
    pub(crate) async fn run(
        &mut self,
        engine: &dyn Engine,
        now: Timestamp,
        watchers: &Watchers,
    ) -> Result<(), AuthorityError> {
        let config = match engine.bucket(&self.bucket).await {
            Ok(info) => info.config,
            Err(EngineError::BucketNotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let depths = match self.parts.iter().filter_map(Part::depth_asked).min() {
            Some(kept) => Depths::count(engine, &self.bucket, kept, KEYS_COUNTED_MAX, watchers).await?,
            None => Depths::default(),
        };
        let has_older = config.history.get() > 1 && self.parts.iter().any(Part::asks_older);
        let mut live = has_older.then(LiveRevisions::default);
        let revision = self.scan(engine, (&depths, now), &mut live, watchers).await?;
        for part in &mut self.parts {
            part.found.scanned.revision = revision;
            part.found.scanned.bucket = self.bucket.to_string();
            part.count_depths(&depths, self.since);
        }
        if let Some(live) = live {
            self.read_older(engine, revision, live.sorted(), watchers).await?;
        }
        Ok(())
    }

    /// Reads the live entries. Returns the revision of their snapshot.
    async fn scan(
        &mut self,
        engine: &dyn Engine,
        (depths, now): (&Depths, Timestamp),
        live: &mut Option<LiveRevisions>,
        watchers: &Watchers,
    ) -> Result<Revision, AuthorityError> {
        let selection = self.selection.clone();
        let mut query = ScanQuery { selection, limit: PAGE_ENTRIES, ..ScanQuery::default() };
        loop {
            let page = match engine.scan(&self.bucket, query.clone()).await {
                Err(EngineError::BucketNotFound { .. }) => return Ok(Revision::ZERO),
                scanned => scanned?,
            };
            for (index, entry) in page.entries.iter().enumerate() {
                if index % TURN_ENTRIES == 0 {
                    watchers.may_go_on()?;
                    take_turns().await;
                }
                if let Some(live) = live {
                    live.add(entry.revision);
                }
                let since = self.since;
                let Some(at) = self.part_at(&entry.key) else { continue };
                let records = match depths {
                    Depths::Counted { .. } => 0,
                    Depths::Singly => depths.of(engine, &self.bucket, &entry.key).await?,
                };
                self.parts[at].look(entry, records, since, now);
            }
            for part in &mut self.parts {
                watchers.tell(&part.name, part.found.scanned.entries, page.next.is_none());
            }
            match page.next {
                Some(next) => query.page = Some(next),
                None => return Ok(page.revision),
            }
        }
    }

    /// Reads the older records that the bucket keeps of its keys, those of deleted keys too: a revert and a read at a
    /// revision find them.
    async fn read_older(
        &mut self,
        engine: &dyn Engine,
        scanned: Revision,
        live: LiveRevisions,
        watchers: &Watchers,
    ) -> Result<(), AuthorityError> {
        let filters = self.selection.filter.clone().into_iter().collect();
        let query = WatchQuery { start: WatchStart::History, filters };
        let unread = |error: EngineError| match error {
            // An engine may have no room for so many records at once.
            error if error.kind() == ErrorKind::Unsupported => Ok(None),
            EngineError::BucketNotFound { .. } => Ok(None),
            error => Err(AuthorityError::from(error)),
        };
        let mut records = match engine.watch(&self.bucket, query).await {
            Ok(records) => records,
            Err(error) => return unread(error).map(|_: Option<()>| self.mark_unread()),
        };
        for index in 0.. {
            if index % TURN_ENTRIES == 0 {
                watchers.may_go_on()?;
                take_turns().await;
            }
            let entry = match records.next().await.transpose() {
                Ok(Some(WatchEvent::Change(change))) => change.entry,
                Ok(Some(WatchEvent::InitialDone { .. }) | None) => return Ok(()),
                Err(error) => return unread(error).map(|_: Option<()>| self.mark_unread()),
            };
            let is_in_reach = entry.revision > self.since && entry.revision <= scanned;
            if !entry.op.is_put() || !is_in_reach || live.has(entry.revision) {
                continue;
            }
            if let Some(at) = self.part_at(&entry.key) {
                self.parts[at].look_at_older(&entry);
            }
        }
        Ok(())
    }

    fn mark_unread(&mut self) {
        for part in self.parts.iter_mut().filter(|part| part.asks_older()) {
            part.found.is_unread = true;
        }
    }

    /// The part that a key belongs to, which is made if need be.
    fn part_at(&mut self, key: &Key) -> Option<usize> {
        if key.is_fence() {
            return None;
        }
        let name = (self.part_of)(key);
        let found = self.parts.iter().position(|part| name.is_none_or(|name| part.name == name));
        if found.is_some() {
            return found;
        }
        self.parts.push((self.further?)(name.unwrap_or_default()));
        Some(self.parts.len() - 1)
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

    /// Whether older records can say anything that matters.
    fn asks_older(&self) -> bool {
        let is_of_records =
            |asked: &Asked| matches!(asked.question, Question::Larger { .. } | Question::Older { .. });
        !self.is_alike || self.asked.iter().any(is_of_records)
    }

    fn look(&mut self, entry: &Entry, records: u64, since: Revision, now: Timestamp) {
        let Self { found, asked, .. } = self;
        found.scanned.entries += 1;
        if entry.revision <= since {
            return;
        }
        let judges = Judges { old: self.old.as_ref(), new: &self.new, is_alike: self.is_alike };
        let mut surveyed = SurveyedEntry::new(entry, judges);
        surveyed.records = records;
        found.scanned.bytes += entry.value.len() as u64;
        found.scanned.newest = found.scanned.newest.max(entry.revision);
        let version = surveyed.stamped().unwrap_or_default();
        match found.scanned.versions.get_mut(version) {
            Some(count) => *count += 1,
            None => drop(found.scanned.versions.insert(version.to_owned(), 1)),
        }
        let mut is_explained = false;
        for asked in asked.iter_mut() {
            if !surveyed.is_of(asked.keyspace.as_deref(), asked.version.as_deref()) {
                continue;
            }
            asked.tally.of += u64::from(!is_counted_whole(asked, records));
            if let Some(against) =
                surveyed.answer(asked, self.resource, now).filter(|against| against.is_its_own)
            {
                is_explained |= asked.explains();
                let Asked { tally, fix, .. } = asked;
                tally.note(|| surveyed.sample(against, fix));
            }
        }
        for tally in found.tallies(surveyed.fate(), is_explained) {
            tally.note(|| surveyed.sample(of_fate(surveyed.fate()), CORRECT));
        }
    }

    fn look_at_older(&mut self, entry: &Entry) {
        let Self { found, asked, .. } = self;
        found.scanned.kept += 1;
        found.scanned.newest = found.scanned.newest.max(entry.revision);
        let judges = Judges { old: self.old.as_ref(), new: &self.new, is_alike: self.is_alike };
        let surveyed = SurveyedEntry::new(entry, judges);
        let is_lost = matches!(surveyed.fate(), Fate::Lost(_));
        let mut is_explained = false;
        let own = |message| Against { path: String::new(), message, is_its_own: true };
        for asked in asked.iter_mut() {
            let against = match asked.question {
                Question::Larger { bytes } => surveyed.larger(bytes).map(own),
                Question::Older { ms } => sooner(entry, ms).map(|then| own(surveyed.expiring(then))),
                _ if is_lost
                    && asked.explains()
                    && surveyed.is_of(asked.keyspace.as_deref(), asked.version.as_deref()) =>
                {
                    surveyed.answer(asked, self.resource, entry.time).filter(|against| against.is_its_own)
                }
                _ => None,
            };
            if let Some(against) = against {
                is_explained |= asked.explains();
                let Asked { tally, fix, .. } = asked;
                tally.note_kept(&entry.key, || surveyed.sample(against, fix));
            }
        }
        for tally in found.tallies(surveyed.fate(), is_explained) {
            tally.note_kept(&entry.key, || surveyed.sample(of_fate(surveyed.fate()), CORRECT));
        }
    }

    /// Answers what is asked about the number of records, if they were counted in one reading.
    fn count_depths(&mut self, depths: &Depths, since: Revision) {
        let Depths::Counted { deeper, keys } = depths else { return };
        for asked in &mut self.asked {
            let Question::Deeper { history } = asked.question else { continue };
            asked.tally.of = *keys;
            let mut found: Vec<_> =
                deeper.iter().filter(|(_, depth)| depth.records > history && depth.newest > since).collect();
            found.sort_unstable_by_key(|(key, _)| *key);
            let Asked { tally, fix, .. } = asked;
            for (key, depth) in found {
                tally.note(|| Sample {
                    key: key.to_string(),
                    revision: depth.newest,
                    version: None,
                    path: String::new(),
                    message: too_deep(depth.records, history),
                    fix: fix.clone(),
                    state: None,
                    kept: false,
                });
            }
        }
    }
}

/// Whether the answer comes from counting all keys at once, and not from looking at entries.
fn is_counted_whole(asked: &Asked, records: u64) -> bool {
    matches!(asked.question, Question::Deeper { .. }) && records == 0
}

/// What to do about a record that would be refused.
const CORRECT: &str = "correct this value first, or raise the version and accept the old one";

fn of_fate(fate: &Fate) -> Against {
    match fate {
        Fate::Lost(misfit) | Fate::Unreadable(misfit) => against_all(misfit),
        Fate::Fine => Against { path: String::new(), message: String::new(), is_its_own: true },
    }
}

impl Found {
    /// What a record of this fate counts for.
    fn tallies(&mut self, fate: &Fate, is_explained: bool) -> impl Iterator<Item = &mut Tally> {
        let (refused, unexplained, unreadable) = match fate {
            Fate::Fine => (None, None, None),
            Fate::Unreadable(_) => (Some(&mut self.refused), None, Some(&mut self.unreadable)),
            Fate::Lost(_) => {
                let unexplained = (!is_explained).then_some(&mut self.unexplained);
                (Some(&mut self.refused), unexplained, None)
            }
        };
        [refused, unexplained, unreadable].into_iter().flatten()
    }
}

/// The revisions of the live entries, so that each is told from the older records of its key: 8 bytes an entry.
#[derive(Debug, Default)]
struct LiveRevisions(Vec<Revision>);

/// Of how many live entries the revisions are remembered: 64 MiB. Those beyond are judged once more among the older records,
/// and counted there too, which makes no verdict milder.
const LIVE_REMEMBERED_MAX: usize = 8 * 1024 * 1024;

impl LiveRevisions {
    fn add(&mut self, revision: Revision) {
        if self.0.len() < LIVE_REMEMBERED_MAX {
            self.0.push(revision);
        }
    }

    fn sorted(mut self) -> Self {
        self.0.sort_unstable();
        self
    }

    fn has(&self, revision: Revision) -> bool {
        self.0.binary_search(&revision).is_ok()
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
