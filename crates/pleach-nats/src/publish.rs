use std::time::Duration;

use async_nats::{HeaderMap, HeaderName};
use bytes::Bytes;

use pleach_engine::{BatchPart, EngineError, Operation, Timestamp};

use crate::bucket::Bucket;
use crate::config::Settings;
use crate::engine::Shared;
use crate::error::{ApiError, number};
use crate::record::{self, header};
use crate::runtime::pause;

/// How long between two attempts to publish the same message.
const REPEAT_EVERY: Duration = Duration::from_millis(100);

/// What became of messages that were published.
#[derive(Debug)]
pub(crate) enum Published {
    /// They are stored; the last has this revision.
    Stored(u64),
    /// They were stored by an attempt whose answer was lost.
    StoredBefore,
    /// A key is not as expected.
    Conflict,
    /// A key is not as expected, and that may be because of an attempt whose answer was lost, for this reason.
    InDoubt(String),
}

/// Something to be published, which the server recognises when it comes again.
#[derive(Debug)]
pub(crate) struct Publication<'a> {
    pub(crate) bucket: &'a Bucket,
    pub(crate) settings: &'a Settings,
    pub(crate) operations: &'a [Operation],
    /// The revision that the newest record of each operation's key must have; none does not care.
    pub(crate) guards: &'a [Option<u64>],
    /// The subjects that are checked besides, each with the revision that its newest record must have.
    pub(crate) checks: &'a [(String, u64)],
    /// Names this commit: no other has it.
    pub(crate) id: &'a str,
    pub(crate) time: Timestamp,
}

impl<'a> Publication<'a> {
    /// How many messages only carry checks: those that no operation without an expectation of its own can carry. They
    /// come before the operations, whose revisions stay contiguous.
    pub(crate) fn carriers(&self) -> usize {
        let free = self.guards.iter().filter(|guard| guard.is_none()).count();
        self.checks.len().saturating_sub(free)
    }

    /// The check that an operation carries for its batch: only one without an expectation of its own can.
    fn carried(&self, index: usize) -> Option<&'a (String, u64)> {
        if self.guards.get(index)?.is_some() {
            return None;
        }
        let free_before = self.guards.get(..index)?.iter().filter(|guard| guard.is_none()).count();
        self.checks.get(self.carriers() + free_before)
    }

    /// The name of one of its messages.
    pub(crate) fn name(&self, index: usize) -> String {
        // A batch is never as long as that.
        let number = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        record::name(
            self.id,
            self.time,
            BatchPart { index: number(index), size: number(self.operations.len()) },
        )
    }
}

/// Publishing, until it is known what became of it.
impl Shared {
    /// Publishes all operations or none. Attempts without an answer are repeated under the same names, which the server
    /// recognises for a while.
    pub(crate) async fn publish(&self, publication: &Publication<'_>) -> Result<Published, EngineError> {
        let started = self.clock.elapsed();
        match self.attempt(publication, 0).await {
            Ok(revision) => Ok(Published::Stored(revision)),
            Err(error) => Box::pin(self.publish_again(publication, started, error)).await,
        }
    }

    async fn attempt(&self, publication: &Publication<'_>, attempt: u32) -> Result<u64, ApiError> {
        match publication.operations {
            // What is sent now would wait for the connection, and arrive when nobody expects it any more.
            _ if !self.api.is_connected() => Err(ApiError::Away),
            [single] if publication.carriers() == 0 => self.publish_one(publication, single).await,
            _ => Box::pin(self.publish_batch(publication, attempt)).await,
        }
    }

    /// Finds out what the `error` of the first attempt means, and makes further ones as long as that may help.
    async fn publish_again(
        &self,
        publication: &Publication<'_>,
        started: Duration,
        mut error: ApiError,
    ) -> Result<Published, EngineError> {
        let bucket = publication.bucket;
        let patience = self.options.patience.min(publication.settings.duplicate_window / 2);
        let unknown = |reason: String| EngineError::UnknownOutcome { bucket: bucket.name.clone(), reason };
        // What it comes to in the end, if an answer may have been lost before.
        let end = |lost: Option<String>, error: ApiError| match lost {
            Some(reason) => unknown(reason),
            None => error.refused(format!("commit to bucket {}", bucket.name)),
        };
        let mut lost: Option<String> = None;
        for attempt in 1_u32.. {
            match &error {
                // What is being agreed on may be the attempt whose answer was lost.
                ApiError::Server { number: number::WRONG_LAST_SEQUENCE_SOON, .. } if lost.is_some() => {}
                ApiError::Server { number, .. } if is_conflict(*number) => {
                    return Ok(lost.map_or(Published::Conflict, Published::InDoubt));
                }
                ApiError::Server { number: number::BATCH_DUPLICATE, .. } => {
                    return Ok(Published::StoredBefore);
                }
                ApiError::Server { number: number::SEALED, .. } => {
                    return Err(EngineError::BucketNotFound { bucket: bucket.name.clone() });
                }
                // What cannot be understood may be the answer of someone else who listens.
                ApiError::Lost(reason) | ApiError::Malformed(reason) => lost = Some(reason.clone()),
                ApiError::Server {
                    number: number::BATCH_INCOMPLETE | number::DUPLICATE_IN_PROCESS, ..
                } => {}
                error if error.is_temporary() => {}
                ApiError::Server { .. }
                | ApiError::Denied(_)
                | ApiError::Unsendable(_)
                | ApiError::NoResponders
                | ApiError::Away => return Err(end(lost, error)),
            }
            if matches!(error, ApiError::NoResponders) {
                // It may be gone; then an attempt that was lost is gone with it.
                self.look(&bucket.name).await.map_err(|reason| match (&lost, reason) {
                    (Some(lost), EngineError::Unreachable { .. }) => unknown(lost.clone()),
                    (_, reason) => reason,
                })?;
            }
            if self.clock.elapsed().saturating_sub(started) > patience || self.is_closed() {
                return Err(end(lost, error));
            }
            pause(REPEAT_EVERY).await;
            match self.attempt(publication, attempt).await {
                Ok(revision) => return Ok(Published::Stored(revision)),
                Err(next) => error = next,
            }
        }
        Err(EngineError::Overloaded)
    }

