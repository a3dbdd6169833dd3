mod derived;
mod error;
mod link;
mod position;

use std::fmt;

use futures_util::FutureExt;
use pleach_engine::{
    Change, ConsumerName, ConsumerStart, EngineError, Expectation, Revision, WatchEvent, WatchStart,
};

use crate::{Bucket, Error, IntoConsumerName, Watch};
pub use derived::Derived;
pub use error::ProjectionError;
use link::{Link, Writer};
pub(crate) use position::{POSITION_PREFIX, Position, projection_of};

/// The most changes whose writes are committed together.
const GROUP_CHANGES_MAX: usize = 200;

/// How far, in revisions, the consumer that holds the feed may be behind the position while there is more to do.
const ACK_LAG_MAX: u64 = 1_000;

/// What a reducer returns: nothing, or whatever it failed with.
pub type Reduced = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Says what becomes of derived entries when the source changes. See [`Projection`] for what it can rely on.
pub trait Reducer: Send {
    /// Reads and writes the derived entries as `change` demands. Nothing it writes is kept if it fails.
    fn reduce(&mut self, change: &Change, derived: &mut Derived) -> impl Future<Output = Reduced> + Send;
}

/// A bucket derived from another: every change of the source, reduced into writes to the target, exactly once.
///
/// The reducer is given a change and the [derived entries](Derived), and says what they become. What it
/// writes is committed in one batch with the position of the projection, which is an entry of the target,
/// `_kv.projection.NAME`, and only if that entry is still the one this projection wrote last. So a crash
/// anywhere leaves both or neither: a change that is replayed is never applied twice, and of two programs that
/// run the same projection the slower stops with [`ProjectionError::Overtaken`].
///
/// **The target belongs to the projection**: one projection a target, and every key of it that is not
/// reserved. It must have no TTL.
///
/// **It begins with what is there.** A new projection, and one that is [rebuilt](Projection::rebuild), deletes
/// what the target holds, is given the latest value of every key of the source as a put, in no promised
/// order, and then every later change. If that is interrupted, it begins again. The older changes of a
/// key are not seen, so what the reducer derives must follow from the derived entries and the change alone, and
/// be the same however often a key was written before: where an overwrite must not count twice, remember in the
/// target what the key has contributed.
///
/// **It holds the feed** of the source by a consumer `projection-TARGET`, which follows behind the position.
/// Within the engine's bound: a projection that stands still for longer is [`ProjectionError::Behind`] and must be
/// rebuilt.
///
/// ```
/// use pleach::{Change, Derived, Reduced, Reducer, Store};
///
/// /// Who has bought something, with the latest order of each.
/// struct Buyers;
///
/// impl Reducer for Buyers {
///     async fn reduce(&mut self, change: &Change, derived: &mut Derived) -> Reduced {
///         if change.entry.op.is_put() {
///             let buyer = str::from_utf8(&change.entry.value)?;
///             derived.put(buyer, change.entry.key.as_str())?;
///         }
///         Ok(())
///     }
/// }
///
/// # pollster::block_on(async {
/// let store = Store::in_memory();
/// let (orders, buyers) = (store.create_bucket("orders").await?, store.create_bucket("buyers").await?);
/// orders.put("order.1", "ann").await?;
///
/// let mut projection = orders.project("buyers", &buyers, Buyers).await?;
/// projection.catch_up().await?; // or run(), which goes on for ever
/// orders.put("order.2", "ann").await?;
/// projection.catch_up().await?;
/// assert_eq!(buyers.get("ann").await?.unwrap().value, "order.2");
/// # Ok::<_, pleach::Error>(()) }).unwrap();
/// ```
pub struct Projection<R> {
    link: Link,
    reducer: R,
    /// None until it runs, and after it has failed: then the position in the target says where to go on.
    session: Option<Session>,
}

/// How far a rebuild has come. What is written meanwhile is not counted in the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Entries deleted from the target or read from the source.
    pub done: u64,
    /// How many there were of both when it began.
    pub total: u64,
}

/// A place in the feed of the source, and what is on its way to the target.
#[derive(Debug)]
struct Session {
    watch: Watch,
    writer: Writer,
    /// The first revision that the consumer has not acknowledged.
    held: Revision,
}

impl Bucket {
    /// Projects this bucket into `target`, which from then on belongs to the projection.
    ///
    /// # Errors
    /// [`Error::ConsumerName`] for text that is no name; [`ProjectionError::IntoItself`] and
    /// [`ProjectionError::TargetTaken`]; `InvalidConfig` for a target with a TTL; or what the engine could not do.
    pub async fn project<R: Reducer>(
        &self,
        name: impl IntoConsumerName,
        target: &Self,
        reducer: R,
    ) -> Result<Projection<R>, Error> {
        let link = Link::new(name.into_consumer_name()?, self, target).await?;
        Ok(Projection { link, reducer, session: None })
    }
}

impl<R: Reducer> Projection<R> {
    /// Its name.
    pub fn name(&self) -> &ConsumerName {
        &self.link.name
    }

    /// The first revision of the source that is not applied; none before it was run, and while it is being
    /// rebuilt.
    ///
    /// # Errors
    /// [`ProjectionError::Position`], or what the engine could not do.
    pub fn position(&self) -> impl Future<Output = Result<Option<Revision>, Error>> + Send {
        self.link.position().map(|found| Ok(found?.0))
    }

