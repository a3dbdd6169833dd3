use futures_util::{StreamExt, stream};
use pleach_contract::key::{AccessPath, Between, Grammar, Segment, Value};
use pleach_engine::{
    Direction, Entry, KeyRange, PAGE_ENTRIES_MAX, PageToken, Revision, ScanQuery, Selection,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::KvError;
use super::keyspace::Keyspace;
use super::read::Read;

/// How many entries a page of a scan has, if nothing else was asked for.
pub const SCAN_LIMIT_DEFAULT: usize = 100;

/// How many values of older versions of a page are upgraded at once.
const UPGRADES_AT_ONCE: usize = 64;

/// Which entries of an access path, and how many.
#[derive(Clone, Debug)]
pub struct QueryOptions<'v> {
    /// Which values of the path's range.
    pub between: Between<'v>,
    /// In which order.
    pub direction: Direction,
    /// How many at most; as many as the access path allows, if it is none.
    pub limit: Option<usize>,
    /// Goes on where the page that returned this token ended, on the same snapshot.
    pub page: Option<PageToken>,
}

impl Default for QueryOptions<'_> {
    fn default() -> Self {
        Self { between: Between::All, direction: Direction::Forward, limit: None, page: None }
    }
}

/// Some of the entries that a query asked for.
#[derive(Debug)]
pub struct QueryPage<T> {
    /// The entries, in the order of the query. One that is not what the contract says is an error in its place.
    pub entries: Vec<Result<Read<T>, KvError>>,
    /// The snapshot they were read from.
    pub revision: Revision,
    /// What to ask with for the rest; none if this was all. A page can be short, even empty, and not the last.
    pub next: Option<PageToken>,
}

impl<T: Serialize + DeserializeOwned> Keyspace<T> {
    /// The first page of an access path: entries whose keys have the values `given`, in the order of the path.
    ///
    /// # Errors
    /// If there is no such path, what is wrong with a value, or what the engine could not do.
    pub async fn query(&self, access: &str, given: &[Value<'_>]) -> Result<QueryPage<T>, KvError> {
        self.query_with(access, given, QueryOptions::default()).await
    }

    /// [`Keyspace::query`], with options.
    ///
    /// # Errors
    /// Those of [`Keyspace::query`]; and if the page is longer than the path allows, or its token of another query.
    pub async fn query_with(
        &self,
        access: &str,
        given: &[Value<'_>],
        options: QueryOptions<'_>,
    ) -> Result<QueryPage<T>, KvError> {
        let declared = self.resource.access(self.index, access)?;
        let limit = options.limit.unwrap_or(declared.limit);
        if limit == 0 || limit > declared.limit {
            let access = access.to_owned();
            return Err(KvError::PageLimit { access, asked: limit, limit: declared.limit });
        }
        self.page(&declared.path, given, limit, options).await
    }

    /// A page of the whole keyspace, in the order of its keys: for work that has to see every entry.
    ///
    /// # Errors
    /// What is wrong with the options, or what the engine could not do.
    pub async fn scan(&self, options: QueryOptions<'_>) -> Result<QueryPage<T>, KvError> {
        let limit = options.limit.unwrap_or(SCAN_LIMIT_DEFAULT);
        self.page(&AccessPath::all(), &[], limit, options).await
    }

    async fn page(
        &self,
        path: &AccessPath,
        given: &[Value<'_>],
        limit: usize,
        options: QueryOptions<'_>,
    ) -> Result<QueryPage<T>, KvError> {
        let QueryOptions { between, direction, limit: _, page } = options;
        let selection = match self.compiled().grammar() {
            Some(grammar) => self.selection(grammar, path, given, &between)?,
            None => Selection::all(),
        };
        let limit = limit.min(PAGE_ENTRIES_MAX);
        let query = ScanQuery { selection, direction, limit, keys_only: false, page };
        let page = self.resource.engine().scan(self.resource.bucket(), query).await?;
        // Keys of other keyspaces can lie between those that were asked for.
        let ours = page.entries.into_iter().filter(|entry| self.has(&entry.key));
        // Side by side, so that what is upgraded on the way is committed in groups.
        let entries = stream::iter(ours).map(|entry| self.read_entry(entry));
        let entries = entries.buffered(UPGRADES_AT_ONCE).collect().await;
        Ok(QueryPage { entries, revision: page.revision, next: page.next })
    }

    async fn read_entry(&self, entry: Entry) -> Result<Read<T>, KvError> {
        match self.resource.decode(self.index, entry)? {
            // One that was deleted meanwhile is still the value of this snapshot.
            Read::MigrationRequired(old) if self.hook.is_some() => {
                let before = old.clone();
                Ok(self.lazily(old).await?.unwrap_or(Read::MigrationRequired(before)))
            }
            read => Ok(read),
        }
    }
}

impl<T> Keyspace<T> {
    /// The keys of an access path: its range, and a filter that leaves out most of what is not of this keyspace.
    fn selection(
        &self,
        grammar: &Grammar,
        path: &AccessPath,
        given: &[Value<'_>],
        between: &Between<'_>,
    ) -> Result<Selection, KvError> {
        let wrong = |problem: pleach_contract::key::Problem| KvError::Key {
            keyspace: self.name().to_owned(),
            source: problem.into(),
        };
        let range: KeyRange =
            grammar.access(path).and_then(|access| access.range(given, between)).map_err(wrong)?;
        let value_of = |name: &str| given.get(path.equal().position(|equal| equal == name)?).cloned();
        let values: Vec<_> = grammar.named().map(|segment| segment.name().and_then(value_of)).collect();
        // Keys with and without a rest take two filters; then the range has to do.
        let mut filters = grammar.filters(&values).map_err(wrong)?;
        let filter = if filters.len() == 1 { filters.pop() } else { None };
        Ok(Selection { range, filter })
    }
}

/// The names of the segments of a grammar before the one called `name`.
pub(super) fn names_before<'g>(grammar: &'g Grammar, name: &str) -> Vec<&'g str> {
    grammar.named().filter_map(Segment::name).take_while(|segment| *segment != name).collect()
}
