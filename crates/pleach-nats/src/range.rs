use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{Message, StatusCode};
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use serde_json::{Value, json};

use pleach_engine::{EngineError, Timestamp};

use crate::bucket::Bucket;
use crate::engine::Shared;
use crate::error::ApiError;
use crate::record::{Record, header};

/// Messages in one answer.
const CHUNK_MESSAGES: usize = 1000;

/// Questions for messages of one range that are under way at once.
const CHUNKS_AT_ONCE: usize = 4;

/// Bytes in one answer, about.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// Passes every subject of a stream. What is no key's is passed over, and a server finds the next of all messages much sooner than
/// the next of some.
pub(crate) const EVERYTHING: &str = ">";

/// How long an answer of several messages may pause.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(5);

/// Some messages, in the order in which they are stored.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) records: Vec<Record>,
    /// There were no more where it came from.
    pub(crate) is_last: bool,
    /// How far whoever answered has come, if that was said.
    pub(crate) up_to: Option<u64>,
}

/// Reading many messages at once.
impl Shared {
    /// Hands over what is stored from `from` up to and with `up_to` under subjects that pass `filter`, in order.
    /// What the leader has is not missed, even if a server answers that is behind.
    pub(crate) async fn read_range(
        &self,
        bucket: &Bucket,
        filter: &str,
        from: u64,
        up_to: u64,
        mut take: impl FnMut(Record) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let ask = |first: u64| async move {
            let (records, rest) = self.read_filtered(bucket, filter, first, up_to).await?;
            Ok::<_, EngineError>((first, records, rest.unwrap_or(up_to + 1)))
        };
        // Where the next answer must begin.
        let mut next = from.max(1);
        if filter == EVERYTHING && bucket.messages.load(Ordering::Acquire) > CHUNK_MESSAGES as u64 {
            next = Box::pin(self.drain(bucket, next, up_to, &mut take)).await?;
        }
        // Where the next question begins, and how far apart questions are: one until it is known how far an answer reaches.
        let (mut ahead, mut span) = (next, u64::MAX);
        let mut under_way = FuturesOrdered::new();
        while next <= up_to {
            if under_way.is_empty() {
                ahead = next;
            }
            while ahead <= up_to && under_way.len() < CHUNKS_AT_ONCE {
                under_way.push_back(ask(ahead));
                ahead = ahead.saturating_add(span);
            }
            let Some(answer) = under_way.next().await else { break };
            let (first, records, reached) = answer?;
            if first > next {
                // The one before it did not reach so far.
                under_way = FuturesOrdered::new();
                continue;
            }
            // A little less, since answers are not all of one length and one that is too short costs the others.
            span = ((reached - first) / 8 * 7).max(1);
            records.into_iter().filter(|record| record.sequence >= next).try_for_each(&mut take)?;
            next = next.max(reached);
        }
        Ok(())
    }

    /// Some of what is stored from `from` up to and with `up_to`, and where to go on if that was not all.
    pub(crate) async fn read_some(
        &self,
        bucket: &Bucket,
        from: u64,
        up_to: u64,
    ) -> Result<(Vec<Record>, Option<u64>), EngineError> {
        self.read_filtered(bucket, EVERYTHING, from, up_to).await
    }

    async fn read_filtered(
        &self,
        bucket: &Bucket,
        filter: &str,
        from: u64,
        up_to: u64,
    ) -> Result<(Vec<Record>, Option<u64>), EngineError> {
        let from = from.max(1);
        if from > up_to {
            return Ok((Vec::new(), None));
        }
        let Chunk { mut records, is_last, .. } = self.next_chunk(bucket, filter, from).await?;
        let mut next = records.last().map_or(from, |record| record.sequence + 1);
        if is_last && next <= up_to {
            // Perhaps only that server had no more.
            match self.next_at_leader(bucket, filter, next).await? {
                Some(record) => {
                    next = record.sequence + 1;
                    records.push(record);
                }
                None => next = up_to + 1,
            }
        }
        records.retain(|record| record.sequence <= up_to);
        Ok((records, (next <= up_to).then_some(next)))
    }

    async fn next_chunk(&self, bucket: &Bucket, filter: &str, from: u64) -> Result<Chunk, EngineError> {
        if !bucket.settings().is_direct {
            return Ok(Chunk { is_last: true, ..Chunk::default() });
        }
        let asked = json!({
            "seq": from, "next_by_subj": filter, "batch": CHUNK_MESSAGES, "max_bytes": CHUNK_BYTES
        });
        self.chunk(bucket, &asked).await
    }

    async fn next_at_leader(
        &self,
        bucket: &Bucket,
        filter: &str,
        from: u64,
    ) -> Result<Option<Record>, EngineError> {
        let asked = json!({ "seq": from, "next_by_subj": filter });
        self.at_leader(bucket, &asked).await
    }

    /// A message, as the leader has it.
    pub(crate) async fn at_leader(
        &self,
        bucket: &Bucket,
        which: &Value,
    ) -> Result<Option<Record>, EngineError> {
        self.in_bucket(bucket, "read", || self.api.message(&bucket.names.stream, which)).await
    }

    /// The first revision of a message that was stored at `since` or later.
    pub(crate) async fn first_since(
        &self,
        bucket: &Bucket,
        since: Timestamp,
    ) -> Result<Option<u64>, EngineError> {
        if !bucket.settings().is_direct {
            return Ok(None);
        }
        let chunk = self.chunk(bucket, &json!({ "start_time": since.to_string(), "batch": 1 })).await?;
        Ok(chunk.records.first().map(|record| record.sequence))
    }

    /// The answer to a request for several messages, from any server of the bucket.
    pub(crate) async fn chunk(&self, bucket: &Bucket, asked: &Value) -> Result<Chunk, EngineError> {
        self.in_bucket(bucket, "read", || self.ask_chunk(bucket, asked)).await
    }

    async fn ask_chunk(&self, bucket: &Bucket, asked: &Value) -> Result<Chunk, ApiError> {
        // It may have turned out while nobody answered that only the leader does.
        if !bucket.settings().is_direct {
            return Ok(Chunk { is_last: true, ..Chunk::default() });
        }
        let client = &self.api.client;
        let mut answer = self.inbox.expect();
        let subject = self.api.subject(&format!("DIRECT.GET.{}", bucket.names.stream));
        let asked = asked.to_string().into();
        let sent = client.publish_with_reply(subject, answer.subject(), asked).await;
        sent.map_err(|error| ApiError::Lost(error.to_string()))?;
        let mut chunk = Chunk::default();
        loop {
            let message = tokio::time::timeout(CHUNK_TIMEOUT, answer.next()).await;
            let Ok(Some(message)) = message else { return Err(ApiError::Lost("a part is missing".into())) };
            match message.status {
                None => chunk.records.push(Record::from_message(message)?),
                Some(status) if status.as_u16() == 204 => {
                    chunk.is_last = number(&message, header::PENDING).unwrap_or(0) == 0;
                    chunk.up_to = number(&message, header::UP_TO);
                    return Ok(chunk);
                }
                Some(status) if status == StatusCode::NOT_FOUND => {
                    return Ok(Chunk { is_last: true, ..chunk });
                }
                Some(StatusCode::NO_RESPONDERS) => return Err(ApiError::NoResponders),
                Some(status) => {
                    let description = message.description.unwrap_or_default();
                    return Err(ApiError::Server { code: status.as_u16().into(), number: 0, description });
                }
            }
        }
    }
}

fn number(message: &Message, name: &str) -> Option<u64> {
    message.headers.as_ref()?.get_last(name)?.as_str().parse().ok()
}