    /// Applies every change, as they come, until it must stop; returns why.
    ///
    /// Dropping it is safe at any time. Run again, it goes on after what was committed.
    pub async fn run(&mut self) -> Error {
        loop {
            if let Err(error) = self.follow(Revision::new(u64::MAX)).await {
                return error;
            }
        }
    }

    /// Applies every change that was committed before this was called.
    ///
    /// # Errors
    /// A [`ProjectionError`], or what the engine could not do. What was applied before is committed or will
    /// be applied again, never both.
    pub async fn catch_up(&mut self) -> Result<(), Error> {
        let newest = self.link.source.info().await?.last_revision;
        self.follow(newest).await
    }

    /// Derives everything anew from the latest values of the source, and tells `progress` of it. Until it is
    /// done, the target is incomplete.
    ///
    /// # Errors
    /// Those of [`Projection::catch_up`]. Whoever runs the projection next begins the rebuild again.
    pub async fn rebuild(&mut self, mut progress: impl FnMut(Progress) + Send) -> Result<(), Error> {
        self.session = None;
        let expect = self.link.expect().await?;
        self.session = Some(self.load(expect, &mut progress).await?);
        Ok(())
    }

    /// Applies changes up to and including `until`.
    async fn follow(&mut self, until: Revision) -> Result<(), Error> {
        // It is put back only if all went well: otherwise the position in the target is what counts.
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.open().await?,
        };
        while session.writer.next.is_none_or(|next| next <= until) {
            let change = match session.watch.next_change().now_or_never() {
                Some(change) => change,
                None => {
                    self.link.settle(&mut session).await?;
                    session.watch.next_change().await
                }
            };
            let change = change.map_err(|error| self.link.behind(error))?.ok_or(EngineError::Closed)?;
            self.apply(&mut session.writer, &change).await?;
            session.writer.next = Some(change.entry.revision.next());
            if session.writer.changes >= GROUP_CHANGES_MAX {
                self.link.commit(&mut session.writer).await?;
                self.link.acknowledge(&mut session, ACK_LAG_MAX).await?;
            }
        }
        self.link.settle(&mut session).await?;
        self.session = Some(session);
        Ok(())
    }

    /// Goes on where the position in the target says, or begins.
    async fn open(&mut self) -> Result<Session, Error> {
        let (next, expect) = self.link.position().await?;
        let Some(next) = next else { return self.load(expect, &mut |_| ()).await };
        let held = self.link.hold(ConsumerStart::Revision(next)).await?;
        let watch = self.link.watch(WatchStart::Revision(next)).await?;
        let writer = Writer { next: Some(next), ..self.link.writer(expect) };
        Ok(Session { watch, writer, held })
    }

    /// Derives everything anew. The order of the steps matters: first the position says that this is under
    /// way, so that whoever comes after a crash begins again; then the feed is held, so that it is still there
    /// when the latest values have been read.
    async fn load(
        &mut self,
        expect: Expectation,
        progress: &mut (impl FnMut(Progress) + Send),
    ) -> Result<Session, Error> {
        let mut writer = self.link.writer(expect);
        self.link.commit(&mut writer).await?;
        let held = self.link.hold_from_now().await?;
        let total = self.link.entries().await?;
        let mut told = Progress { done: 0, total };
        let mut tell = || {
            progress(told);
            told.done += 1;
        };
        tell();

        let mut keys = self.link.target.keys(">")?;
        while let Some(key) = keys.next().await? {
            if !key.is_reserved() {
                writer.derived.delete(key)?;
                self.link.keep(&mut writer).await?;
            }
            tell();
        }
        let mut watch = self.link.watch(WatchStart::Latest).await?;
        let snapshot = loop {
            let event = watch.next().await.map_err(|error| self.link.behind(error))?;
            match event.ok_or(EngineError::Closed)? {
                WatchEvent::Change(change) => self.apply(&mut writer, &change).await?,
                WatchEvent::InitialDone { revision } => break revision,
            }
            tell();
        };
        writer.next = Some(snapshot.next());
        self.link.commit(&mut writer).await?;
        Ok(Session { watch, writer, held })
    }

    /// Has the reducer say what becomes of the derived entries.
    async fn apply(&mut self, writer: &mut Writer, change: &Change) -> Result<(), Error> {
        // The stores' own keys are no data, such as the position of a projection into the source.
        if !change.entry.key.is_reserved() {
            if let Err(source) = self.reducer.reduce(change, &mut writer.derived).await {
                writer.derived.discard();
                if writer.changes > 0 {
                    self.link.commit(writer).await?;
                }
                let (projection, revision) = (self.link.name.clone(), change.entry.revision);
                return Err(ProjectionError::Reducer { projection, revision, source }.into());
            }
            self.link.keep(writer).await?;
        }
        writer.changes += 1;
        Ok(())
    }
}

impl<R> fmt::Debug for Projection<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, target) = (self.link.source.name(), self.link.target.name());
        let mut shown = f.debug_struct("Projection");
        shown.field("name", &self.link.name).field("source", source).field("target", target);
        shown.finish_non_exhaustive()
    }
}
