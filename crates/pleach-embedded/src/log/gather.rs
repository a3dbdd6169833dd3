use bytes::Bytes;
use pleach_engine::{EngineError, Key, Revision};

use super::record::{Payload, Record};
use super::segment::Segment;
use super::{Log, Position};

/// Records that are this close to each other are read together: passing over a little costs less than another read.
const GAP_BYTES_MAX: u64 = 4 * 1024;

/// No more than this is read at once.
const RUN_BYTES_MAX: u64 = 128 * 1024;

/// A record whose payload is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) position: Position,
    pub(crate) key: &'a Key,
    pub(crate) revision: Revision,
}

impl Log {
    /// Reads the payloads of several records, those that lie next to each other together; none where a record was
    /// cleaned away, because nobody needed it any more.
    pub(crate) fn gather(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<Payload>>, EngineError> {
        let mut order: Vec<_> = (0..wanted.len()).collect();
        order.sort_unstable_by_key(|number| {
            (wanted[*number].position.segment, wanted[*number].position.offset)
        });
        let mut found = vec![None; wanted.len()];
        let mut rest = &order[..];
        while let Some(first) = rest.first() {
            let (run, after) = rest.split_at(run_len(wanted, rest));
            rest = after;
            let Some(segment) = self.segment(wanted[*first].position.segment) else {
                self.gather_singly(wanted, run, &mut found)?;
                continue;
            };
            let start = wanted[*first].position.offset;
            let end = run.iter().map(|number| end(wanted[*number].position)).max().unwrap_or(start);
            let len = usize::try_from(end - start).unwrap_or(usize::MAX);
            let Ok(bytes) = segment.read(start, len) else {
                // It may have been replaced just now; if not, that says what is wrong.
                self.gather_singly(wanted, run, &mut found)?;
                continue;
            };
            for number in run {
                found[*number] = Some(payload_in(&segment, &bytes, start, wanted[*number])?);
            }
        }
        Ok(found)
    }

    fn gather_singly(
        &self,
        wanted: &[Wanted<'_>],
        run: &[usize],
        found: &mut [Option<Payload>],
    ) -> Result<(), EngineError> {
        for number in run {
            let Wanted { position, key, revision } = wanted[*number];
            found[*number] = self.read_payload(position, key, revision)?;
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
        payload_in(&segment, &bytes, position.offset, Wanted { position, key, revision }).map(Some)
    }
}

/// How many of `rest`, which are in order, can be read together.
fn run_len(wanted: &[Wanted<'_>], rest: &[usize]) -> usize {
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
fn payload_in(
    segment: &Segment,
    bytes: &Bytes,
    start: u64,
    wanted: Wanted<'_>,
) -> Result<Payload, EngineError> {
    let Wanted { position, key, revision } = wanted;
    let skip = usize::try_from(position.offset - start).unwrap_or(usize::MAX);
    let record = skip.checked_add(position.len as usize).filter(|end| *end <= bytes.len());
    let binding = segment.binding().of(position.offset, revision);
    let payload = record.and_then(|end| Record::decode_payload(&bytes.slice(skip..end), key, binding));
    let what = || format!("the record of {key} at revision {revision} is unreadable");
    payload.ok_or_else(|| segment.damaged(position.offset, what()))
}
