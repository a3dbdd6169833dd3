//! The engine of Pleach on NATS JetStream.
//!
//! A bucket is an ordinary NATS key-value bucket: a stream of one subject a key, which every NATS client reads,
//! writes and watches while Pleach does. Revisions are the sequence numbers of the stream. What a stream cannot say
//! of a bucket is in its metadata, and a copy of it in a bucket of the store's own.
//!
//! Start with [`NatsEngine::connect`]. It brings its own threads, so it works under any async runtime and under none.
//! What it cannot promise is in its [`Capabilities`](pleach_engine::Capabilities).
//!
//! ```no_run
//! use pleach_engine::*;
//! use pleach_nats::{NatsEngine, NatsOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = NatsEngine::connect(NatsOptions::server("nats://127.0.0.1:4222")).await?;
//! let carts = BucketName::parse("carts")?;
//! engine.create_bucket(&carts, BucketConfig::plain(engine.capabilities())).await?;
//! engine.commit(&carts, Batch::new().put(Key::parse("user.42")?, "3 apples")).await?;
//! # Ok(()) }
//! ```
//!
//! What it leaves to others: running the servers, and moving data between engines.

mod address;
mod api;
mod bucket;
mod cache;
mod clock;
mod commit;
mod config;
mod connected;
mod connection;
mod consumers;
mod direct;
mod drain;
mod engine;
mod error;
mod feed;
mod follow;
mod inbox;
mod listed;
mod manage;
mod names;
mod options;
mod publish;
mod range;
mod read;
mod record;
mod runtime;
mod scan;
mod system;
mod watch;

pub use connected::Connected;
pub use engine::NatsEngine;
pub use options::{Authentication, BucketPlace, NatsOptions, Reads, Scans, Storage, Tls};
