//! What can be typed about rules, and about what became of calls.

use clap::Args;

/// `capstan why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The tool or prompt, as `server__tool` or `server:tool`; a resource as `@server:uri`
    #[arg(index = 1)]
    pub tool: String,
    /// Its arguments, as for `capstan call`
    #[arg(index = 2, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}
