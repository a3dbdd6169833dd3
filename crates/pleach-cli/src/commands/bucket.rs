use std::num::NonZeroU8;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use pleach::{BucketConfig, BucketInfo, BucketName, Capabilities, Compression, Durability, Error};
use serde::Serialize;

use super::{duration, name_and_value, records};
use crate::app::App;
use crate::ask::ask;
use crate::failure::Problem;
use crate::record::{BucketObject, Event, moment};
use crate::size::Size;
use crate::table::{Column, Table};
use crate::text::counted;

/// The commands on buckets.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  pleach kv bucket add carts --history 5 --ttl 30days\n  pleach kv bucket ls\n  \
                  pleach kv bucket edit carts --history 10"
)]
pub(crate) enum BucketCommand {
    Add(AddArgs),
    Ls(LsArgs),
    Info(InfoArgs),
    Edit(EditArgs),
    Rm(RmArgs),
}

/// Creates a bucket, and the store if there is none
#[derive(Args, Debug)]
#[command(
    after_help = "Without options: one record a key, no TTL, values up to 1 MiB, synced, not compressed, markers\n\
                  for 7 days, changes for as long as the store says. On NATS buffered, and values up to what the\n\
                  servers take.\n\
                  A bucket that exists with this very configuration is fine; with another, the exit code is 4.\n\n\
                  Examples:\n  pleach kv bucket add carts\n  pleach kv bucket add sessions --ttl 1h --durability buffered\n  \
                  pleach kv bucket add images --value-max 16MiB --history 3 --meta team=web"
)]
pub(crate) struct AddArgs {
    /// The name of the bucket: letters, digits, _ and -
    bucket: BucketName,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Lists the buckets
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  pleach kv bucket ls\n  pleach --json kv bucket ls")]
pub(crate) struct LsArgs {}

/// Describes a bucket
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  pleach kv bucket info carts\n  pleach --json kv bucket info carts")]
pub(crate) struct InfoArgs {
    /// The bucket
    bucket: BucketName,
}

/// Changes the given fields of a bucket's configuration
#[derive(Args, Debug)]
#[command(
    after_help = "What is not given stays as it is. The new configuration holds at once for everything in the\n\
                  bucket: a shorter history forgets older records, a shorter TTL expires older values.\n\n\
                  Examples:\n  pleach kv bucket edit carts --history 10\n  pleach kv bucket edit sessions --ttl none\n  \
                  pleach kv bucket edit images --meta team=design --unset-meta owner"
)]
pub(crate) struct EditArgs {
    /// The bucket
    bucket: BucketName,

    #[command(flatten)]
    config: ConfigArgs,

    /// Removes a metadata name; may be given several times
    #[arg(long, value_name = "NAME")]
    unset_meta: Vec<String>,
}

/// Deletes a bucket with everything in it
#[derive(Args, Debug)]
#[command(after_help = "Asks first on a terminal; elsewhere, --yes is needed.\n\n\
                  Examples:\n  pleach kv bucket rm carts\n  pleach kv bucket rm carts --yes")]
pub(crate) struct RmArgs {
    /// The bucket
    bucket: BucketName,

    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

/// The fields of a configuration, as far as they are given.
#[derive(Args, Clone, Debug)]
struct ConfigArgs {
    /// How many records of each key are kept, 1 to 64
    #[arg(long, value_name = "N", value_parser = records)]
    history: Option<NonZeroU8>,

    /// Values are gone after this time, such as 1h or 30days; `none` for never
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    ttl: Option<Setting<Duration>>,

    /// The largest value, such as 64KiB or 16MiB
    #[arg(long, value_name = "SIZE")]
    value_max: Option<Size>,

    /// Whether a commit is on disk before it is acknowledged
    #[arg(long, value_name = "HOW", value_enum)]
    durability: Option<DurabilityArg>,

    /// How values are compressed
    #[arg(long, value_name = "HOW", value_enum)]
    compression: Option<CompressionArg>,

    /// The marker of a deleted or expired key is kept for this time at least; or `forever`
    #[arg(long, value_name = "TIME", value_parser = marker_ttl)]
    marker_ttl: Option<Setting<Duration>>,

    /// Changes are kept for this time at least, for watches that resume; `default` leaves it to the store
    #[arg(long, value_name = "TIME", value_parser = feed_time)]
    feed_time: Option<Setting<Duration>>,