    async fn publish_one(
        &self,
        publication: &Publication<'_>,
        operation: &Operation,
    ) -> Result<u64, ApiError> {
        let (headers, payload) = self.part(publication, 0, operation);
        let subject = publication.bucket.names.subject(&operation.key);
        self.api.publish(subject, headers, payload).await
    }

    async fn publish_batch(&self, publication: &Publication<'_>, attempt: u32) -> Result<u64, ApiError> {
        // It is never closed, so there is always a turn.
        let _turn = publication.bucket.batches.acquire().await;
        let (carriers, last) = (publication.carriers(), publication.operations.len() - 1);
        let batch = format!("{}-{attempt}", publication.id);
        let place = |headers: &mut HeaderMap, index: usize| {
            headers.insert(header::BATCH_ID, batch.as_str());
            headers.insert(header::BATCH_SEQUENCE, (index + 1).to_string());
        };
        // Nothing is committed before the last: what did not go out did not happen.
        let unsent = |error: async_nats::PublishError| ApiError::Unsendable(error.to_string());
        for (index, check) in publication.checks.iter().take(carriers).enumerate() {
            let mut headers = carrier(publication, index, check);
            place(&mut headers, index);
            let subject = publication.bucket.names.check_subject();
            let sent = self.api.client.publish_with_headers(subject, headers, Bytes::new()).await;
            sent.map_err(unsent)?;
        }
        for (index, operation) in publication.operations.iter().enumerate() {
            let (mut headers, payload) = self.part(publication, index, operation);
            place(&mut headers, carriers + index);
            let subject = publication.bucket.names.subject(&operation.key);
            if index == last {
                headers.insert(header::BATCH_COMMIT, "1");
                return self.api.publish(subject, headers, payload).await;
            }
            self.api.client.publish_with_headers(subject, headers, payload).await.map_err(unsent)?;
        }
        Err(ApiError::Unsendable("a batch has no operations".to_owned()))
    }

    fn part(&self, publication: &Publication<'_>, index: usize, operation: &Operation) -> (HeaderMap, Bytes) {
        let (mut headers, payload) =
            record::message(operation, &publication.settings.config, publication.time);
        // A fence outlives the values of its bucket.
        if operation.key.is_fence() && publication.settings.takes_ttl {
            headers.insert(header::TTL, record::NEVER);
        }
        // A batch is recognised by its first message, which is judged before what others expect, and by its last, should the
        // first have been replaced: the server need not remember the rest.
        let is_first = index == 0 && publication.carriers() == 0;
        let is_outer = is_first || index + 1 == publication.operations.len();
        let name = if is_outer { header::MESSAGE_ID } else { header::NAME };
        headers.insert(HeaderName::from_static(name), publication.name(index));
        if let Some(Some(guard)) = publication.guards.get(index) {
            headers.insert(HeaderName::from_static(header::EXPECTED), guard.to_string());
        } else if let Some(check) = publication.carried(index) {
            demand(&mut headers, check);
        }
        (headers, payload)
    }
}

/// The headers of a message that only carries a check. The first message of a batch is one that the server recognises when
/// it comes again.
fn carrier(publication: &Publication<'_>, index: usize, check: &(String, u64)) -> HeaderMap {
    let settings = publication.settings;
    let marker_ttl = settings.config.marker_ttl.filter(|_| settings.takes_ttl);
    let mut headers = record::carrier(marker_ttl, index == 0);
    let name = if index == 0 { header::MESSAGE_ID } else { header::NAME };
    headers
        .insert(HeaderName::from_static(name), record::carrier_name(publication.id, publication.time, index));
    demand(&mut headers, check);
    headers
}

/// Has the server check the newest record of a subject that the message does not write.
fn demand(headers: &mut HeaderMap, (subject, guard): &(String, u64)) {
    headers.insert(HeaderName::from_static(header::EXPECTED), guard.to_string());
    headers.insert(HeaderName::from_static(header::EXPECTED_SUBJECT), subject.as_str());
}

fn is_conflict(error: u64) -> bool {
    matches!(error, number::WRONG_LAST_SEQUENCE | number::WRONG_LAST_SEQUENCE_SOON)
}
