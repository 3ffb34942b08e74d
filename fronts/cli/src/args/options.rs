//! The options of every command.

use capstan_app::Selection;
use clap::Args;

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub struct Options {
    /// Also read this configuration file (of any supported program), plugin folder or bundle; set its
    /// format explicitly with DIALECT:FILE
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
    /// Do not start servers
    #[arg(long, global = true, help_heading = "Global options")]
    pub no_mcp: bool,
    /// Run the command in a running gateway (the only one, or the one with this process ID)
    #[arg(
        long,
        value_name = "PID",
        num_args = 0..=1,
        require_equals = true,
        global = true,
        help_heading = "Global options"
    )]
    pub attach: Option<Option<u32>>,
    /// Start servers even if a running gateway has them
    #[arg(long, global = true, conflicts_with = "attach", help_heading = "Global options")]
    pub no_attach: bool,
    /// Use the project's configuration files even if they are not trusted
    #[arg(long, global = true, help_heading = "Global options")]
    pub trust_project: bool,
    /// The port on 127.0.0.1 that a browser is sent back to after a login [default: a free one]
    #[arg(long, value_name = "PORT", global = true, help_heading = "Global options")]
    pub mcp_oauth_port: Option<u16>,
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
            expose: None,
        }
    }
}
