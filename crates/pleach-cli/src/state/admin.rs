use clap::{Args, Subcommand};
use pleach::state::{
    DeleteOutcome, ERASE_ENTRIES_MAX, Inspected, LIST_LIMIT_MAX, ListOptions, Principal, StateAdmin, Target,
};
use pleach_contract::ContractId;
use serde_json::json;

use crate::app::App;
use crate::failure::Problem;
use crate::table::{Column, Table};
use crate::text;

/// The commands of administrators.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Every act is recorded with who, why, when and what, before anything is looked at or changed; `pleach\n\
                  state admin log` shows the record. No contract is needed: entries are shown as they are stored,\n\
                  damaged ones too.\n\n\
                  Exit codes: 0 if it was done; 2 if the command is against the rules; 3 if there is no entry.\n\n\
                  Examples:\n  \
                  pleach state admin find --who olga --why 'ticket 7' --of user:ann\n  \
                  pleach state admin export --who olga --why 'request of Ann' --of user:ann > ann.ndjson\n  \
                  pleach state admin erase --who olga --why 'request of Ann' --of user:ann\n  \
                  pleach state admin get --who olga --why audit --of user:ann --contract-id acme.notes@v1 drafts a"
)]
pub(crate) enum AdminCommand {
    Get(GetArgs),
    List(ListArgs),
    Delete(DeleteArgs),
    Find(FindArgs),
    Export(ExportArgs),
    Erase(EraseArgs),
    Log(LogArgs),
}

/// Prints an entry of anyone as it is stored
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 if it is there, 3 if not.\n\n\
                  Examples:\n  \
                  pleach state admin get --who olga --why audit --of user:ann --contract-id acme.notes@v1 drafts a")]
pub(crate) struct GetArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// The key, for a map
    key: Option<String>,
}

/// Lists entries of a map of anyone as they are stored
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  pleach state admin list --who olga --why audit --of user:ann --contract-id acme.notes@v1 drafts")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// How many entries to pass over
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,

    /// How many entries to print, at most 100
    #[arg(long, value_name = "N", default_value_t = LIST_LIMIT_MAX)]
    limit: usize,
}

/// Deletes an entry of anyone, damaged or not
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 if it was deleted, 3 if there was none.\n\n\
                  Examples:\n  \
                  pleach state admin delete --who eva --why audit --of user:ann --contract-id acme.notes@v1 drafts a")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// The key, for a map
    key: Option<String>,
}

/// Finds out where someone has state: under every contract, in every store
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  pleach state admin find --who olga --why 'ticket 7' --of user:ann")]
pub(crate) struct FindArgs {
    #[command(flatten)]
    whole: WholeArgs,
}

/// Prints someone's whole state, one JSON object a line
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  pleach state admin export --who olga --why 'request of Ann' --of user:ann > ann.ndjson")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    whole: WholeArgs,
}

/// Erases someone's whole state, with its history
#[derive(Args, Debug)]
#[command(
    after_help = "It goes on until nothing is left. If it is cut off, run it again: it goes on with what is left. What\n\
                  is erased cannot be read any more; its bytes leave the disk when the store is cleaned, see\n\
                  docs/state.md.\n\n\
                  Examples:\n  \
                  pleach state admin erase --who olga --why 'request of Ann' --of user:ann"
)]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    whole: WholeArgs,
}

/// Prints what administrators did, newest first
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  pleach state admin log\n  \
                  pleach --json state admin log")]
pub(crate) struct LogArgs {}

/// Who acts, and why.
#[derive(Args, Debug)]
struct ReasonArgs {
    /// Who acts
    #[arg(long, value_name = "NAME")]
    who: String,

    /// Why
    #[arg(long, value_name = "REASON")]
    why: String,
}

/// Someone's whole state.
#[derive(Args, Debug)]
struct WholeArgs {
    #[command(flatten)]
    reason: ReasonArgs,

    /// Whose state: `user:ID` or `device:ID`
    #[arg(long, value_name = "PRINCIPAL")]
    of: Principal,
}

/// A store of someone.
#[derive(Args, Debug)]
struct TargetArgs {
    #[command(flatten)]
    whole: WholeArgs,

    /// The id of the contract, such as acme.notes@v1
    #[arg(long, value_name = "ID", value_parser = contract_id)]
    contract_id: ContractId,

    /// The store
    #[arg(id = "state_store", value_name = "STORE")]
    store: String,
}

fn contract_id(text: &str) -> Result<ContractId, String> {
    ContractId::parse(text)
        .ok_or_else(|| "expected dotted words and a major version, such as acme.notes@v1".into())
}

impl ReasonArgs {
    async fn admin(&self, app: &mut App) -> anyhow::Result<StateAdmin> {
        Ok(super::state(app).await?.admin(&self.who, &self.why).await?)
    }
}

impl TargetArgs {
    fn target(&self) -> Target {
        let (principal, contract) = (self.whole.of.clone(), self.contract_id.clone());
        Target { principal, contract, store: self.store.clone() }
    }

    async fn admin(&self, app: &mut App) -> anyhow::Result<StateAdmin> {
        self.whole.reason.admin(app).await
    }
}

impl AdminCommand {
    pub(crate) async fn run(self, app: &mut App) -> anyhow::Result<()> {
        match self {
            Self::Get(args) => args.run(app).await,
            Self::List(args) => args.run(app).await,
            Self::Delete(args) => args.run(app).await,
            Self::Find(args) => args.run(app).await,
            Self::Export(args) => args.run(app).await,
            Self::Erase(args) => args.run(app).await,
            Self::Log(args) => args.run(app).await,
        }
    }
}

impl GetArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let admin = self.target.admin(app).await?;
        let found = admin.get(&self.target.target(), self.key.as_deref()).await?;
        match found {
            Some(entry) => app.output.object(&entry.to_json()),
            None => Err(absent().into()),
        }
    }
}

impl ListArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let admin = self.target.admin(app).await?;
        let options = ListOptions { offset: self.offset, limit: self.limit };
        let page = admin.list(&self.target.target(), options).await?;
        let lines = page.entries.iter().map(Inspected::to_json);
        lines.into_iter().try_for_each(|line| app.output.object(&line))?;
        app.output.note(format_args!("{} of {} entries", page.entries.len(), page.count));
        Ok(())
    }
}

impl DeleteArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let admin = self.target.admin(app).await?;
        match admin.delete(&self.target.target(), self.key.as_deref()).await? {
            outcome @ DeleteOutcome::Deleted => {
                app.output.confirm(&outcome.to_json(), "the entry is deleted")
            }
            DeleteOutcome::NotDeleted => Err(absent().into()),
        }
    }
}

impl FindArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let holdings = self.whole.reason.admin(app).await?.find(&self.whole.of).await?;
        if app.output.is_json() {
            let objects = holdings
                .iter()
                .map(|held| json!({"contract": held.contract, "store": held.store, "entries": held.entries}));
            return objects.into_iter().try_for_each(|object| app.output.object(&object));
        }
        if holdings.is_empty() {
            app.output.note(format_args!("{} has no state", self.whole.of));
            return Ok(());
        }
        let mut table =
            Table::new([Column::Left("CONTRACT"), Column::Left("STORE"), Column::Right("ENTRIES")]);
        for held in holdings {
            let known = |name: Option<String>| name.unwrap_or_else(|| "(damaged key)".into());
            table.row([known(held.contract), known(held.store), held.entries.to_string()]);
        }
        table.write(&mut app.output)
    }
}

impl ExportArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let admin = self.whole.reason.admin(app).await?;
        let mut next = None;
        loop {
            let page = admin.export(&self.whole.of, next).await?;
            page.lines.iter().try_for_each(|line| app.output.line(line))?;
            if page.next.is_none() {
                return Ok(());
            }
            next = page.next;
        }
    }
}

impl EraseArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        let admin = self.whole.reason.admin(app).await?;
        let mut erased = 0;
        loop {
            let step = admin.erase(&self.whole.of).await?;
            erased += step.erased;
            if step.done {
                break;
            }
            app.output.note(format_args!("{erased} entries erased so far, {ERASE_ENTRIES_MAX} at a time"));
        }
        let line = format!("{erased} entries of {} are erased", self.whole.of);
        app.output.confirm(&json!({"event": "state_erased", "entries": erased}), line)
    }
}

impl LogArgs {
    async fn run(self, app: &mut App) -> anyhow::Result<()> {
        for record in super::state(app).await?.admin_records().await? {
            if app.output.is_json() {
                app.output.object(&record.what)?;
                continue;
            }
            let entries =
                record.entries.map_or_else(|| "cut off".to_owned(), |entries| format!("{entries} entries"));
            let (who, why) = (text::shown(record.who.as_bytes()), text::shown(record.why.as_bytes()));
            let whose = text::shown(record.principal.to_string().as_bytes());
            app.output
                .line(format_args!("{}  {}  {whose}  {entries}  by {who}: {why}", record.at, record.act))?;
        }
        Ok(())
    }
}

fn absent() -> Problem {
    Problem::not_found("there is no such entry").help("see what there is with `pleach state admin find`")
}