    /// Changes are kept up to this size at least, unless --feed-time lets them go before; `default` leaves it
    /// to the store
    #[arg(long, value_name = "SIZE", value_parser = feed_bytes)]
    feed_bytes: Option<Setting<Size>>,

    /// A fact about the bucket; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    meta: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DurabilityArg {
    Synced,
    Buffered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressionArg {
    None,
    Lz4,
}

/// A field that may be given as having no value, by a word for that.
#[derive(Clone, Copy, Debug)]
struct Setting<T>(Option<T>);

impl<T> Setting<T> {
    fn parse(text: &str, none: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Self, String> {
        if text == none { Ok(Self(None)) } else { read(text).map(|value| Self(Some(value))) }
    }
}

fn ttl(text: &str) -> Result<Setting<Duration>, String> {
    Setting::parse(text, "none", duration)
}

fn marker_ttl(text: &str) -> Result<Setting<Duration>, String> {
    Setting::parse(text, "forever", duration)
}

fn feed_time(text: &str) -> Result<Setting<Duration>, String> {
    Setting::parse(text, "default", duration)
}

fn feed_bytes(text: &str) -> Result<Setting<Size>, String> {
    Setting::parse(text, "default", str::parse)
}

impl ConfigArgs {
    /// Whether no field is given.
    fn is_empty(&self) -> bool {
        let Self {
            history,
            ttl,
            value_max,
            durability,
            compression,
            marker_ttl,
            feed_time,
            feed_bytes,
            meta,
        } = self;
        let entries = history.is_none() && ttl.is_none() && value_max.is_none();
        let storage = durability.is_none() && compression.is_none();
        let retention = marker_ttl.is_none() && feed_time.is_none() && feed_bytes.is_none();
        entries && storage && retention && meta.is_empty()
    }

    /// `config` with the given fields changed.
    fn change(self, mut config: BucketConfig) -> anyhow::Result<BucketConfig> {
        if let Some(history) = self.history {
            config.history = history;
        }
        if let Some(Setting(ttl)) = self.ttl {
            config.ttl = ttl;
        }
        if let Some(Setting(marker_ttl)) = self.marker_ttl {
            config.marker_ttl = marker_ttl;
        }
        if let Some(Setting(feed_time)) = self.feed_time {
            config.feed_time = feed_time;
        }
        if let Some(Setting(feed_bytes)) = self.feed_bytes {
            config.feed_bytes = feed_bytes.map(|Size(bytes)| bytes);
        }
        if let Some(Size(bytes)) = self.value_max {
            let limit = Capabilities::complete("any engine").value_bytes_max;
            let fits = u32::try_from(bytes).ok().filter(|bytes| (1..=limit).contains(bytes));
            config.value_bytes_max = fits.ok_or_else(|| {
                let problem = Problem::invalid(format!("the largest value cannot have {}", Size(bytes)));
                problem.help(format!("give --value-max a size from 1 B to {}", Size(limit.into())))
            })?;
        }
        match self.durability {
            Some(DurabilityArg::Synced) => config.durability = Durability::Synced,
            Some(DurabilityArg::Buffered) => config.durability = Durability::Buffered,
            None => {}
        }
        match self.compression {
            Some(CompressionArg::None) => config.compression = Compression::None,
            Some(CompressionArg::Lz4) => config.compression = Compression::Lz4,
            None => {}
        }
        config.metadata.extend(self.meta);
        Ok(config)
    }
}

impl BucketCommand {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::Add(args) => args.run(app).await,
            Self::Ls(args) => args.run(app).await,
            Self::Info(args) => args.run(app).await,
            Self::Edit(args) => args.run(app).await,
            Self::Rm(args) => args.run(app).await,
        }
    }
}

impl AddArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        // What no engine takes shall not leave a new store behind.
        let wanted = self.config.clone().change(BucketConfig::default())?;
        wanted.check(&Capabilities::complete("any engine")).map_err(Error::Engine)?;
        let store = app.store_or_create().await?;
        let config = self.config.change(BucketConfig::plain(store.capabilities()))?;
        let info = store.create_bucket_with(&self.bucket, config).await?.info().await?;
        app.output.confirm(&BucketObject::full(&info), format!("bucket {} is ready", info.name))
    }
}

