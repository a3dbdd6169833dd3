use std::iter::once;

use pleach_engine::{
    ConsumerName, ConsumerStart, EngineError, Entry, Expectation, Key, Operation, Revision, Selection,
    WatchStart,
};
use pleach_stores::Keeper;

use super::position::{POSITION_PREFIX, Position, projection_of};
use super::{Derived, ProjectionError, Session};
use crate::{Bucket, Error, IntoConsumerName, Watch, WatchOptions, WriteError};

/// Ties a source to a target: what a projection does to either, except reducing.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: ConsumerName,
    pub(super) source: Bucket,
    pub(super) target: Bucket,
    /// Holds the feed of the source.
    consumer: ConsumerName,
    /// Where the position is in the target.
    key: Key,
}

/// What is on its way to the target.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) derived: Derived,
    /// What the position must be for the next commit to hold.
    pub(super) expect: Expectation,
    /// The position after what is in `derived`; none during a rebuild.
    pub(super) next: Option<Revision>,
    /// How many changes are yet to be committed.
    pub(super) changes: usize,
}

impl Link {
    pub(super) async fn new(name: ConsumerName, source: &Bucket, target: &Bucket) -> Result<Self, Error> {
        let same_store = std::ptr::addr_eq(source.engine(), target.engine());
        if same_store && source.name() == target.name() {
            return Err(ProjectionError::IntoItself { bucket: source.name().clone() }.into());
        }
        if target.config().await?.ttl.is_some() {
            let reason = "the target of a projection must keep its entries".into();
            return Err(EngineError::InvalidConfig { field: "ttl", reason }.into());
        }
        let consumer = format!("projection-{}", target.name()).into_consumer_name()?;
        let key = Key::parse_reserved(format!("{POSITION_PREFIX}{name}")).map_err(Error::Key)?;
        // What it derives passes the guard of a contract like anything else; only its position is its own.
        let (source, target) = (source.without_cache(), target.without_cache().keeping(Keeper::Projections));
        let link = Self { name, source, target, consumer, key };
        link.check_owner().await?;
        Ok(link)
    }

    /// What the target says of how far it is, and what must still be there when that is committed anew.
    pub(super) async fn position(&self) -> Result<(Option<Revision>, Expectation), Error> {
        let entry = self.entry().await?;
        let position = entry.as_ref().map(|entry| self.decode(entry)).transpose()?;
        Ok((position.and_then(|position| position.next), expected(entry.as_ref())))
    }

    /// What must still be there when the position is committed, whatever it says.
    pub(super) async fn expect(&self) -> Result<Expectation, Error> {
        Ok(expected(self.entry().await?.as_ref()))
    }

    /// Adds what a change writes to what is to be committed, and commits what came before if that is too much.
    pub(super) async fn keep(&self, writer: &mut Writer) -> Result<(), Error> {
        if !writer.derived.fits() {
            self.commit(writer).await?;
        }
        writer.derived.join();
        Ok(())
    }

    /// Commits the writes of all changes so far in one batch with the position after them.
    pub(super) async fn commit(&self, writer: &mut Writer) -> Result<(), Error> {
        let position = Position { source: self.source.name().to_string(), next: writer.next };
        let position = Operation::put(self.key.clone(), position.encode()).expecting(writer.expect);
        let batch = once(position).chain(writer.derived.take_group()).collect();
        match self.target.commit(batch).await {
            Ok(committed) => {
                writer.expect = Expectation::Revision(committed.first);
                writer.changes = 0;
                Ok(())
            }
            // Nothing else in the batch expects anything.
            Err(WriteError::Conflict(_)) => {
                let (projection, target) = (self.name.clone(), self.target.name().clone());
                Err(ProjectionError::Overtaken { projection, target }.into())
            }
            Err(WriteError::Failed(error)) => Err(error),
        }
    }

    /// Brings everything up to date, for there may be nothing to do for a while.
    pub(super) async fn settle(&self, session: &mut Session) -> Result<(), Error> {
        if session.writer.changes > 0 {
            self.commit(&mut session.writer).await?;
        }
        self.acknowledge(session, 0).await
    }

    /// Lets go of the feed behind the position, which has been committed, if that is more than `lag` revisions.
    pub(super) async fn acknowledge(&self, session: &mut Session, lag: u64) -> Result<(), Error> {
        let Some(next) = session.writer.next else { return Ok(()) };
        if next.get() <= session.held.get().saturating_add(lag) {
            return Ok(());
        }
        let done = Revision::new(next.get() - 1);
        self.source.engine().acknowledge(self.source.name(), &self.consumer, done).await?;
        session.held = next;
        Ok(())
    }

    /// Creates the consumer that holds the feed of the source, unless it is there.
    pub(super) async fn hold(&self, start: ConsumerStart) -> Result<Revision, Error> {
        let created = self.source.engine().create_consumer(self.source.name(), &self.consumer, start).await;
        Ok(created.map_err(|error| self.behind(error.into()))?.next)
    }

    /// Moves that consumer past everything there is.
    pub(super) async fn hold_from_now(&self) -> Result<Revision, Error> {
        self.hold(ConsumerStart::Now).await?;
        let (source, start) = (self.source.name(), ConsumerStart::Now);
        Ok(self.source.engine().reset_consumer(source, &self.consumer, start).await?.next)
    }

    /// How many entries the target and the source have.
    pub(super) async fn entries(&self) -> Result<u64, Error> {
        let all = Selection::all;
        Ok(self.target.count(all()).await? + self.source.count(all()).await?)
    }

    pub(super) async fn watch(&self, start: WatchStart) -> Result<Watch, Error> {
        let options = WatchOptions { start, ..WatchOptions::default() };
        self.source.watch_with(options).await.map_err(|error| self.behind(error))
    }

    pub(super) fn writer(&self, expect: Expectation) -> Writer {
        Writer { derived: Derived::new(self.target.clone()), expect, next: None, changes: 0 }
    }

    async fn entry(&self) -> Result<Option<Entry>, Error> {
        self.target.get(&self.key).await
    }

    fn decode(&self, entry: &Entry) -> Result<Position, Error> {
        Position::decode(&entry.value).map_err(|source| {
            let (projection, target) = (self.name.clone(), self.target.name().clone());
            ProjectionError::Position { projection, target, source }.into()
        })
    }

    /// Refuses a target that belongs to another projection, or to one of another source.
    async fn check_owner(&self) -> Result<(), Error> {
        let mut positions = self.target.scan(Selection::prefix(POSITION_PREFIX))?;
        while let Some(entry) = positions.next().await? {
            // One of ours that cannot be read is reported when it is run, and replaced when it is rebuilt.
            let of = Position::decode(&entry.value).map(|position| position.source).ok();
            let is_ours = of.as_ref().is_none_or(|of| of == self.source.name().as_str());
            if entry.key == self.key && is_ours {
                continue;
            }
            let owner = projection_of(&entry.key).into_consumer_name()?;
            let (target, of) = (self.target.name().clone(), of.unwrap_or_default());
            return Err(ProjectionError::TargetTaken { target, owner, of }.into());
        }
        Ok(())
    }

    /// A projection whose watch is told `Compacted` has a name for that.
    pub(super) fn behind(&self, error: Error) -> Error {
        match error {
            Error::Engine(EngineError::Compacted { oldest }) => {
                ProjectionError::Behind { projection: self.name.clone(), oldest }.into()
            }
            other => other,
        }
    }
}

/// What the position must still be when this is committed.
fn expected(position: Option<&Entry>) -> Expectation {
    position.map_or(Expectation::Absent, |entry| Expectation::Revision(entry.revision))
}
