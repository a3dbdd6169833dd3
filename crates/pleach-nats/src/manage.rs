use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};

use pleach_engine::{BUCKETS_MAX, BucketConfig, BucketInfo, BucketName, EngineError, Timestamp};

use crate::api::{StreamInfo, moment};
use crate::bucket::Bucket;
use crate::config::{self, Settings};
use crate::engine::Shared;
use crate::error::{ApiError, number};
use crate::feed::End;
use crate::names::Names;
use crate::runtime::pause;

/// How long what is known of a bucket is taken to be so: another client may change it.
const KNOWN_FOR: Duration = Duration::from_secs(5);

/// How often to look whether servers have agreed on a new bucket.
const AGREE_EVERY: Duration = Duration::from_millis(20);

/// How long between two attempts when servers do not answer.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// How often a bucket is given a configuration that does not stay.
const CHANGE_ATTEMPTS_MAX: usize = 5;

/// Buckets as a whole: finding, making, changing and deleting them.
impl Shared {
    /// A bucket, from memory if it was looked at lately.
    pub(crate) async fn bucket(&self, name: &BucketName) -> Result<Arc<Bucket>, EngineError> {
        self.check_open()?;
        let known = self.known(name).filter(|bucket| bucket.age(self.clock.elapsed()) < KNOWN_FOR);
        match known {
            Some(bucket) => Ok(bucket),
            // What is rarely done is boxed, here and elsewhere: else every call would have to hold room for it.
            None => Box::pin(self.look(name)).await.map(|(bucket, _)| bucket),
        }
    }

    /// A bucket, and its newest revision, as the server has it now.
    pub(crate) async fn look(&self, name: &BucketName) -> Result<(Arc<Bucket>, u64), EngineError> {
        self.check_open()?;
        let (names, as_of) = (Names::new(&self.options, name), self.clock.elapsed());
        match self.stream(&names).await? {
            Some(info) => {
                let settings = self.settings(name, &names, &info).await?;
                let (bucket, last) = self.learn(name, &names, settings, info.state.last_seq, as_of)?;
                bucket.messages.store(info.state.messages, Ordering::Release);
                Ok((bucket, last))
            }
            None => {
                self.forget(name);
                Err(EngineError::BucketNotFound { bucket: name.clone() })
            }
        }
    }

    /// A stream as the server describes it; none if there is none.
    pub(crate) async fn stream(&self, names: &Names) -> Result<Option<StreamInfo>, EngineError> {
        let asked = self.clock.asked();
        match self.patiently(|| self.api.info(&names.stream)).await {
            Ok(info) => {
                self.heard(asked, &info);
                Ok(Some(info))
            }
            Err(error) if error.is(number::STREAM_NOT_FOUND) => Ok(None),
            Err(error) => Err(error.refused(format!("describe {}", names.stream))),
        }
    }

