use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use pleach_engine::{
    At, BucketConfig, BucketInfo, BucketName, Change, Clock, Engine, EngineError, Entry, PAGE_LEASE, Page,
    PageToken, Revision, ScanQuery, Selection, WatchEvent, WatchQuery, WatchStart, WatchStream,
};

use super::plan;
use super::run::Run;
use super::state::Bucket;
use crate::EmbeddedEngine;

/// How long an answer may take that is not worked on by this thread.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// The most scans and watches that are held at once.
pub(super) const HELD_MAX: usize = 4;

/// A scan that may go on.
pub(super) struct HeldPage {
    bucket: BucketName,
    created_at: Revision,
    query: ScanQuery,
    token: PageToken,
    /// What is left of it.
    rest: Vec<Entry>,
    config: BucketConfig,
    pub(super) revision: Revision,
    session: usize,
    leased_at: Duration,
}

/// A watch, and how far it has come.
pub(super) struct HeldWatch {
    bucket: BucketName,
    created_at: Revision,
    query: WatchQuery,
    next: Revision,
    /// None if the store was opened again since.
    stream: Option<WatchStream>,
}

impl HeldWatch {
    pub(super) fn let_go(&mut self) {
        self.stream = None;
    }

    /// Revisions after `newest` were lost, and come again for something else.
    pub(super) fn forget_after(&mut self, newest: Revision) {
        self.next = self.next.min(newest.next());
    }
}

impl Run {
    pub(super) fn read(&mut self) {
        let (name, key) = (self.any_bucket(), self.plan.key(&mut self.dice));
        let newest = self.newest();
        let at = match self.dice.below(3) {
            0 => At::Latest,
            1 => At::Revision(Revision::new(self.dice.word() % (newest.get() + 3))),
            _ => At::Revision(Revision::new(newest.get().saturating_sub(self.dice.word() % 6))),
        };
        let (engine, now) = (Arc::clone(&self.stage().engine), self.now());
        let expected = self.bucket(&name).and_then(|bucket| match at {
            At::Revision(asked) if asked > newest => Err(EngineError::FutureRevision { asked, newest }),
            at => bucket.read(&key, at, now),
        });
        self.same(&format!("{name}/{key} at {at:?}"), patiently(engine.read(&name, &key, at)), expected);
        let expected = self.bucket(&name).map(|bucket| bucket.history(&key));
        self.same(&format!("history of {name}/{key}"), patiently(engine.history(&name, &key)), expected);
        let selection = plan::query(&mut self.dice).selection;
        let count = |bucket: &Bucket| bucket.select(&selection, Default::default(), now).len() as u64;
        let expected = self.bucket(&name).map(count);
        self.same(&format!("count of {name}"), patiently(engine.count(&name, selection.clone())), expected);
    }

    pub(super) fn scan(&mut self) {
        let (name, query) = (self.any_bucket(), plan::query(&mut self.dice));
        let (engine, now) = (Arc::clone(&self.stage().engine), self.now());
        let page = patiently(engine.scan(&name, query.clone()));
        let expected = self.bucket(&name).map(|bucket| bucket.select(&query.selection, query.direction, now));
        match (page, expected) {
            (Ok(page), Ok(rest)) => {
                let bucket = &self.truth.state.buckets[&name];
                let (created_at, config) = (bucket.created_at, bucket.config.clone());
                let Some(token) = self.check_page(&query, &page, &rest, self.newest()) else { return };
                let rest = rest[page.entries.len()..].to_vec();
                let (session, leased_at) = (self.session, self.machine.clock.elapsed());
                let revision = page.revision;
                let page = HeldPage {
                    bucket: name,
                    created_at,
                    query,
                    token,
                    rest,
                    config,
                    revision,
                    session,
                    leased_at,
                };
                self.pages.push(page);
                if self.pages.len() > HELD_MAX {
                    self.pages.remove(0);
                }
            }
            (page, expected) => self.same(&format!("scan of {name}"), page, expected.map(|_| unasked())),
        }
    }

