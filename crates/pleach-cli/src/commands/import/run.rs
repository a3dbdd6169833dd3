use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use pleach::{Batch, Bucket, BucketConfig, BucketName, EngineError, Error, ErrorKind, Store};

use super::contracts::Restored;
use super::line::ImportedRecord;
use super::lines::{Lines, Place};
use super::state::{OpenWindow, State, StateFile};
use super::window::{Window, Work, rounds};
use super::{ImportArgs, feed};
use crate::app::App;
use crate::commands::export::with_suffix;
use crate::failure::Problem;
use crate::progress::Progress;
use crate::record::Event;
use crate::text::counted;

/// What is put after the name of the input for the name of its state file.
const STATE_SUFFIX: &str = ".import-state";

/// Imports the input.
pub(super) async fn run(args: ImportArgs, app: &mut App) -> anyhow::Result<()> {
    let source = Source::open(args.file.as_deref())?;
    let store = if args.create_buckets { app.store_or_create().await? } else { app.store().await? };
    let store = store.for_copies();
    let state_path =
        args.state.clone().or_else(|| source.path.as_deref().map(|path| with_suffix(path, STATE_SUFFIX)));
    let state_file = state_path.map(StateFile::new);
    let state = begin(state_file.as_ref(), app.place(), args.resume)?;
    let progress = Progress::bytes(source.bytes, &app.output);
    let mut lines = Lines::new(source.input);
    let contracts = Restored::read(&mut lines, &store, args.without_contracts)?;
    contracts.check(&args).await?;
    let mut import = Import {
        lines,
        store,
        state_file,
        state,
        create_buckets: args.create_buckets,
        bucket: None,
        contracts,
    };
    import.check_state_file(app);
    if import.state.done == Place::START {
        import.state.done = import.lines.place();
    }
    let begins_at = import.lines.place();
    import
        .lines
        .skip_to(import.state.done)
        .map_err(|error| changed_input(error, import.state_file.as_ref()))?;
    let resumed_at = import.lines.number();
    import.contracts.hold().await?;
    loop {
        match import.step().await {
            Ok(true) => progress.reach(import.lines.place().bytes),
            Ok(false) => break,
            Err(error) => {
                import.forget_unless_begun(args.resume, begins_at).await;
                return Err(error);
            }
        }
    }
    drop(progress);
    import.check_complete()?;
    import.contracts.put_in_force().await?;
    if resumed_at > begins_at.lines + 1 {
        app.output.note(format_args!("went on at line {resumed_at}"));
    }
    import.finish(app)
}

/// The input.
struct Source {
    input: Box<dyn BufRead>,
    path: Option<PathBuf>,
    bytes: Option<u64>,
}