    /// Asks again while the servers have no leader or give no answer: for what can be done twice.
    pub(crate) async fn patiently<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        ask: impl FnMut() -> F,
    ) -> Result<T, ApiError> {
        self.patiently_if(ask, |_| true).await
    }

    /// The same, but not if nobody answers at all.
    pub(crate) async fn patiently_unless_silent<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        ask: impl FnMut() -> F,
    ) -> Result<T, ApiError> {
        self.patiently_if(ask, |error| !matches!(error, ApiError::NoResponders)).await
    }

    async fn patiently_if<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        mut ask: impl FnMut() -> F,
        is_worth_it: impl Fn(&ApiError) -> bool,
    ) -> Result<T, ApiError> {
        let started = self.clock.elapsed();
        loop {
            match ask().await {
                Err(error) if !is_worth_it(&error) => return Err(error),
                Err(error) if error.is_temporary() || matches!(error, ApiError::Lost(_)) => {
                    if self.clock.elapsed().saturating_sub(started) > self.options.patience
                        || self.is_closed()
                    {
                        return Err(error);
                    }
                    pause(RETRY_EVERY).await;
                }
                done => return done,
            }
        }
    }

    /// The same for something in a bucket. If nobody answers for it, it may be gone.
    pub(crate) async fn in_bucket<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        bucket: &Bucket,
        action: &str,
        mut ask: impl FnMut() -> F,
    ) -> Result<T, EngineError> {
        let started = self.clock.elapsed();
        loop {
            let error = match ask().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let is_silent = matches!(error, ApiError::NoResponders | ApiError::Lost(_));
            if is_silent || error.is(number::STREAM_NOT_FOUND) {
                Box::pin(self.look(&bucket.name)).await?;
            }
            let is_late = self.clock.elapsed().saturating_sub(started) > self.options.patience;
            if is_late || !(is_silent || error.is_temporary()) {
                return Err(error.refused(format!("{action} in bucket {}", bucket.name)));
            }
            pause(RETRY_EVERY).await;
        }
    }

    fn heard(&self, asked: Timestamp, info: &StreamInfo) {
        if let Some(Ok(server)) = info.ts.as_deref().map(moment) {
            self.clock.heard(asked, server);
        }
    }

    pub(crate) fn known(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Takes note that a bucket is gone.
    pub(crate) fn forget(&self, name: &BucketName) {
        self.forget_because(name, End::Gone);
    }

    /// Takes note that what is known of a bucket is no longer so. Who is told of the end by its feed must not find it here.
    pub(crate) fn forget_because(&self, name: &BucketName, end: End) {
        let gone = self.buckets.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        if let Some(gone) = gone {
            if let Some(feed) = gone.running_feed() {
                feed.end(end);
            }
            let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            pages.forget(|snapshot| snapshot.bucket == gone.identity);
        }
    }

    /// What a stream says of its bucket. If another client has lost what only we know of it, that is found elsewhere.
    async fn settings(
        &self,
        name: &BucketName,
        names: &Names,
        info: &StreamInfo,
    ) -> Result<Settings, EngineError> {
        let settings = Settings::of(info, names, self.capabilities.value_bytes_max)?;
        if settings.is_described || self.check_name(name).is_err() {
            return Ok(settings);
        }
        let identity = settings.identity();
        let config = match self.known(name).filter(|known| known.identity == identity) {
            Some(known) => Some(known.config()),
            // This looks at a bucket too, though never at one without a description again.
            None => Box::pin(self.remembered_config(name, identity)).await?,
        };
        Ok(match config {
            Some(config) => settings.described_by(config),
            None => settings,
        })
    }

    /// Takes note of what is known of a bucket.
    pub(crate) fn learn(
        &self,
        name: &BucketName,
        names: &Names,
        settings: Settings,
        last: u64,
        as_of: Duration,
    ) -> Result<(Arc<Bucket>, u64), EngineError> {
        if settings.is_sealed {
            self.forget(name);
            return Err(EngineError::BucketNotFound { bucket: name.clone() });
        }
        if let Some(known) = self.known(name) {
            if known.identity == settings.identity() {
                known.learn(settings, last, as_of);
                return Ok((known, last));
            }
            self.forget(name);
        }
        let bucket = Arc::new(Bucket::new(name.clone(), names.clone(), settings, last, as_of));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = buckets.entry(name.clone()).or_insert_with(|| Arc::clone(&bucket));
        // Another call may have been faster, even with a namesake; that one is looked at again soon.
        Ok((Arc::clone(kept), last))
    }

    pub(crate) async fn create_bucket(
        self: &Arc<Self>,
        name: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.check_open()?;
        self.check_name(name)?;
        config.check(&self.capabilities)?;
        let (names, started) = (Names::new(&self.options, name), self.clock.elapsed());
        loop {
            let as_of = self.clock.elapsed();
            if let Some(info) = self.stream(&names).await? {
                let settings = self.settings(name, &names, &info).await?;
                if settings.is_sealed {
                    // Whoever was deleting it did not get to the end.
                    self.finish_delete(name, &names, &info).await?;
                    continue;
                }
                let differences = settings.config.differences(&config);
                if !differences.is_empty() {
                    return Err(EngineError::BucketExists { bucket: name.clone(), differences });
                }
                let (bucket, last) = self.learn(name, &names, settings, info.state.last_seq, as_of)?;
                return self.describe(&bucket, last).await;
            }
            // Creating a bucket takes a revision, so that it has one before its first record.
            let first = self.lineage(name).await? + 2;
            let stream = config::new_stream(&names, &config, &self.options, first);
            match self.patiently(|| self.api.create(&names.stream, &stream)).await {
                Ok(info) => {
                    let (settings, now) = (self.settings(name, &names, &info).await?, self.clock.elapsed());
                    let (bucket, last) = self.learn(name, &names, settings, info.state.last_seq, now)?;
                    self.remember(name, bucket.identity, &config).await?;
                    return self.describe(&bucket, last).await;
                }
                // Someone else is making it; what came of it is seen in a moment.
                Err(error)
                    if error.is(number::NAME_IN_USE)
                        && self.clock.elapsed().saturating_sub(started) <= self.options.patience =>
                {
                    pause(AGREE_EVERY).await;
                }
                Err(error) => return Err(error.refused(format!("create bucket {name}"))),
            }
        }
    }

    pub(crate) async fn update_bucket(
        &self,
        name: &BucketName,
        config: BucketConfig,
    ) -> Result<BucketInfo, EngineError> {
        self.check_open()?;
        self.check_name(name)?;
        config.check(&self.capabilities)?;
        let names = Names::new(&self.options, name);
        let change = |stream: &mut Map<String, Value>| config::describe(stream, &config);
        for _ in 0..CHANGE_ATTEMPTS_MAX {
            let (bucket, last) = self.change_stream(name, &names, change).await?;
            self.remember(name, bucket.identity, &config).await?;
            // A stream is changed by replacing all its settings: whoever was at it too may have put back what they had read.
            let (bucket, _) = self.look(name).await?;
            let is_there = bucket.config().differences(&config).is_empty();
            if is_there || self.remembered_config(name, bucket.identity).await?.as_ref() != Some(&config) {
                return self.describe(&bucket, last).await;
            }
        }
        Err(EngineError::Overloaded)
    }

    /// Changes some settings of a bucket's stream. If the bucket gets another configuration meanwhile, that is not undone.
    pub(crate) async fn change_stream(
        &self,
        name: &BucketName,
        names: &Names,
        change: impl Fn(&mut Map<String, Value>),
    ) -> Result<(Arc<Bucket>, u64), EngineError> {
        let missing = || EngineError::BucketNotFound { bucket: name.clone() };
        let system = self.system().await?;
        let (_, mut before) = self.remembered(&system, name).await?;
        let mut stream = self.stream(names).await?.ok_or_else(missing)?.config;
        loop {
            change(&mut stream);
            let updated = self.patiently(|| self.api.update(&names.stream, &stream)).await;
            let info = updated.map_err(|error| match error {
                error if error.is(number::STREAM_NOT_FOUND) => missing(),
                error => error.refused(format!("update bucket {name}")),
            })?;
            let (remembered, after) = self.remembered(&system, name).await?;
            if let (true, Some(config)) = (after != before, &remembered.config) {
                config::describe(&mut stream, config);
                before = after;
                continue;
            }
            let (settings, now) = (self.settings(name, names, &info).await?, self.clock.elapsed());
            return self.learn(name, names, settings, info.state.last_seq, now);
        }
    }

    pub(crate) async fn delete_bucket(self: &Arc<Self>, name: &BucketName) -> Result<(), EngineError> {
        self.check_open()?;
        self.check_name(name)?;
        let names = Names::new(&self.options, name);
        let missing = || EngineError::BucketNotFound { bucket: name.clone() };
        let info = self.stream(&names).await?.ok_or_else(missing)?;
        let is_sealed = |info: &StreamInfo| {
            Settings::of(info, &names, self.capabilities.value_bytes_max).map(|settings| settings.is_sealed)
        };
        if is_sealed(&info)? {
            return self.finish_delete(name, &names, &info).await;
        }
        let mut stream = info.config;
        stream.insert("sealed".to_owned(), json!(true));
        // Nobody can write to it from here on, so that its last revision is known for certain.
        let sealed = self.patiently(|| self.api.update(&names.stream, &stream)).await;
        let info = match sealed {
            Ok(info) => info,
            Err(error) if error.is(number::STREAM_NOT_FOUND) => return Err(missing()),
            Err(error) => {
                // Someone else may have sealed it meanwhile, and what is sealed takes no change.
                let info = self.stream(&names).await?.ok_or_else(missing)?;
                if !is_sealed(&info)? {
                    return Err(error.refused(format!("delete bucket {name}")));
                }
                info
            }
        };
        self.finish_delete(name, &names, &info).await
    }

    /// Deletes a sealed bucket, and remembers where its namesake must go on.
    async fn finish_delete(
        self: &Arc<Self>,
        name: &BucketName,
        names: &Names,
        info: &StreamInfo,
    ) -> Result<(), EngineError> {
        let identity = Settings::of(info, names, self.capabilities.value_bytes_max)?.identity();
        self.remember_end(name, identity, info.state.last_seq).await?;
        self.forget_consumers(name, identity).await?;
        // Whoever else was deleting it may have been faster, and its namesake be there: a stream is deleted by name.
        let is_same = |found: StreamInfo| found.created == info.created;
        if self.stream(names).await?.is_some_and(is_same) {
            match self.patiently(|| self.api.delete(&names.stream)).await {
                Ok(()) => {}
                Err(error) if error.is(number::STREAM_NOT_FOUND) => {}
                Err(error) => return Err(error.refused(format!("delete bucket {name}"))),
            }
        }
        self.forget(name);
        Ok(())
    }

    /// Makes a stream that is a copy of a bucket, for those who read it elsewhere.
    pub(crate) async fn create_replica(&self, name: &BucketName, stream: &str) -> Result<(), EngineError> {
        let bucket = self.bucket(name).await?;
        let mirror = config::mirror_stream(stream, &bucket.names, &bucket.config(), &self.options);
        let created = self.patiently(|| self.api.create(stream, &mirror)).await;
        created
            .map(drop)
            .map_err(|error| error.refused(format!("create the replica {stream} of bucket {name}")))
    }

    pub(crate) async fn buckets(&self) -> Result<Vec<BucketInfo>, EngineError> {
        self.check_open()?;
        let as_of = self.clock.elapsed();
        let streams = self.patiently(|| self.api.streams()).await;
        let streams = streams.map_err(|error| error.refused("list the buckets"))?;
        let mut found = Vec::new();
        for info in streams {
            let Some(stream) = info.config.get("name").and_then(|name| name.as_str()) else { continue };
            let Some(name) = Names::bucket(&self.options, stream) else { continue };
            if self.check_name(&name).is_err() || found.len() >= BUCKETS_MAX {
                continue;
            }
            let names = Names::new(&self.options, &name);
            // What only has the name of a bucket is none, and one that is being deleted is gone.
            let Ok(settings) = self.settings(&name, &names, &info).await else { continue };
            let learned = self.learn(&name, &names, settings, info.state.last_seq, as_of);
            if let Ok((bucket, last)) = learned {
                found.push(self.describe(&bucket, last).await?);
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    pub(crate) async fn describe(&self, bucket: &Arc<Bucket>, last: u64) -> Result<BucketInfo, EngineError> {
        let floor = self.feed_floor(bucket, last).await?;
        Ok(bucket.info(last, floor))
    }

    /// The oldest revision from which a watch learns of every key that has changed since. Markers of keys that are
    /// gone are forgotten after a while; from before that, a deletion could be missed.
    pub(crate) async fn feed_floor(&self, bucket: &Bucket, last: u64) -> Result<u64, EngineError> {
        let settings = bucket.settings();
        let Some(kept) = settings.markers_kept() else { return Ok(settings.first_revision) };
        let now = self.clock.now();
        if settings.created.saturating_add(kept) > now || last < settings.first_revision {
            return Ok(settings.first_revision);
        }
        let micros = u64::try_from(kept.as_micros()).unwrap_or(u64::MAX);
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(micros));
        Ok(self.first_since(bucket, since).await?.unwrap_or(last + 1))
    }
}
