use std::time::Duration;

use async_nats::{Message, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;

use pleach_engine::{EngineError, Timestamp};

use crate::bucket::Bucket;
use crate::engine::Shared;
use crate::error::ApiError;
use crate::record::Record;

/// How often the server shows that it is there while it has nothing to send.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How often it may do so before it is asked otherwise: it may wait for what has been deleted meanwhile, or for an answer
/// that it never gets, because that may not be sent.
const HEARTBEATS_MAX: u32 = 2;

/// How long it may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Where a server that waits for us says how to let it go on.
const STALLED: &str = "Nats-Consumer-Stalled";

/// What tells the message of a consumer from others: `$JS.ACK.STREAM.CONSUMER.TIMES.REVISION.PLACE.TIME.PENDING`, or the same with a domain and
/// an account before the stream.
const DELIVERED: &str = "$JS.ACK.";

/// A consumer that the server has made.
#[derive(Debug, Deserialize)]
struct Consumer {
    num_pending: u64,
}

/// A message that a consumer has sent, and what comes after it.
#[derive(Debug)]
struct Delivery {
    record: Record,
    /// Its place among those that the consumer has sent, counted from one.
    place: u64,
    pending: u64,
}

/// Reading all of a bucket at once.
///
/// A consumer sends messages as they are stored, and says what they are in the subject of its reply. Asked for in chunks, each would come with
/// six more headers, which take server and client several times as long as all the rest.
impl Shared {
    /// Hands over what is stored from `from` up to and with `up_to`, in order, as far as a consumer sends it without a gap. Returns
    /// where to go on: what ends early, or may not be done, is left to whoever asks for chunks.
    pub(crate) async fn drain(
        &self,
        bucket: &Bucket,
        from: u64,
        up_to: u64,
        take: &mut impl FnMut(Record) -> Result<(), EngineError>,
    ) -> Result<u64, EngineError> {
        let Ok((mut messages, consumer)) = self.consume(bucket, from).await else { return Ok(from) };
        let (mut next, mut place, mut heartbeats) = (from, 0, 0);
        let mut pending = consumer.num_pending;
        while pending > 0 && next <= up_to {
            let message = tokio::time::timeout(SILENCE_MAX, messages.next()).await;
            let Ok(Some(message)) = message else { break };
            if message.status.is_some() {
                heartbeats += u32::from(message.reply.is_none());
                if heartbeats == HEARTBEATS_MAX || self.go_on(message).await.is_err() {
                    break;
                }
                continue;
            }
            heartbeats = 0;
            let Some(delivery) = Delivery::of(message) else { break };
            if delivery.place != place + 1 {
                break;
            }
            (place, pending) = (delivery.place, delivery.pending);
            next = delivery.record.sequence + 1;
            if next <= up_to + 1 {
                take(delivery.record)?;
            }
        }
        Ok(next)
    }

    /// A consumer of everything from `from` on. The server removes it soon after nobody listens.
    async fn consume(&self, bucket: &Bucket, from: u64) -> Result<(Subscriber, Consumer), ApiError> {
        let client = &self.api.client;
        let inbox = client.new_inbox();
        let lost = |error: &dyn std::fmt::Display| ApiError::Lost(error.to_string());
        let messages = client.subscribe(inbox.clone()).await.map_err(|error| lost(&error))?;
        let stream = &bucket.names.stream;
        let heartbeat = u64::try_from(HEARTBEAT.as_nanos()).unwrap_or(u64::MAX);
        let asked = json!({
            "stream_name": stream,
            "config": {
                "deliver_subject": inbox,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": from,
                "ack_policy": "none",
                "max_deliver": 1,
                "flow_control": true,
                "idle_heartbeat": heartbeat,
                "mem_storage": true,
                "num_replicas": 1,
            }
        });
        let consumer = self.api.call(&format!("CONSUMER.CREATE.{stream}"), &asked).await?;
        Ok((messages, consumer))
    }

    /// Answers a server that wants to know whether we are still with it.
    async fn go_on(&self, message: Message) -> Result<(), ApiError> {
        if message.status != Some(StatusCode::IDLE_HEARTBEAT) {
            return Err(ApiError::Lost(message.description.unwrap_or_default()));
        }
        let stalled = message.headers.as_ref().and_then(|headers| headers.get(STALLED));
        let stalled = stalled.map(|subject| subject.as_str().into());
        let Some(subject) = message.reply.or(stalled) else { return Ok(()) };
        let sent = self.api.client.publish(subject, Bytes::new()).await;
        sent.map_err(|error| ApiError::Lost(error.to_string()))
    }
}

impl Delivery {
    fn of(message: Message) -> Option<Self> {
        let told: Vec<&str> = message.reply.as_ref()?.strip_prefix(DELIVERED)?.split('.').collect();
        let told = match told.len() {
            7 => told.as_slice(),
            9.. => told.get(2..9)?,
            _ => return None,
        };
        let number = |index: usize| told.get(index)?.parse::<u64>().ok();
        let (sequence, place, nanos, pending) = (number(3)?, number(4)?, number(5)?, number(6)?);
        let record = Record::delivered(message, sequence, Timestamp::from_micros(nanos / 1000));
        Some(Self { record, place, pending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a message with this subject of its reply is taken for: its revision, its place and how many come after it.
    fn delivery(reply: &str) -> Option<(u64, u64, u64)> {
        let message = Message {
            subject: "$KV.carts.a".into(),
            reply: Some(reply.into()),
            payload: Bytes::new(),
            headers: None,
            status: None,
            description: None,
            length: 0,
        };
        Delivery::of(message).map(|delivery| (delivery.record.sequence, delivery.place, delivery.pending))
    }

    #[test]
    fn a_delivery_says_where_it_is_from() {
        assert_eq!(delivery("$JS.ACK.KV_carts.c.1.70.3.1700000000000000000.5"), Some((70, 3, 5)));
        assert_eq!(
            delivery("$JS.ACK.hub.x1.KV_carts.c.1.70.3.1700000000000000000.5.token"),
            Some((70, 3, 5))
        );
        for other in ["_INBOX.a", "$JS.ACK.KV_carts.c.1.70.3.17", "$JS.ACK.KV_carts.c.1.x.3.17.5"] {
            assert_eq!(delivery(other), None, "{other}");
        }
    }
}
