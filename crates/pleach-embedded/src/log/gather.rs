use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use pleach_engine::{EngineError, Key, Revision};

use super::record::{Payload, Record};
use super::segment::Segment;
use super::{Log, Position};

/// Records that are this close to each other are read together: passing over a little costs less than another read.
const GAP_BYTES_MAX: u64 = 4 * 1024;

/// No more than this is read at once.
const RUN_BYTES_MAX: u64 = 128 * 1024;

/// From so many reads on, another thread helps: each is a call of the operating system that waits for memory.
const RUNS_SHARED_MIN: usize = 24;

/// Whoever reads takes so many at a time.
const RUNS_TAKEN: usize = 8;

/// A record whose payload is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) position: Position,
    pub(crate) key: Key,
    pub(crate) revision: Revision,
}

/// Payloads that are being read, by all who help.
struct Gathering {
    wanted: Vec<Wanted>,
    /// Numbers of records in the order in which they lie, in runs that are read together.
    runs: Vec<Vec<usize>>,
    /// The first run that nobody has taken.
    next: AtomicUsize,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    found: Vec<(usize, Option<Payload>)>,
    runs: usize,
    failed: Option<EngineError>,
}

impl Log {
    /// Reads the payloads of several records, those that lie next to each other together; none where a record was
    /// cleaned away, because nobody needed it any more.
    pub(crate) fn gather(self: &Arc<Self>, wanted: Vec<Wanted>) -> Result<Vec<Option<Payload>>, EngineError> {
        let count = wanted.len();
        let gathering = Gathering::new(wanted);
        let mut found = if gathering.runs.len() < RUNS_SHARED_MIN {
            let mut found = Vec::with_capacity(count);
            gathering.runs.iter().try_for_each(|run| self.read_run(&gathering.wanted, run, &mut found))?;
            found
        } else {
            self.gather_with_help(gathering)?
        };
        found.sort_unstable_by_key(|(number, _)| *number);
        Ok(found.into_iter().map(|(_, payload)| payload).collect())
    }

    /// Two take runs in turn until there are none left. Whoever helps may come late or never: what it has not begun
    /// is done here.
    fn gather_with_help(
        self: &Arc<Self>,
        gathering: Gathering,
    ) -> Result<Vec<(usize, Option<Payload>)>, EngineError> {
        let gathering = Arc::new(gathering);
        let (log, shared) = (Arc::clone(self), Arc::clone(&gathering));
        blocking::unblock(move || log.take_runs(&shared)).detach();
        self.take_runs(&gathering);
        loop {
            let mut done = gathering.done.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(error) = done.failed.take() {
                return Err(error);
            }
            if done.runs >= gathering.runs.len() {
                return Ok(std::mem::take(&mut done.found));
            }
            drop(done);
            // The other one is in the middle of a few reads.
            std::thread::yield_now();
        }
    }

    fn take_runs(&self, gathering: &Gathering) {
        loop {
            let first = gathering.next.fetch_add(RUNS_TAKEN, Ordering::AcqRel);
            let Some(runs) = gathering.runs.get(first..) else { return };
            let runs = &runs[..runs.len().min(RUNS_TAKEN)];
            if runs.is_empty() {
                return;
            }
            let mut found = Vec::new();
            let read = || runs.iter().try_for_each(|run| self.read_run(&gathering.wanted, run, &mut found));
            // Whoever waits must hear of it whatever happens.
            let read = catch_unwind(AssertUnwindSafe(read))
                .unwrap_or_else(|_| Err(EngineError::Bug { what: "reading values panicked".into() }));
            let mut done = gathering.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.runs += runs.len();
            done.found.append(&mut found);
            if let Err(error) = read {
                done.failed = Some(error);
            }
        }
    }

