//! Buckets that are moved from one store to another.

use std::sync::Arc;
use std::time::Duration;

use pleach::migrate::{Advance, Begun, Finished, MigrateError, MigrateOptions, Migration, Plan};
use pleach::{
    Bucket, BucketConfig, BucketName, Capabilities, Clock as _, DeleteOptions, Error, ErrorKind, Headers,
    ManualClock, Op, PutOptions, Store, Timestamp,
};

use crate::run;

/// An hour in 2026.
const NOW: Timestamp = Timestamp::from_micros(1_780_000_000_000_000);

fn name(text: &str) -> BucketName {
    BucketName::parse(text).unwrap()
}

pub(crate) fn history(records: u8) -> BucketConfig {
    BucketConfig { history: records.try_into().unwrap(), ..BucketConfig::default() }
}

fn options() -> MigrateOptions {
    MigrateOptions { origin: "here".into(), accept_loss: true, ..MigrateOptions::default() }
}

pub(crate) async fn begin(source: &Store, target: &Store) -> Result<Migration, Error> {
    let (b, options) = (name("b"), options());
    let plan = Plan::make(source, target, &b, &b, &options).await?;
    Migration::begin(source, target, plan, &options).await
}

/// Goes on until everything is in the target. The clock of a test stands still, so what waits for time gets some.
pub(crate) async fn catch_up(migration: &mut Migration, clock: Option<&ManualClock>) -> Result<(), Error> {
    for _ in 0..100_000 {
        match migration.advance().await? {
            Advance::Waiting { caught_up: true, .. } => return Ok(()),
            Advance::Waiting { .. } => match clock {
                Some(clock) => clock.advance(Duration::from_millis(500)),
                None => std::thread::sleep(Duration::from_millis(1)),
            },
            Advance::Worked => {}
        }
    }
    panic!("it does not catch up: {migration:?}");
}

pub(crate) async fn migrate(source: &Store, target: &Store) -> Result<Finished, Error> {
    let mut migration = begin(source, target).await?;
    catch_up(&mut migration, None).await?;
    migration.cut_over().await
}

/// What there is of some keys: operation, value and headers of every record.
pub(crate) async fn content(
    store: &Store,
    keys: impl Iterator<Item = String>,
) -> Vec<(String, Vec<(Op, Vec<u8>, Headers)>)> {
    let bucket = store.bucket("b").await.unwrap();
    let mut all = Vec::new();
    for key in keys {
        let records = bucket.history(key.as_str()).await.unwrap();
        let records = records.into_iter().map(|entry| (entry.op, entry.value.to_vec(), entry.headers));
        all.push((key, records.collect()));
    }
    all
}

pub(crate) fn keys() -> impl Iterator<Item = String> {
    (0..60).map(|n| format!("k.{n}"))
}

/// Writes something that depends only on `n`: mostly puts, some with headers, deletes, purges and batches.
pub(crate) async fn write(bucket: &Bucket, n: u64) {
    let at = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let key = format!("k.{}", at % 60);
    match at % 11 {
        0 => drop(bucket.delete(key.as_str()).await.unwrap()),
        1 => drop(bucket.purge(key.as_str()).await.unwrap()),
        2 => {
            let mut headers = Headers::new();
            headers.set("Trace", &n.to_string()).unwrap();
            let options = PutOptions { headers, ..PutOptions::default() };
            bucket.put_with(key.as_str(), format!("{n}"), options).await.unwrap();
        }
        3 => {
            let mut batch = bucket.batch();
            for part in 0..7 {
                batch = batch.put(format!("k.{}", (at + part) % 60).as_str(), format!("{n}.{part}"));
            }
            batch.commit().await.unwrap();
        }
        _ => drop(bucket.put(key.as_str(), format!("{n}")).await.unwrap()),
    }
}

async fn stores(directory: &tempfile::TempDir) -> [(Store, Store); 3] {
    let open = |name: &str| Store::open(directory.path().join(name));
    [
        (Store::in_memory(), Store::in_memory()),
        (Store::in_memory(), open("a").await.unwrap()),
        (open("b").await.unwrap(), open("c").await.unwrap()),
    ]
}

#[test]
fn a_bucket_is_copied_with_history_markers_headers_and_configuration() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        for (source, target) in stores(&directory).await {
            let mut config = history(4);
            config.metadata.insert("owner".into(), "shop".into());
            let bucket = source.create_bucket_with("b", config.clone()).await.unwrap();
            for n in 0..700 {
                write(&bucket, n).await;
            }
            let finished = migrate(&source, &target).await.unwrap();
            assert_eq!(content(&source, keys()).await, content(&target, keys()).await);
            assert_eq!(finished.verified.keys, bucket.status().await.unwrap().entries);
            assert_eq!(finished.verified.source_digest, finished.verified.target_digest);
            let copy = target.bucket("b").await.unwrap().status().await.unwrap();
            assert_eq!(copy.entries, finished.verified.keys);
            let mut kept = copy.info.config;
            kept.metadata.retain(|name, _| name == "owner");
            assert_eq!(kept, config);
            // Once more it is only compared.
            let plan = Plan::make(&source, &target, &name("b"), &name("b"), &options()).await.unwrap();
            assert_eq!(plan.begun, Begun::Done);
            assert_eq!(migrate(&source, &target).await.unwrap().verified, finished.verified);
        }
    });
}

