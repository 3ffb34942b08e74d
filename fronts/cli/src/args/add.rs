//! The grammar of `capstan add`.

use clap::{Args, Parser, ValueEnum};

use super::Options;

/// `capstan add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan add time uvx mcp-server-time\n  \
    capstan add -e DEBUG=1 files npx -y @modelcontextprotocol/server-filesystem ~/notes\n  \
    capstan add --transport http docs https://example.com/mcp --header 'X-Key: abc'\n  \
    capstan add pets --openapi apis/pets.yaml")]
pub struct AddArgs {
    /// Options of the entry.
    #[command(flatten)]
    pub entry: EntryArgs,
    /// Connects the server once.
    #[command(flatten)]
    pub check: CheckArgs,
    /// The server's name
    pub name: String,
    /// The command with its arguments, or the URL
    #[arg(
        value_name = "COMMAND_OR_URL",
        required_unless_present = "openapi",
        num_args = 1..,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<String>,
}

/// Options of an entry that is added; after a URL they may follow it too.
#[derive(Clone, Debug, Default, Args)]
pub struct EntryArgs {
    /// The file to write to [default: `project` in a project folder, else `user`]
    #[arg(short, long, value_enum)]
    pub scope: Option<ScopeArg>,
    /// The transport [default: `http` for a URL, `stdio` for a command]
    #[arg(short, long, value_enum, visible_alias = "type")]
    pub transport: Option<TransportArg>,
    /// An OpenAPI document, as a file or a URL, in place of a command; each operation becomes a tool
    #[arg(long, value_name = "FILE_OR_URL", conflicts_with = "transport")]
    pub openapi: Option<String>,
    /// Replace a server of that name in the file
    #[arg(short, long)]
    pub force: bool,
    /// An environment variable of the server; can be given several times
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub env: Vec<String>,
    /// A header for requests to the server; can be given several times
    #[arg(short = 'H', long, value_name = "KEY: VALUE")]
    pub header: Vec<String>,
    /// The time limit of a call, such as 30s; a bare number is milliseconds
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Allow all tools of the server without asking
    #[arg(long)]
    pub trust: bool,
    /// The purpose of the server
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// A private network in which the server may be reached; can be given several times
    #[arg(long, value_name = "ADDRESS[/PREFIX]")]
    pub network: Vec<String>,
    /// Offer only these tools, separated by commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub include_tools: Vec<String>,
    /// Hide these tools, separated by commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub exclude_tools: Vec<String>,
}

/// Options that follow a URL.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, name = "capstan add NAME URL")]
pub struct AfterUrl {
    /// The options.
    #[command(flatten)]
    pub entry: EntryArgs,
    /// Options of every command.
    #[command(flatten)]
    pub options: Options,
}

/// Whether servers are connected once after they were added.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct CheckArgs {
    /// Connect to the servers now and save their tools for clients [default: on a terminal]
    #[arg(long, conflicts_with = "no_check")]
    pub check: bool,
    /// Do not connect the servers
    #[arg(long)]
    pub no_check: bool,
}

/// A scope that can be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// Your own configuration, in all projects.
    User,
    /// The configuration of this project, for all its users.
    Project,
}

/// The transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TransportArg {
    /// A command that communicates over stdin and stdout.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// The older HTTP+SSE.
    Sse,
    /// An ordinary command-line program.
    Cli,
}

// === impl EntryArgs ===

impl EntryArgs {
    /// Adds options from another part of the command line; of two values, the first wins.
    pub(crate) fn add(&mut self, more: Self) {
        self.scope = self.scope.or(more.scope);
        self.transport = self.transport.or(more.transport);
        self.openapi = self.openapi.take().or(more.openapi);
        self.force |= more.force;
        self.env.extend(more.env);
        self.header.extend(more.header);
        self.timeout = self.timeout.take().or(more.timeout);
        self.trust |= more.trust;
        self.description = self.description.take().or(more.description);
        self.network.extend(more.network);
        self.include_tools.extend(more.include_tools);
        self.exclude_tools.extend(more.exclude_tools);
    }
}
