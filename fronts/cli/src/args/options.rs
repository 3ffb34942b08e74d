//! The options of every command.

use capstan_app::Selection;
use clap::Args;

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub struct Options {
    /// Read this configuration file too, of any program, or a plugin's folder, or a bundle;
    /// DIALECT:FILE says of which program
    #[arg(long, value_name = "[DIALECT:]FILE", global = true, help_heading = "Global options")]
    pub config: Vec<String>,
    /// Print JSON on stdout
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Show the protocol traffic and the servers' stderr, with secrets masked
    #[arg(long, global = true, help_heading = "Global options")]
    pub debug: bool,
    /// Use the built-in demo servers instead of the configuration
    #[arg(long, global = true, help_heading = "Global options")]
    pub demo: bool,
    /// Start no server at all
    #[arg(long, global = true, help_heading = "Global options")]
    pub no_mcp: bool,
    /// Do it in a gateway that runs, of this process id or the only one, and with its configuration
    #[arg(
        long,
        value_name = "PID",
        num_args = 0..=1,
        require_equals = true,
        global = true,
        help_heading = "Global options"
    )]
    pub attach: Option<Option<u32>>,
    /// Start the servers here although a gateway runs that has them
    #[arg(long, global = true, conflicts_with = "attach", help_heading = "Global options")]
    pub no_attach: bool,
    /// Use the project's configuration files although they are not approved
    #[arg(long, global = true, help_heading = "Global options")]
    pub trust_project: bool,
}

// === impl Options ===

impl Options {
    /// The configuration that these options select.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            config: self.config.clone(),
            demo: self.demo,
            no_mcp: self.no_mcp,
            trust_project: self.trust_project,
        }
    }
}