    /// Checks a page against what is left of its scan; gives the token for the next.
    fn check_page(
        &self,
        query: &ScanQuery,
        page: &Page,
        rest: &[Entry],
        revision: Revision,
    ) -> Option<PageToken> {
        let shown = |entry: &Entry| {
            let mut entry = entry.clone();
            if query.keys_only {
                entry.value = bytes::Bytes::new();
            }
            entry
        };
        let expected: Vec<_> = rest.iter().take(query.limit).map(shown).collect();
        assert_eq!(page.entries, expected, "a page of {query:?}");
        assert_eq!(page.revision, revision, "a page of {query:?}");
        assert_eq!(page.next.is_some(), rest.len() > query.limit, "more of {query:?}");
        page.next.clone()
    }

    pub(super) fn next_page(&mut self) {
        if self.pages.is_empty() {
            return self.scan();
        }
        let place = self.dice.below(self.pages.len());
        let mut held = self.pages.swap_remove(place);
        let query = ScanQuery { page: Some(held.token.clone()), ..held.query.clone() };
        let page = patiently(self.stage().engine.scan(&held.bucket, query));
        let present = self.truth.state.buckets.get(&held.bucket);
        let same_bucket = present.is_some_and(|bucket| bucket.created_at == held.created_at);
        let elapsed = self.machine.clock.elapsed();
        match page {
            // What counts as expired follows from the configuration, which has changed.
            Ok(_) if present.is_some_and(|bucket| bucket.config.ttl != held.config.ttl) => {}
            Ok(page) => {
                assert!(same_bucket, "a page of a bucket that is gone");
                let next = self.check_page(&held.query, &page, &held.rest, held.revision);
                held.rest.drain(..page.entries.len());
                if let Some(token) = next {
                    (held.token, held.leased_at) = (token, elapsed);
                    self.pages.push(held);
                }
            }
            Err(EngineError::Compacted { .. }) => {
                self.saw("snapshot given up");
                let leased = held.session == self.session && elapsed < held.leased_at + PAGE_LEASE;
                assert!(!leased, "a snapshot was given up before its time");
            }
            Err(EngineError::InvalidPageToken { .. } | EngineError::BucketNotFound { .. }) => {
                assert!(!same_bucket, "the token of a scan is refused");
            }
            Err(error) => assert!(self.excuses(&error), "a page of {}: {error}", held.bucket),
        }
    }

    pub(super) fn watch(&mut self) {
        let name = self.any_bucket();
        let filters = plan::query(&mut self.dice).selection.filter.into_iter().collect();
        let newest = self.newest();
        let Some(bucket) = self.truth.state.buckets.get(&name) else { return };
        let created_at = bucket.created_at;
        let from = match self.dice.below(3) {
            0 => newest.next(),
            1 => created_at,
            _ => Revision::new(created_at.get() + self.dice.word() % (newest.get() + 2 - created_at.get())),
        };
        let query = WatchQuery { filters, start: WatchStart::Revision(from) };
        let watch = HeldWatch { bucket: name, created_at, query, next: from, stream: None };
        self.watches.push(watch);
        if self.watches.len() > HELD_MAX {
            self.watches.remove(0);
        }
    }