#[test]
fn what_is_written_meanwhile_arrives_and_a_migration_that_is_killed_goes_on() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        for (source, target) in stores(&directory).await {
            let bucket = source.create_bucket_with("b", history(3)).await.unwrap();
            let mut n = 0;
            for _ in 0..900 {
                write(&bucket, n).await;
                n += 1;
            }
            // Every process makes some steps, while someone writes, and is gone.
            for steps in 0..12 {
                let mut migration = begin(&source, &target).await.unwrap();
                for _ in 0..steps {
                    migration.advance().await.unwrap();
                    for _ in 0..5 {
                        write(&bucket, n).await;
                        n += 1;
                    }
                }
            }
            migrate(&source, &target).await.unwrap();
            assert_eq!(content(&source, keys()).await, content(&target, keys()).await);
        }
    });
}

#[test]
fn the_longest_batch_is_repeated_and_small_ones_stay_whole() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        let bucket = source.create_bucket_with("b", history(2)).await.unwrap();
        let mut migration = begin(&source, &target).await.unwrap();
        catch_up(&mut migration, None).await.unwrap();
        let mut batch = bucket.batch();
        for key in 0..pleach::BATCH_OPERATIONS_MAX {
            batch = batch.put(format!("k.{key}").as_str(), "1");
        }
        batch.commit().await.unwrap();
        bucket.batch().put("pair.one", "1").put("pair.two", "1").commit().await.unwrap();
        catch_up(&mut migration, None).await.unwrap();
        let copy = target.bucket("b").await.unwrap();
        let [one, two] =
            ["pair.one", "pair.two"].map(|key| pollster::block_on(copy.get(key)).unwrap().unwrap());
        assert_eq!((one.time, one.revision.next()), (two.time, two.revision), "they were committed together");
        assert_eq!(migration.cut_over().await.unwrap().verified.records, 1002);
    });
}

#[test]
fn a_source_that_is_written_to_is_not_cut_over() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        let bucket = source.create_bucket("b").await.unwrap();
        bucket.put("k", "1").await.unwrap();
        let mut migration = begin(&source, &target).await.unwrap();
        catch_up(&mut migration, None).await.unwrap();
        bucket.put("k", "2").await.unwrap();
        // The target lacks the second value, but nothing is wrong with it.
        let late = migration.cut_over().await.unwrap_err();
        assert!(matches!(late, Error::Migrate(MigrateError::StillWritten { .. })), "{late:?}");
        migrate(&source, &target).await.unwrap();
        let copy = target.bucket("b").await.unwrap().get("k").await.unwrap().unwrap();
        assert_eq!(copy.value, "2");
    });
}

#[test]
fn values_keep_the_time_they_have_left() {
    run(async {
        let clock = Arc::new(ManualClock::new(NOW));
        let store =
            |clock: &Arc<ManualClock>| Store::in_memory_with(Arc::clone(clock) as Arc<dyn pleach::Clock>);
        let (source, target) = (store(&clock), store(&clock));
        let ttl = Some(Duration::from_secs(1000));
        let config = BucketConfig { ttl, ..history(2) };
        let bucket = source.create_bucket_with("b", config).await.unwrap();
        bucket.put("bucket", "1").await.unwrap();
        let own = PutOptions::ttl(Duration::from_secs(300));
        bucket.put_with("own", "1", own).await.unwrap();
        let soon = PutOptions::ttl(Duration::from_secs(10));
        bucket.put_with("soon", "1", soon).await.unwrap();
        clock.advance(Duration::from_secs(100));
        let mut migration = begin(&source, &target).await.unwrap();
        catch_up(&mut migration, Some(&clock)).await.unwrap();
        assert_eq!(migration.cut_over().await.unwrap().verified.keys, 2);
        let copy = target.bucket("b").await.unwrap();
        assert!(copy.get("soon").await.unwrap().is_none());
        let left = |entry: pleach::Entry| entry.expires.unwrap().since(NOW).as_secs();
        assert_eq!(left(copy.get("own").await.unwrap().unwrap()), 300);
        assert_eq!(left(copy.get("bucket").await.unwrap().unwrap()), 1000);
        assert!(clock.now() < NOW.saturating_add(Duration::from_secs(200)), "the test has used up the time");
        clock.advance(Duration::from_secs(250));
        assert!(copy.get("own").await.unwrap().is_none());
        assert!(copy.get("bucket").await.unwrap().is_some());
    });
}

#[test]
fn a_bucket_of_the_target_that_is_something_else_is_left_alone() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        source.create_bucket("b").await.unwrap().put("k", "1").await.unwrap();
        let other = target.create_bucket("b").await.unwrap();
        other.put("k", "mine").await.unwrap();
        let error = begin(&source, &target).await.unwrap_err();
        assert!(matches!(error, Error::Migrate(MigrateError::TargetExists { .. })));
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(other.get("k").await.unwrap().unwrap().value, "mine");
    });
}