    /// Reads one run.
    fn read_run(
        &self,
        wanted: &[Wanted],
        run: &[usize],
        found: &mut Vec<(usize, Option<Payload>)>,
    ) -> Result<(), EngineError> {
        let Some(first) = run.first().map(|number| wanted[*number].position) else { return Ok(()) };
        let (start, segment) = (first.offset, self.segment(first.segment));
        let end = run.iter().map(|number| end(wanted[*number].position)).max().unwrap_or(start);
        let len = usize::try_from(end - start).unwrap_or(usize::MAX);
        let read = segment.as_ref().and_then(|segment| Some((segment, segment.read(start, len).ok()?)));
        for number in run {
            let one = &wanted[*number];
            let payload = match &read {
                Some((segment, bytes)) => Some(payload_in(segment, bytes, start, one)?),
                // It may have been replaced just now; if not, this says what is wrong.
                None => self.read_payload(one.position, &one.key, one.revision)?,
            };
            found.push((*number, payload));
        }
        Ok(())
    }

    /// Reads the payload of one record, as [`Log::read`] reads all of it.
    pub(crate) fn read_payload(
        &self,
        position: Position,
        key: &Key,
        revision: Revision,
    ) -> Result<Option<Payload>, EngineError> {
        let Some(segment) = self.segment(position.segment) else {
            return Ok(self.find(key, revision)?.map(|record| record.payload));
        };
        let bytes = match segment.read(position.offset, position.len as usize) {
            Err(_) if self.segment(position.segment).is_none() => {
                return Ok(self.find(key, revision)?.map(|record| record.payload));
            }
            bytes => bytes?,
        };
        payload_of(&segment, &bytes, position, key, revision).map(Some)
    }
}

impl Gathering {
    fn new(wanted: Vec<Wanted>) -> Self {
        let mut order: Vec<_> = (0..wanted.len()).collect();
        order.sort_unstable_by_key(|number| {
            (wanted[*number].position.segment, wanted[*number].position.offset)
        });
        let (mut runs, mut rest) = (Vec::new(), &order[..]);
        while !rest.is_empty() {
            let (run, after) = rest.split_at(run_len(&wanted, rest));
            runs.push(run.to_vec());
            rest = after;
        }
        Self { wanted, runs, next: AtomicUsize::new(0), done: Mutex::default() }
    }
}

/// How many of `rest`, which are in order, can be read together.
fn run_len(wanted: &[Wanted], rest: &[usize]) -> usize {
    let position = |number: usize| wanted[rest[number]].position;
    let (first, mut reached) = (position(0), end(position(0)));
    let follows = |number: &usize| {
        let next = position(*number);
        let fits = next.segment == first.segment
            && next.offset <= reached + GAP_BYTES_MAX
            && end(next) - first.offset <= RUN_BYTES_MAX;
        reached = reached.max(end(next));
        fits
    };
    1 + (1..rest.len()).take_while(follows).count()
}

fn end(position: Position) -> u64 {
    position.offset.saturating_add(position.len.into())
}

/// The payload of a record in `bytes`, which were read at `start`.
fn payload_in(segment: &Segment, bytes: &Bytes, start: u64, wanted: &Wanted) -> Result<Payload, EngineError> {
    let Wanted { position, key, revision } = wanted;
    let skip = usize::try_from(position.offset - start).unwrap_or(usize::MAX).min(bytes.len());
    let end = skip.saturating_add(position.len as usize).min(bytes.len());
    payload_of(segment, &bytes.slice(skip..end), *position, key, *revision)
}

/// The payload of the record that `bytes` are.
fn payload_of(
    segment: &Segment,
    bytes: &Bytes,
    position: Position,
    key: &Key,
    revision: Revision,
) -> Result<Payload, EngineError> {
    let binding = segment.binding().of(position.offset, revision);
    let what = || format!("the record of {key} at revision {revision} is unreadable");
    let payload = Record::decode_payload(bytes, key, binding);
    payload.ok_or_else(|| segment.damaged(position.offset, what()))
}
