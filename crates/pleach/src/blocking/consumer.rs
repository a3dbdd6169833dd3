use pleach_engine::ConsumerStart;

use super::{Bucket, Consumer, block_on};
use crate::{ConsumeOptions, ConsumerStatus, Error, IntoConsumerName};

/// Consumers: places in the feed of a bucket that outlive whoever reads there.
impl Bucket {
    /// See [`Bucket::consume`](crate::Bucket::consume).
    pub fn consume(&self, consumer: impl IntoConsumerName) -> Result<Consumer, Error> {
        block_on(self.as_async().consume(consumer)).map(Consumer::from)
    }

    /// See [`Bucket::consume_with`](crate::Bucket::consume_with).
    pub fn consume_with(
        &self,
        consumer: impl IntoConsumerName,
        options: ConsumeOptions,
    ) -> Result<Consumer, Error> {
        block_on(self.as_async().consume_with(consumer, options)).map(Consumer::from)
    }

    /// See [`Bucket::consumers`](crate::Bucket::consumers).
    pub fn consumers(&self) -> Result<Vec<ConsumerStatus>, Error> {
        block_on(self.as_async().consumers())
    }

    /// See [`Bucket::consumer`](crate::Bucket::consumer).
    pub fn consumer(&self, consumer: impl IntoConsumerName) -> Result<ConsumerStatus, Error> {
        block_on(self.as_async().consumer(consumer))
    }

    /// See [`Bucket::reset_consumer`](crate::Bucket::reset_consumer).
    pub fn reset_consumer(
        &self,
        consumer: impl IntoConsumerName,
        start: ConsumerStart,
    ) -> Result<ConsumerStatus, Error> {
        block_on(self.as_async().reset_consumer(consumer, start))
    }

    /// See [`Bucket::delete_consumer`](crate::Bucket::delete_consumer).
    pub fn delete_consumer(&self, consumer: impl IntoConsumerName) -> Result<(), Error> {
        block_on(self.as_async().delete_consumer(consumer))
    }
}