#[test]
fn a_difference_is_told_with_its_key() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        let bucket = source.create_bucket("b").await.unwrap();
        for key in ["a", "b", "c"] {
            bucket.put(key, "1").await.unwrap();
        }
        for spoil in ["put", "delete", "add"] {
            let mut migration = begin(&source, &target).await.unwrap();
            catch_up(&mut migration, None).await.unwrap();
            let copy = target.bucket("b").await.unwrap();
            match spoil {
                "put" => drop(copy.put("b", "2").await.unwrap()),
                "delete" => drop(copy.delete_with("b", DeleteOptions::default()).await.unwrap()),
                _ => drop(copy.put("aa", "1").await.unwrap()),
            }
            let error = migration.cut_over().await.unwrap_err();
            let Error::Migrate(MigrateError::Different { key, .. }) = error else { panic!("{error:?}") };
            assert_eq!(key.as_str(), if spoil == "add" { "aa" } else { "b" });
            target.delete_bucket("b").await.unwrap();
        }
    });
}

#[test]
fn two_migrations_to_one_bucket_do_not_mix() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        let bucket = source.create_bucket_with("b", history(3)).await.unwrap();
        for n in 0..900 {
            write(&bucket, n).await;
        }
        let mut first = begin(&source, &target).await.unwrap();
        let mut second = begin(&source, &target).await.unwrap();
        first.advance().await.unwrap();
        let error = second.advance().await.unwrap_err();
        assert!(matches!(error, Error::Migrate(MigrateError::Busy { .. })), "{error:?}");
        catch_up(&mut first, None).await.unwrap();
        first.cut_over().await.unwrap();
        assert_eq!(content(&source, keys()).await, content(&target, keys()).await);
    });
}

#[test]
fn changes_that_the_source_no_longer_has_are_told() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        let bucket = source.create_bucket("b").await.unwrap();
        bucket.put("k", "1").await.unwrap();
        let mut migration = begin(&source, &target).await.unwrap();
        catch_up(&mut migration, None).await.unwrap();
        drop(migration);
        // The feed in memory keeps a number of changes, and these are more.
        for _ in 0..200 {
            for _ in 0..100 {
                let mut batch = bucket.batch();
                for key in 0..100 {
                    batch = batch.put(format!("k.{key}").as_str(), "2");
                }
                batch.commit().await.unwrap();
            }
            let info = source.bucket("b").await.unwrap().status().await.unwrap().info;
            if info.feed_floor.get() > 10 {
                break;
            }
        }
        let mut migration = begin(&source, &target).await.unwrap();
        let error = catch_up(&mut migration, None).await.unwrap_err();
        assert!(matches!(error, Error::Migrate(MigrateError::Behind { .. })), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Compacted);
    });
}

#[test]
fn consumers_move_along() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        let bucket = source.create_bucket("b").await.unwrap();
        let mut done = bucket.consume("done").await.unwrap();
        bucket.consume("late").await.unwrap();
        let revision = bucket.put("k", "1").await.unwrap();
        done.ack_up_to(revision).await.unwrap();
        let finished = migrate(&source, &target).await.unwrap();
        assert_eq!((finished.consumers_kept, finished.consumers_reset), (1, 1));
        let names: Vec<String> = target
            .bucket("b")
            .await
            .unwrap()
            .consumers()
            .await
            .unwrap()
            .iter()
            .map(|one| one.info.name.to_string())
            .collect();
        assert_eq!(names, ["done", "late"]);
    });
}

#[test]
fn what_a_target_in_memory_loses_is_said_and_refused() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (Store::open(directory.path()).await.unwrap(), Store::in_memory());
        let Capabilities { persistent, .. } = target.capabilities();
        assert!(!persistent);
        source.create_bucket("b").await.unwrap().put("k", "1").await.unwrap();
        let strict = MigrateOptions { accept_loss: false, ..options() };
        let plan = Plan::make(&source, &target, &name("b"), &name("b"), &strict).await.unwrap();
        assert!(plan.losses.iter().any(|loss| loss.what == "persistent"), "{:?}", plan.losses);
        let error = Migration::begin(&source, &target, plan, &strict).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(target.buckets().await.unwrap().is_empty());
    });
}

#[test]
fn what_the_store_itself_keeps_is_not_migrated_to_another_name() {
    pollster::block_on(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        source.create_bucket("carts").await.unwrap();
        let options = MigrateOptions::default();
        for (from, to) in
            [("pleach_state", "stolen"), ("carts", "pleach_state"), ("carts", "pleach_state_log")]
        {
            let (from, to) = (BucketName::parse(from).unwrap(), BucketName::parse(to).unwrap());
            let error = Plan::make(&source, &target, &from, &to, &options).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotAllowed, "{from} to {to}: {error}");
        }
    });
}
