//! Buckets that are moved to and from NATS servers, which fail meanwhile. What all stores have in common is in `migrate.rs`.

use std::io::Write as _;
use std::net::TcpStream;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pleach::migrate::MigrateError;
use pleach::nats::{NatsOptions, Scans};
use pleach::{BucketConfig, Error, ErrorKind, Store};
use pleach_nats_testing::{Cluster, Server};

use crate::migrate::{begin, catch_up, content, history, keys, migrate, write};
use crate::run;

/// As the command connects: nothing of a bucket is kept in memory.
async fn connect(options: NatsOptions) -> Store {
    Store::connect_nats(NatsOptions { scans: Scans::Direct, ..options }).await.unwrap()
}

/// The same to one server, which is not waited for for long.
async fn connect_to(server: &Server) -> Store {
    let (request_timeout, patience) = (Duration::from_secs(2), Duration::from_secs(10));
    connect(NatsOptions { request_timeout, patience, ..NatsOptions::server(server.url()) }).await
}

/// A store in memory with a bucket that keeps some history.
async fn filled() -> Store {
    let source = Store::in_memory();
    let bucket = source.create_bucket_with("b", history(3)).await.unwrap();
    for n in 0..2000 {
        write(&bucket, n).await;
    }
    source
}

/// Whether an error says that the servers were away, so that one may go on later.
fn check_away(error: &Error) {
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown), "{error:?}");
}

#[test]
fn a_migration_goes_on_after_its_server_was_killed() {
    run(async {
        let mut server = Server::start();
        let source = filled().await;
        let bucket = source.bucket("b").await.unwrap();
        for steps in 1..4 {
            let target = connect_to(&server).await;
            let mut migration = begin(&source, &target).await.unwrap();
            for n in 0..steps {
                migration.advance().await.unwrap();
                write(&bucket, 10_000 * steps + n).await;
            }
            server.kill();
            // It is noticed, at the latest when there is something to be done.
            let error = loop {
                write(&bucket, 20_000 * steps).await;
                if let Err(error) = migration.advance().await {
                    break error;
                }
            };
            check_away(&error);
            server.restart();
        }
        let target = connect_to(&server).await;
        let finished = migrate(&source, &target).await.unwrap();
        assert_eq!(finished.verified.source_digest, finished.verified.target_digest);
        assert_eq!(content(&source, keys()).await, content(&target, keys()).await);
    });
}

#[test]
fn a_bucket_moves_to_three_servers_of_which_one_fails() {
    run(async {
        let mut cluster = Cluster::start();
        let source = filled().await;
        let replicas = NonZeroU8::new(3).unwrap();
        let target =
            connect(NatsOptions { servers: cluster.urls(), replicas, ..NatsOptions::default() }).await;
        begin(&source, &target).await.unwrap().advance().await.unwrap();
        cluster.kill(0);
        // Two of three are enough, once they have agreed on who leads.
        let go_on = async || {
            let mut migration = begin(&source, &target).await?;
            catch_up(&mut migration, None).await?;
            Ok::<_, Error>(migration)
        };
        let migration = loop {
            match go_on().await {
                Ok(migration) => break migration,
                Err(error) => check_away(&error),
            }
        };
        cluster.restart(0);
        let finished = migration.cut_over().await.unwrap();
        assert_eq!(finished.verified.source_digest, finished.verified.target_digest);
        assert_eq!(content(&source, keys()).await, content(&target, keys()).await);
        // And back.
        let back = Store::in_memory();
        migrate(&target, &back).await.unwrap();
        assert_eq!(content(&source, keys()).await, content(&back, keys()).await);
    });
}

#[test]
fn a_source_that_stores_what_is_no_entry_does_not_keep_a_migration_waiting() {
    run(async {
        let server = Server::start();
        let (source, target) = (connect_to(&server).await, Store::in_memory());
        let config = BucketConfig::plain(source.capabilities());
        let bucket = source.create_bucket_with("b", config).await.unwrap();
        bucket.put("k", "1").await.unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (writes_on, url) = (Arc::clone(&is_over), server.url());
        let writing = std::thread::Builder::new().spawn(move || {
            let mut stream = TcpStream::connect(url.trim_start_matches("nats://")).unwrap();
            stream.write_all(b"CONNECT {\"verbose\":false}\r\n").unwrap();
            while !writes_on.load(Ordering::Acquire) {
                stream.write_all(b"PUB $KV.b.no!key 1\r\nx\r\n").unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let mut migration = begin(&source, &target).await.unwrap();
        catch_up(&mut migration, None).await.unwrap();
        // It ends either way, whether something came while both sides were compared or not.
        let told = migration.cut_over().await;
        let is_late = matches!(told, Err(Error::Migrate(MigrateError::StillWritten { .. })));
        assert!(is_late || told.is_ok(), "{told:?}");
        is_over.store(true, Ordering::Release);
        writing.unwrap().join().unwrap();
        assert_eq!(migrate(&source, &target).await.unwrap().verified.keys, 1);
    });
}