impl LsArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let buckets = app.store().await?.buckets().await?;
        if app.output.is_json() {
            return buckets.iter().try_for_each(|info| app.output.object(&BucketObject::full(info)));
        }
        if buckets.is_empty() {
            app.output.note("there are no buckets; create one with `pleach kv bucket add BUCKET`");
            return Ok(());
        }
        let mut table = Table::new([
            Column::Left("BUCKET"),
            Column::Right("HISTORY"),
            Column::Left("TTL"),
            Column::Right("VALUE MAX"),
            Column::Left("DURABILITY"),
            Column::Left("COMPRESSION"),
            Column::Right("REVISION"),
        ]);
        for BucketInfo { name, config, last_revision, .. } in buckets {
            table.row([
                name.to_string(),
                config.history.to_string(),
                ttl_text(config.ttl),
                Size(config.value_bytes_max.into()).to_string(),
                setting_text(config.durability),
                setting_text(config.compression),
                last_revision.to_string(),
            ]);
        }
        table.write(&mut app.output)
    }
}

impl InfoArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let status = app.bucket(&self.bucket).await?.status().await?;
        if app.output.is_json() {
            return app.output.object(&BucketObject::full(&status.info).entries(status.entries));
        }
        let BucketInfo { name, config, created, last_revision, feed_floor, .. } = status.info;
        let metadata = config.metadata.iter().map(|(name, value)| format!("{name}={value}"));
        let fields = [
            ("bucket", name.to_string()),
            ("entries", status.entries.to_string()),
            ("last revision", last_revision.to_string()),
            ("watch from", format!("revision {feed_floor}")),
            ("created", moment(created)),
            ("history", counted(config.history.get().into(), "record a key", "records a key")),
            ("ttl", ttl_text(config.ttl)),
            ("value max", Size(config.value_bytes_max.into()).to_string()),
            ("durability", setting_text(config.durability)),
            ("compression", setting_text(config.compression)),
            ("markers", config.marker_ttl.map_or("for ever".into(), |ttl| ttl_text(Some(ttl)))),
            ("feed time", config.feed_time.map(|time| ttl_text(Some(time))).unwrap_or_default()),
            ("feed bytes", config.feed_bytes.map(|bytes| Size(bytes).to_string()).unwrap_or_default()),
            ("metadata", metadata.collect::<Vec<_>>().join(", ")),
        ];
        let paint = app.output.paint();
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            app.output.line(format_args!("{} {value}", paint.bold(&format!("{name:<14}"))))?;
        }
        Ok(())
    }
}

impl EditArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        if self.config.is_empty() && self.unset_meta.is_empty() {
            let problem = Problem::invalid("there is nothing to change");
            return Err(problem.help("see what can be changed with `pleach kv bucket edit --help`").into());
        }
        let store = app.store().await?;
        let before = store.bucket(&self.bucket).await?.config().await?;
        let mut config = self.config.change(before.clone())?;
        for name in &self.unset_meta {
            config.metadata.remove(name);
        }
        let changed = before.differences(&config).join(", ");
        let changed = changed.replace("value_bytes_max", "value max").replace('_', " ");
        let info = store.update_bucket(&self.bucket, config).await?;
        let line = match changed.as_str() {
            "" => format!("bucket {} is as before", info.name),
            changed => format!("bucket {} has a new {changed}", info.name),
        };
        app.output.confirm(&BucketObject::full(&info), line)
    }
}

impl RmArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let bucket = app.bucket(&self.bucket).await?;
        if !self.yes {
            let entries = counted(bucket.status().await?.entries, "entry", "entries");
            confirmed(&format!("delete bucket {} with {entries} and all history?", self.bucket))?;
        }
        bucket.store().delete_bucket(&self.bucket).await?;
        let event = Event::new("bucket_deleted").bucket(&self.bucket);
        app.output.confirm(&event, format!("bucket {} is deleted", self.bucket))
    }
}

/// Asks a person; an error unless the answer is yes.
fn confirmed(question: &str) -> anyhow::Result<()> {
    match ask(question)? {
        Some(true) => Ok(()),
        Some(false) => Err(Problem::invalid("nothing was deleted").help("answer y to delete it").into()),
        None => {
            let problem = Problem::invalid(
                "deleting a bucket needs a confirmation, and there is no terminal to ask on",
            );
            Err(problem.help("add --yes if you are sure").into())
        }
    }
}

fn ttl_text(ttl: Option<Duration>) -> String {
    ttl.map_or_else(|| "none".into(), |ttl| humantime::format_duration(ttl).to_string())
}

/// A setting by the name it has in JSON, which a newer library may have more of.
fn setting_text(setting: impl Serialize) -> String {
    serde_json::to_value(setting).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