impl Source {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self { input: Box::new(io::stdin().lock()), path: None, bytes: None });
        };
        let cannot_read = |error: io::Error| {
            let problem = Problem::unreadable(&error, format!("cannot read {}", path.display()));
            let help = "name a file that `pleach kv export` wrote, or nothing to read stdin";
            anyhow::Error::new(error).context(problem.help(help))
        };
        let file = File::open(path).map_err(cannot_read)?;
        let metadata = file.metadata().map_err(cannot_read)?;
        if metadata.is_dir() {
            return Err(cannot_read(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        // A pipe such as `<(zcat dump.gz)` has no size.
        let bytes = metadata.is_file().then_some(metadata.len());
        Ok(Self { input: Box::new(BufReader::new(file)), path: Some(path.to_owned()), bytes })
    }
}

/// The state to begin with.
fn begin(file: Option<&StateFile>, store: String, resume: bool) -> anyhow::Result<State> {
    let Some(file) = file else {
        if resume {
            let problem = Problem::invalid("an import from stdin can only go on with --state");
            return Err(problem.help("name the file that the interrupted import had as --state").into());
        }
        return Ok(State::new(store));
    };
    let shown = file.path().display();
    let unreadable = || {
        let problem = Problem::invalid(format!("cannot read the state of the import from {shown}"));
        problem.help("delete that file to import from the beginning")
    };
    match file.load().with_context(unreadable)? {
        None => Ok(State::new(store)),
        Some(_) if !resume => {
            let problem = Problem::new(ErrorKind::Conflict, "an import of this input was interrupted");
            let help = format!("go on with it by --resume, or delete {shown} to import from the beginning");
            Err(problem.help(help).into())
        }
        Some(state) if state.store != store => {
            let message = format!("the import that was interrupted went into {}", state.store);
            let help =
                format!("name that store with --store, or delete {shown} to import from the beginning");
            Err(Problem::invalid(message).help(help).into())
        }
        Some(state) => Ok(state),
    }
}

fn changed_input(error: anyhow::Error, file: Option<&StateFile>) -> anyhow::Error {
    let state = file.map_or_else(|| "the state file".into(), |file| file.path().display().to_string());
    let problem = Problem::invalid("this is not the input of the import that was interrupted");
    error
        .context(problem.help(format!("give the same input, or delete {state} to import from the beginning")))
}

/// An import on its way.
struct Import {
    lines: Lines<Box<dyn BufRead>>,
    store: Store,
    state_file: Option<StateFile>,
    state: State,
    create_buckets: bool,
    /// The bucket of the last window.
    bucket: Option<Bucket>,
    contracts: Restored,
}

impl Import {
    /// Imports the next window. False at the end of the input.
    async fn step(&mut self) -> anyhow::Result<bool> {
        let first_line = self.lines.number();
        let interrupted = self.state.window.take();
        let lines = interrupted.as_ref().map(|open| open.end.lines - self.state.done.lines);
        let window = match Window::take(&mut self.lines, lines) {
            Ok(window) => window,
            Err(error) => {
                self.save(interrupted)?;
                return Err(error.context(self.bad_line(first_line)));
            }
        };
        let end = self.lines.place();
        if interrupted.as_ref().is_some_and(|open| open.end != end) {
            let changed = anyhow::anyhow!("lines {first_line} to {} are not what they were", end.lines);
            return Err(changed_input(changed, self.state_file.as_ref()));
        }
        self.state.is_complete |= window.as_ref().is_some_and(|window| window.has_end);
        match window.map(|window| window.work) {
            None => return Ok(false),
            Some(Work::Nothing) => {}
            Some(Work::Bucket { bucket, config }) => self.find_or_create(&bucket, config).await?,
            Some(Work::Records { bucket, records }) => {
                self.commit(&bucket, records, interrupted).await.with_context(|| match end.lines {
                    last if last == first_line => format!("line {last} cannot be imported"),
                    last => format!("lines {first_line} to {last} cannot be imported"),
                })?
            }
        }
        self.state.done = end;
        self.state.window = None;
        Ok(true)
    }

    /// Refuses to put contracts in force over a part of their entries.
    fn check_complete(&mut self) -> anyhow::Result<()> {
        if self.contracts.count() == 0 || self.state.is_complete {
            return Ok(());
        }
        self.save(None)?;
        let problem = Problem::invalid("the input ends before the end of its export: entries are missing");
        Err(problem.help("give the whole export, and go on with --resume").into())
    }

    /// Commits a window round by round, or what an interruption left of it.
    async fn commit(
        &mut self,
        name: &BucketName,
        records: Vec<ImportedRecord>,
        interrupted: Option<OpenWindow>,
    ) -> anyhow::Result<()> {
        let now = interrupted.as_ref().map_or_else(|| self.store.now(), OpenWindow::now);
        // A store writes its own records itself: the positions of another one would be wrong here.
        let (reserved, records): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| record.key.is_reserved());
        self.state.tally.reserved += reserved.len() as u64;
        if records.is_empty() {
            return Ok(());
        }
        let expired = records.iter().filter(|record| record.has_expired(now)).count() as u64;
        let count = records.len() as u64 - expired;
        let bucket = self.bucket(name).await?;
        let rounds = rounds(records, now);
        let first = interrupted.as_ref().map_or(0, |open| open.round);
        for (index, round) in rounds.into_iter().enumerate().skip(first) {
            if let Some(open) = interrupted.as_ref().filter(|open| open.round == index)
                && feed::has_batch(&bucket, &round, open.after).await?
            {
                continue;
            }
            let after = bucket.info().await?.last_revision;
            self.save(Some(OpenWindow {
                end: self.lines.place(),
                now_micros: now.as_micros(),
                round: index,
                after,
            }))?;
            if let Err(error) = bucket.commit(round.into_iter().collect::<Batch>()).await {
                if index == 0 && matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotAllowed) {
                    // Nothing of the window was committed, so its lines may be corrected before it goes on.
                    self.save(None)?;
                }
                return Err(error.into());
            }
        }
        self.state.tally.records += count;
        self.state.tally.expired += expired;
        Ok(())
    }

    async fn bucket(&mut self, name: &BucketName) -> anyhow::Result<Bucket> {
        if let Some(bucket) = self.bucket.as_ref().filter(|bucket| bucket.name() == name) {
            return Ok(bucket.clone());
        }
        let bucket = match self.store.bucket(name).await {
            Err(Error::Engine(EngineError::BucketNotFound { .. })) if self.create_buckets => {
                self.store.create_bucket(name).await?
            }
            Err(error @ Error::Engine(EngineError::BucketNotFound { .. })) => {
                return Err(missing(name, error));
            }
            found => found?,
        };
        Ok(self.bucket.insert(bucket).clone())
    }

    /// Makes sure that a bucket is there. One that is there stays as it is.
    async fn find_or_create(&mut self, name: &BucketName, config: BucketConfig) -> anyhow::Result<()> {
        match self.store.bucket(name).await {
            Err(Error::Engine(EngineError::BucketNotFound { .. })) if self.create_buckets => {
                let config = self.contracts.config_of(name, config, self.store.capabilities());
                let created = self.store.create_bucket_with(name, config).await;
                created.map(|_| ()).map_err(|error| impossible(name, error))
            }
            Err(error @ Error::Engine(EngineError::BucketNotFound { .. })) => Err(missing(name, error)),
            found => Ok(found.map(|_| ())?),
        }
    }

    fn save(&mut self, window: Option<OpenWindow>) -> anyhow::Result<()> {
        self.state.window = window;
        let Some(file) = &self.state_file else { return Ok(()) };
        file.save(&self.state).with_context(|| {
            let message = format!("cannot write the state of the import to {}", file.path().display());
            Problem::new(ErrorKind::Unavailable, message)
                .help("free some space, or name another place with --state")
        })
    }

    /// Without a place for its state an import still works, but cannot go on after an interruption.
    fn check_state_file(&mut self, app: &App) {
        let Some(file) = &self.state_file else { return };
        if let Err(error) = file.save(&self.state) {
            let path = file.path().display();
            app.output
                .note(format_args!("this import cannot be resumed, as {path} cannot be written: {error}"));
            self.state_file = None;
        }
    }

    /// An import that failed before its first commit left nothing to go on with.
    async fn forget_unless_begun(&self, resumed: bool, begins_at: Place) {
        if resumed || self.state.done != begins_at || self.state.window.is_some() {
            return;
        }
        self.contracts.give_up().await;
        if let Some(file) = &self.state_file {
            // If it stays, the next import asks what to do about it.
            let _ = file.remove();
        }
    }

    fn bad_line(&self, number: u64) -> Problem {
        let message = format!("line {number} cannot be imported");
        match &self.state_file {
            Some(_) => Problem::invalid(message).help("correct that line, and go on with --resume"),
            None => {
                Problem::invalid(message).help("correct that line; everything before it has been imported")
            }
        }
    }

    fn finish(self, app: &mut App) -> anyhow::Result<()> {
        if let Some(file) = &self.state_file {
            file.remove().with_context(|| format!("cannot remove {}", file.path().display()))?;
        }
        let (tally, lines) = (self.state.tally, self.lines.place().lines);
        let event = Event::new("imported")
            .count("lines", lines)
            .count("records", tally.records)
            .count("expired", tally.expired)
            .count("reserved", tally.reserved);
        let mut line = format!("imported {}", counted(tally.records, "record", "records"));
        let contracts = self.contracts.count() as u64;
        let event = if contracts > 0 { event.count("contracts", contracts) } else { event };
        if contracts > 0 {
            line.push_str(&format!("; {} in force", counted(contracts, "contract is", "contracts are")));
        }
        if tally.expired > 0 {
            line.push_str(&format!("; {} had expired", tally.expired));
        }
        if tally.reserved > 0 {
            let skipped = counted(tally.reserved, "record", "records");
            app.output.note(format_args!(
                "{skipped} of the store that was exported, under keys that start with `_kv`, were skipped: \
                 a projection begins anew, and rebuilds what it derives"
            ));
        }
        app.output.confirm(&event, line)
    }
}

/// Another store may have kept the bucket in a way that this one cannot.
fn impossible(name: &BucketName, error: Error) -> anyhow::Error {
    if !matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Invalid) {
        return error.into();
    }
    let problem = Problem::new(error.kind(), format!("bucket {name} cannot be as the input says"));
    let help =
        format!("create it as this store can keep it, with `pleach kv bucket add {name}`, and import again");
    anyhow::Error::new(error).context(problem.help(help))
}

fn missing(name: &BucketName, error: Error) -> anyhow::Error {
    let problem = Problem::not_found(format!("the input has entries for bucket {name}"));
    let help = format!("add --create-buckets, or create it with `pleach kv bucket add {name}`");
    anyhow::Error::new(error).context(problem.help(help))
}
