use std::collections::BTreeMap;

use pleach_engine::{
    Batch, BucketName, CommitError, Expectation, Key, Operation, Revision, ScanQuery, Selection,
};
use pleach_stores::Keeper;

use crate::projection::{POSITION_PREFIX, Position, projection_of};
use crate::{Error, Store};

/// What became of a projection whose target was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedProjection {
    /// Its name.
    pub name: String,
    /// The bucket that it writes to, in the target store.
    pub bucket: BucketName,
    /// Whether it goes on with the next change. If not, it begins anew: it had not applied everything, or its source was
    /// not moved.
    pub goes_on: bool,
}

/// Moves the positions of projections whose source and target are both among `buckets`, which must be complete.
///
/// A position is a revision of the source, which is another in the target store. So only a projection that has applied
/// everything can go on there; others begin anew.
///
/// # Errors
/// What an engine could not do.
pub async fn move_projections(
    source: &Store,
    target: &Store,
    buckets: &BTreeMap<BucketName, BucketName>,
) -> Result<Vec<MovedProjection>, Error> {
    let (source, target) = (source.for_copies(), target.for_copies().keeping(Keeper::Projections));
    let mut moved = Vec::new();
    for (from, to) in buckets {
        for (key, position) in positions(&source, from).await? {
            let next = match &position {
                Some(position) => next_of(&source, &target, position, buckets).await?,
                None => None,
            };
            if let Some(position) = &next {
                // One that is there was moved before, and the projection may have gone on since.
                let put = Operation::put(key.clone(), position.encode()).expecting(Expectation::Absent);
                match target.engine().commit(to, Batch::from(put)).await {
                    Ok(_) | Err(CommitError::Conflict(_)) => {}
                    Err(CommitError::Engine(error)) => return Err(error.into()),
                }
            }
            let (name, bucket) = (projection_of(&key).to_owned(), to.clone());
            moved.push(MovedProjection { name, bucket, goes_on: next.is_some() });
        }
    }
    Ok(moved)
}

/// The positions that are kept in a bucket; none for one that cannot be read.
async fn positions(store: &Store, bucket: &BucketName) -> Result<Vec<(Key, Option<Position>)>, Error> {
    let mut query = ScanQuery { selection: Selection::prefix(POSITION_PREFIX), ..ScanQuery::default() };
    let mut found = Vec::new();
    loop {
        let page = store.engine().scan(bucket, query.clone()).await?;
        found.extend(page.entries.into_iter().map(|entry| {
            let position = Position::decode(&entry.value).ok();
            (entry.key, position)
        }));
        match page.next {
            Some(next) => query.page = Some(next),
            None => return Ok(found),
        }
    }
}

/// The position in the target store, if the projection has applied all that its source has.
async fn next_of(
    source: &Store,
    target: &Store,
    position: &Position,
    buckets: &BTreeMap<BucketName, BucketName>,
) -> Result<Option<Position>, Error> {
    let found = buckets.iter().find(|(from, _)| from.as_str() == position.source);
    let (Some((from, to)), Some(next)) = (found, position.next) else { return Ok(None) };
    if next <= source.engine().bucket(from).await?.last_revision {
        return Ok(None);
    }
    let newest: Revision = target.engine().bucket(to).await?.last_revision;
    Ok(Some(Position { source: to.to_string(), next: Some(newest.next()) }))
}
