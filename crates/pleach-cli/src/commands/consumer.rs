use std::str::FromStr;

use clap::{Args, Subcommand};
use pleach::{BucketName, ConsumerName, ConsumerStart, ConsumerStatus, Revision};
use serde::Serialize;

use crate::app::App;
use crate::record::{Event, JSON_VERSION, moment};
use crate::table::{Column, Table};

/// The commands on consumers.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "A consumer is a named place in the changes of a bucket. `pleach kv watch --consumer` and programs\n\
                  create one, go on where it was left, and acknowledge what they have done with.\n\n\
                  Examples:\n  pleach consumer ls orders\n  pleach consumer info orders mails\n  \
                  pleach consumer reset orders mails --to oldest"
)]
pub(crate) enum ConsumerCommand {
    Ls(LsArgs),
    Info(InfoArgs),
    Reset(ResetArgs),
    Rm(RmArgs),
}

/// Lists the consumers of a bucket
#[derive(Args, Debug)]
#[command(
    after_help = "LAG is how many changes are not acknowledged, at most: revisions of other buckets may lie between\n\
                  them.\n\nExamples:\n  pleach consumer ls orders\n  pleach --json consumer ls orders"
)]
pub(crate) struct LsArgs {
    /// The bucket
    bucket: BucketName,
}

/// Describes a consumer
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  pleach consumer info orders mails\n  pleach --json consumer info orders mails"
)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// Moves a consumer, forward or back
#[derive(Args, Debug)]
#[command(
    after_help = "Moved back, it gets changes again that it had acknowledged; moved forward, it never gets those in\n\
                  between. A projection is not moved by this: rebuild it.\n\n\
                  Examples:\n  pleach consumer reset orders mails --to oldest\n  \
                  pleach consumer reset orders mails --to now\n  pleach consumer reset orders mails --to 120"
)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    place: PlaceArgs,

    /// Where to: oldest (the oldest change that is kept), now (after the newest), or a revision
    #[arg(long, value_name = "WHERE")]
    to: To,
}

/// Deletes a consumer
#[derive(Args, Debug)]
#[command(after_help = "Its place is forgotten, and no changes are kept for it any more.\n\n\
                  Examples:\n  pleach consumer rm orders mails")]
pub(crate) struct RmArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// The consumer a command is about.
#[derive(Args, Debug)]
struct PlaceArgs {
    /// The bucket
    bucket: BucketName,

    /// The name of the consumer
    #[arg(value_name = "NAME")]
    consumer: ConsumerName,
}

#[derive(Clone, Copy, Debug)]
struct To(ConsumerStart);

impl FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(match text {
            "oldest" => ConsumerStart::Oldest,
            "now" => ConsumerStart::Now,
            revision => {
                let revision: Result<Revision, _> = revision.parse();
                ConsumerStart::Revision(revision.map_err(|_| "expected oldest, now or a revision")?)
            }
        }))
    }
}

/// A consumer as JSON.
#[derive(Debug, Serialize)]
struct ConsumerObject<'a> {
    v: u64,
    bucket: &'a str,
    consumer: &'a str,
    next: Revision,
    lag: u64,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed_before: Option<Revision>,
}

impl<'a> ConsumerObject<'a> {
    fn new(bucket: &'a BucketName, status: &'a ConsumerStatus) -> Self {
        let info = &status.info;
        Self {
            v: JSON_VERSION,
            bucket: bucket.as_str(),
            consumer: info.name.as_str(),
            next: info.next,
            lag: status.lag,
            created: info.created.to_string(),
            acknowledged: info.acknowledged.map(|time| time.to_string()),
            missed_before: status.missed_before,
        }
    }
}

impl ConsumerCommand {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::Ls(args) => args.run(app).await,
            Self::Info(args) => args.run(app).await,
            Self::Reset(args) => args.run(app).await,
            Self::Rm(args) => args.run(app).await,
        }
    }
}

impl LsArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let consumers = app.bucket(&self.bucket).await?.consumers().await?;
        if app.output.is_json() {
            let objects = consumers.iter().map(|status| ConsumerObject::new(&self.bucket, status));
            return objects.into_iter().try_for_each(|object| app.output.object(&object));
        }
        if consumers.is_empty() {
            let create = format!("`pleach kv watch {} --consumer NAME`", self.bucket);
            app.output
                .note(format_args!("bucket {} has no consumers; create one with {create}", self.bucket));
            return Ok(());
        }
        let mut table = Table::new([
            Column::Left("CONSUMER"),
            Column::Right("NEXT"),
            Column::Right("LAG"),
            Column::Left("ACKNOWLEDGED"),
        ]);
        for status in consumers {
            let (name, next) = (status.info.name.to_string(), status.info.next.to_string());
            table.row([name, next, status.lag.to_string(), acknowledged(&status)]);
        }
        table.write(&mut app.output)
    }
}

impl InfoArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let PlaceArgs { bucket, consumer } = self.place;
        let status = app.bucket(&bucket).await?.consumer(&consumer).await?;
        if app.output.is_json() {
            return app.output.object(&ConsumerObject::new(&bucket, &status));
        }
        let missed = status.missed_before.map(|oldest| format!("changes before revision {oldest}"));
        let fields = [
            ("consumer", consumer.to_string()),
            ("bucket", bucket.to_string()),
            ("next", format!("revision {}", status.info.next)),
            ("lag", status.lag.to_string()),
            ("missed", missed.unwrap_or_default()),
            ("created", moment(status.info.created)),
            ("acknowledged", acknowledged(&status)),
        ];
        let paint = app.output.paint();
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            app.output.line(format_args!("{} {value}", paint.bold(&format!("{name:<14}"))))?;
        }
        Ok(())
    }
}

impl ResetArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let (PlaceArgs { bucket, consumer }, To(start)) = (self.place, self.to);
        let status = app.bucket(&bucket).await?.reset_consumer(&consumer, start).await?;
        let line = format!("consumer {consumer} of bucket {bucket} goes on at revision {}", status.info.next);
        app.output.confirm(&ConsumerObject::new(&bucket, &status), line)
    }
}

impl RmArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let PlaceArgs { bucket, consumer } = self.place;
        app.bucket(&bucket).await?.delete_consumer(&consumer).await?;
        let event = Event::new("consumer_deleted").bucket(&bucket).consumer(&consumer);
        app.output.confirm(&event, format!("consumer {consumer} of bucket {bucket} is deleted"))
    }
}

/// When it last moved.
fn acknowledged(status: &ConsumerStatus) -> String {
    status.info.acknowledged.map_or_else(|| "never".into(), moment)
}
