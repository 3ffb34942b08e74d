//! The grammar of `capstan login` and `capstan logout`.

use std::path::PathBuf;

use clap::Args;

/// `capstan login`.
#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = "Examples:\n  \
    capstan login github\n  \
    capstan login github --no-browser\n  \
    capstan login github --scope repo:read\n  \
    capstan login github --as work\n  \
    capstan login --import\n  \
    capstan login --status\n\n\
    The address of the page is always printed. If the browser runs on another machine, log in there \
    and paste the address that it was sent to at the end.")]
pub struct LoginArgs {
    /// The server's name
    #[arg(required_unless_present_any = ["all", "status", "import"])]
    pub name: Option<String>,
    /// A name for this login, if you have several accounts at the server
    #[arg(long = "as", value_name = "LOGIN", conflicts_with = "all")]
    pub login: Option<String>,
    /// Do not open a browser; use a code for another device where the server offers that
    #[arg(long)]
    pub no_browser: bool,
    /// Also print the address as a QR code
    #[arg(long)]
    pub qr: bool,
    /// Request only these scopes; can be given several times
    #[arg(long, value_name = "SCOPE", conflicts_with = "all")]
    pub scope: Vec<String>,
    /// Log in to all servers that need it
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
    /// Copy the logins of avelino's `mcp`, so that nobody has to log in again: those of `~/.config/mcp/auth.json`, or of FILE
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with_all = ["all", "status", "login", "scope", "qr", "no_browser"]
    )]
    pub import: Option<Option<PathBuf>>,
    /// Show who is logged in where; nothing is changed
    #[arg(long, conflicts_with_all = ["all", "login", "scope", "qr", "no_browser"])]
    pub status: bool,
}

/// `capstan logout`.
#[derive(Debug, Args)]
pub struct LogoutArgs {
    /// The server's name
    pub name: String,
    /// The name of the login, if it has one
    #[arg(long = "as", value_name = "LOGIN")]
    pub login: Option<String>,
    /// Also tell the authorization server that the tokens are no longer valid
    #[arg(long)]
    pub revoke: bool,
}