    pub(super) fn next_changes(&mut self) {
        if self.watches.is_empty() {
            return self.watch();
        }
        let place = self.dice.below(self.watches.len());
        let mut watch = self.watches.swap_remove(place);
        let resumed = watch.stream.is_none();
        if resumed && !self.resume(&mut watch) {
            return;
        }
        let bucket = self.truth.state.created_at(watch.created_at).expect("a bucket that was watched");
        let mut changes = bucket.changes(watch.next);
        changes.retain(|change| watch.query.matches(&change.entry.key));
        let deleted = !self.truth.state.buckets.values().any(|bucket| bucket.created_at == watch.created_at);
        let wanted = self.dice.between(1, 8);
        let stream = watch.stream.as_mut().expect("a stream");
        for expected in changes.iter().take(wanted) {
            match patiently(stream.next()).expect("more to come") {
                Ok(WatchEvent::Change(change)) => {
                    assert_eq!(change, *expected, "watching {} from {}", watch.bucket, watch.next);
                    watch.next = change.entry.revision.next();
                }
                Err(EngineError::BucketNotFound { .. }) if deleted => return,
                Err(EngineError::Compacted { oldest }) => {
                    return self.check_compacted(&watch, oldest, deleted);
                }
                Err(error) if self.excuses(&error) => return,
                other => panic!("{other:?} instead of {expected:?}"),
            }
        }
        if changes.len() <= wanted {
            // There is nothing more: it waits, or says that its bucket is gone.
            let polled = stream.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
            match polled {
                Poll::Pending => {}
                Poll::Ready(Some(Err(EngineError::BucketNotFound { .. }))) if deleted => return,
                // It has not looked yet at what it would have passed over.
                Poll::Ready(Some(Err(EngineError::Compacted { oldest }))) => {
                    return self.check_compacted(&watch, oldest, deleted);
                }
                other @ Poll::Ready(_) => panic!("{other:?}, though nothing more happened"),
            }
        }
        self.watches.push(watch);
    }

    /// Checks that a watch was told `Compacted` for a reason.
    fn check_compacted(&mut self, watch: &HeldWatch, oldest: Revision, deleted: bool) {
        let floor = self.stage().core.catalog.find(&watch.bucket).map(|bucket| bucket.feed_floor());
        self.saw("watch compacted");
        let told = deleted || floor == Some(oldest);
        assert!(told && watch.next < oldest, "{oldest} for {}, and the feed begins at {floor:?}", watch.next);
    }

    /// Begins a watch where it was; says whether it goes on.
    fn resume(&mut self, watch: &mut HeldWatch) -> bool {
        watch.query.start = WatchStart::Revision(watch.next);
        let stream = patiently(self.stage().engine.watch(&watch.bucket, watch.query.clone()));
        let present = self.truth.state.buckets.get(&watch.bucket).map(|bucket| bucket.created_at);
        match stream {
            Ok(stream) => {
                assert!(present.is_some(), "a bucket that is gone is watched");
                watch.stream = Some(stream);
                present == Some(watch.created_at)
            }
            Err(EngineError::BucketNotFound { .. }) => {
                assert!(present.is_none(), "a bucket that is there cannot be watched");
                false
            }
            Err(EngineError::Compacted { oldest }) => {
                self.check_compacted(watch, oldest, false);
                false
            }
            Err(error) => {
                assert!(self.excuses(&error), "watching {}: {error}", watch.bucket);
                false
            }
        }
    }

    /// Compares everything that can be read with the truth.
    pub(super) fn check(&mut self) {
        let (engine, now) = (Arc::clone(&self.stage().engine), self.now());
        let infos = patiently(engine.buckets()).expect("the buckets");
        let names: Vec<_> = infos.iter().map(|info| &info.name).collect();
        assert_eq!(names, self.truth.state.buckets.keys().collect::<Vec<_>>(), "the buckets there are");
        for (info, bucket) in infos.iter().zip(self.truth.state.buckets.values()) {
            let expected = BucketInfo {
                name: bucket.name.clone(),
                config: bucket.config.clone(),
                created: bucket.created,
                last_revision: bucket.last,
                feed_floor: self.check_floor(bucket, info.feed_floor),
                watches: info.watches,
            };
            assert_eq!(*info, expected);
            let everything = ScanQuery { limit: 1000, ..ScanQuery::default() };
            let live = bucket.select(&Selection::all(), Default::default(), now);
            let page = patiently(engine.scan(&bucket.name, everything)).map(|page| page.entries);
            self.same(&format!("entries of {}", bucket.name), page, Ok(live));
            let history: Vec<_> = bucket.records.keys().flat_map(|key| bucket.history(key)).collect();
            let found = initial(&engine, &bucket.name);
            self.same(&format!("history of {}", bucket.name), found, Ok(history));
            let changes = bucket.changes(info.feed_floor);
            let found = feed(&engine, &bucket.name, info.feed_floor, changes.len());
            self.same(&format!("feed of {}", bucket.name), found, Ok(changes));
            let consumers: Vec<_> = bucket.consumers.values().cloned().collect();
            self.same(
                &format!("consumers of {}", bucket.name),
                patiently(engine.consumers(&bucket.name)),
                Ok(consumers),
            );
        }
    }

