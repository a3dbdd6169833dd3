use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
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

/// So much memory is shared by values that were read together: whoever keeps one of them keeps it all.
const BUFFER_BYTES: usize = 16 * 1024;

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
    /// Numbers of records in the order in which they lie.
    order: Vec<usize>,
    /// Parts of `order` that are read together.
    runs: Vec<Range<usize>>,
    /// The runs that nobody has taken.
    left: Mutex<Range<usize>>,
    done: Mutex<Done>,
}

struct Done {
    /// For each that was wanted, its payload, or none where it was cleaned away.
    found: Vec<Option<Payload>>,
    runs: usize,
    failed: Option<EngineError>,
}

/// Where someone who helps takes runs from: those who do not meet do not wait for each other.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

impl Log {
    /// Reads the payloads of several records, those that lie next to each other together; none where a record was
    /// cleaned away, because nobody needed it any more.
    pub(crate) fn gather(self: &Arc<Self>, wanted: Vec<Wanted>) -> Result<Vec<Option<Payload>>, EngineError> {
        let gathering = Arc::new(Gathering::new(wanted));
        if gathering.runs.len() >= RUNS_SHARED_MIN {
            let (log, shared) = (Arc::clone(self), Arc::clone(&gathering));
            blocking::unblock(move || log.take_runs(&shared, End::Back)).detach();
        }
        // Whoever helps may come late or never: what it has not begun is done here.
        self.take_runs(&gathering, End::Front);
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

    fn take_runs(&self, gathering: &Gathering, end: End) {
        let mut reading = Reading { log: self, segment: None, buffer: BytesMut::new(), found: Vec::new() };
        while let Some(runs) = gathering.take(end) {
            let count = runs.len();
            let read = || gathering.runs[runs].iter().try_for_each(|run| reading.run(gathering, run));
            // Whoever waits must hear of it whatever happens.
            let read = catch_unwind(AssertUnwindSafe(read))
                .unwrap_or_else(|_| Err(EngineError::Bug { what: "reading values panicked".into() }));
            let mut done = gathering.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.runs += count;
            for (number, payload) in reading.found.drain(..) {
                done.found[number] = payload;
            }
            if let Err(error) = read {
                done.failed = Some(error);
            }
        }
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
        let place = |(number, one): (usize, &Wanted)| (one.position.segment, one.position.offset, number);
        let mut places: Vec<_> = wanted.iter().enumerate().map(place).collect();
        places.sort_unstable();
        let order: Vec<_> = places.into_iter().map(|(_, _, number)| number).collect();
        let (mut runs, mut start) = (Vec::with_capacity(order.len()), 0);
        while start < order.len() {
            let end = start + run_len(&wanted, &order[start..]);
            runs.push(start..end);
            start = end;
        }
        let found = wanted.iter().map(|_| None).collect();
        let (left, done) = (Mutex::new(0..runs.len()), Done { found, runs: 0, failed: None });
        Self { wanted, order, runs, left, done: Mutex::new(done) }
    }

    /// The next few runs.
    fn take(&self, end: End) -> Option<Range<usize>> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let count = left.len().min(RUNS_TAKEN);
        let taken = match end {
            End::Front => left.start..left.start + count,
            End::Back => left.end - count..left.end,
        };
        match end {
            End::Front => left.start = taken.end,
            End::Back => left.end = taken.start,
        }
        Some(taken).filter(|taken| !taken.is_empty())
    }
}

/// Someone who reads runs.
struct Reading<'a> {
    log: &'a Log,
    /// The one that was read last.
    segment: Option<Arc<Segment>>,
    /// Small runs share memory: a few allocations instead of one for each.
    buffer: BytesMut,
    found: Vec<(usize, Option<Payload>)>,
}

impl Reading<'_> {
    fn run(&mut self, gathering: &Gathering, run: &Range<usize>) -> Result<(), EngineError> {
        let numbers = &gathering.order[run.clone()];
        let wanted = |number: usize| &gathering.wanted[number];
        let Some(first) = numbers.first().map(|number| wanted(*number).position) else { return Ok(()) };
        let end = numbers.iter().map(|number| end(wanted(*number).position)).max().unwrap_or(first.offset);
        let read = self.read(first, usize::try_from(end - first.offset).unwrap_or(usize::MAX));
        for number in numbers {
            let one = wanted(*number);
            let payload = match (&self.segment, &read) {
                (Some(segment), Some(bytes)) => Some(payload_in(segment, bytes, first.offset, one)?),
                // It may have been replaced just now; if not, this says what is wrong.
                _ => self.log.read_payload(one.position, &one.key, one.revision)?,
            };
            self.found.push((*number, payload));
        }
        Ok(())
    }

    /// Reads `len` bytes from `first` on, if that can be done.
    fn read(&mut self, first: Position, len: usize) -> Option<Bytes> {
        if self.segment.as_ref().is_none_or(|segment| segment.id() != first.segment) {
            self.segment = self.log.segment(first.segment);
        }
        let segment = self.segment.as_ref()?;
        if len > BUFFER_BYTES / 4 {
            return segment.read(first.offset, len).ok();
        }
        if self.buffer.capacity() < len {
            self.buffer = BytesMut::with_capacity(BUFFER_BYTES);
        }
        self.buffer.resize(len, 0);
        segment.read_into(self.buffer.split(), first.offset).ok()
    }
}

/// How many of `rest`, which are in order, can be read together.
fn run_len(wanted: &[Wanted], rest: &[usize]) -> usize {
    let position = |number: usize| wanted[rest[number]].position;
    let (first, mut reached) = (position(0), end(position(0)));
    let follows = |number: &usize| {
        let next = position(*number);
        let fits = next.segment == first.segment
            && next.offset <= reached.saturating_add(GAP_BYTES_MAX)
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
