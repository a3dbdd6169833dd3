use std::path::PathBuf;

use clap::Args;
use pleach_contract::{FORMAT, format_schema};
use serde_json::json;

use crate::app::App;
use crate::destination;
use crate::record::JSON_VERSION;

/// Prints the JSON Schema of contracts, with which editors complete and check them
#[derive(Args, Debug)]
#[command(after_help = "With the schema in a file, an editor finds it by a first line such as\n\
                  # yaml-language-server: $schema=./pleach.contract.v1.json\n\n\
                  Examples:\n  pleach contract schema\n  pleach contract schema -o pleach.contract.v1.json")]
pub(crate) struct SchemaArgs {
    /// Writes it to a file
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

impl SchemaArgs {
    pub(crate) fn run(self, app: &mut App) -> anyhow::Result<()> {
        let schema = format_schema();
        let Some(path) = self.output else {
            if app.output.is_json() {
                return app.output.object(&schema);
            }
            return app.output.line(serde_json::to_string_pretty(&schema)?);
        };
        destination::write(&path, format!("{}\n", serde_json::to_string_pretty(&schema)?).as_bytes())?;
        let object = json!({"v": JSON_VERSION, "file": path.display().to_string(), "format": FORMAT});
        app.output.confirm(&object, format_args!("the schema of {FORMAT} is in {}", path.display()))
    }
}