    /// Checks that the feed of a bucket begins no later than it may.
    fn check_floor(&self, bucket: &Bucket, floor: Revision) -> Revision {
        let (name, settings, config) = (&bucket.name, &self.machine.settings, &bucket.config);
        assert!(
            floor >= bucket.created_at && floor <= bucket.last.next(),
            "the feed of {name} begins at {floor}"
        );
        for consumer in bucket.consumers.values() {
            assert!(floor <= consumer.next, "the feed of {name} begins at {floor}, after {consumer:?}");
        }
        // What was promised under an earlier configuration is not known any more.
        if bucket.updated || config.feed_bytes.or(settings.feed_bytes).is_some() {
            return floor;
        }
        // The clock may have shown a later time before the store was opened again: only records keep it.
        let (kept, now) = (config.feed_time.or(settings.feed_time), self.now().max(self.cleaned_at));
        for change in bucket.feed.iter().take_while(|change| change.entry.revision < floor) {
            let old = kept.is_some_and(|kept| change.entry.time.saturating_add(kept) <= now);
            assert!(old, "the feed of {name} begins at {floor}, after {change:?}");
        }
        floor
    }

    fn bucket(&self, name: &BucketName) -> Result<&Bucket, EngineError> {
        let bucket = self.truth.state.buckets.get(name);
        bucket.ok_or_else(|| EngineError::BucketNotFound { bucket: name.clone() })
    }

    /// Compares an answer with the one there must be.
    fn same<T: std::fmt::Debug + PartialEq>(
        &self,
        what: &str,
        found: Result<T, EngineError>,
        expected: Result<T, EngineError>,
    ) {
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{what}"),
            (Err(error), _) if self.excuses(&error) => {}
            (Err(found), Err(expected)) => assert_eq!(found.to_string(), expected.to_string(), "{what}"),
            (found, expected) => panic!("{what}: {found:?} instead of {expected:?}"),
        }
    }
}

fn unasked() -> Page {
    Page { entries: Vec::new(), revision: Revision::ZERO, next: None }
}

/// Every kept record of a bucket, as a watch begins with them.
fn initial(engine: &EmbeddedEngine, name: &BucketName) -> Result<Vec<Entry>, EngineError> {
    let query = WatchQuery { start: WatchStart::History, ..WatchQuery::default() };
    read_initial(&mut patiently(engine.watch(name, query))?)
}

/// What a watch begins with.
pub(super) fn read_initial(stream: &mut WatchStream) -> Result<Vec<Entry>, EngineError> {
    let mut entries = Vec::new();
    loop {
        match patiently(stream.next()).expect("an end of the initial values")? {
            WatchEvent::Change(change) => entries.push(change.entry),
            WatchEvent::InitialDone { .. } => return Ok(entries),
        }
    }
}

/// The changes of a bucket from a revision on, of which there must be so many.
fn feed(
    engine: &EmbeddedEngine,
    name: &BucketName,
    from: Revision,
    count: usize,
) -> Result<Vec<Change>, EngineError> {
    let query = WatchQuery { start: WatchStart::Revision(from), ..WatchQuery::default() };
    let mut stream = patiently(engine.watch(name, query))?;
    let mut changes = Vec::new();
    while changes.len() < count {
        match patiently(stream.next()).expect("more to come")? {
            WatchEvent::Change(change) => changes.push(change),
            WatchEvent::InitialDone { .. } => panic!("nobody asked for initial values"),
        }
    }
    Ok(changes)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an answer, but not for ever: one that does not come is a failure, and has a seed.
#[allow(clippy::disallowed_methods, reason = "other threads read for the engine, in real time")]
pub(super) fn patiently<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let started = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(started.elapsed() < ANSWER_TIMEOUT, "there is no answer");
        std::thread::park_timeout(ANSWER_TIMEOUT);
    }
}
