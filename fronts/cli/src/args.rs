//! The grammar of the command line. The doc comments are the help texts.

mod acl;
mod add;
mod approvals;
mod audit;
mod auth;
mod auth_clients;
mod chat;
mod clients;
mod edit;
mod items;
mod login;
mod options;
mod pins;
mod policy;
mod record;
mod registry;
mod search;
mod secret;
mod scan;
mod serve;
mod user;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use acl::{AccessArg, AclCheckArgs, AclCommand, ClassifyArgs, FormatArg};
pub use add::{AddArgs, AfterUrl, CheckArgs, EntryArgs, ScopeArg, TransportArg};
pub use approvals::{
    ApprovalsArgs, ApprovalsCommand, AskArgs, NoArgs, ShowArgs, SpanArgs, WidthArgs, YesArgs,
};
pub use audit::{AuditArgs, AuditKind};
pub use auth::{AuthCommand, TokenCommand, TokenCreateArgs, TokenRevokeArgs};
pub use auth_clients::{AuthClientArgs, AuthClientsCommand};
pub use chat::{ChatArgs, OutputFormat};
pub use clients::{AdoptArgs, ClientArgs, ImportArgs, InstallArgs, SecretsArg};
pub use edit::EditArgs;
pub use items::{PromptArgs, PromptsArgs, ReadArgs, ResourcesArgs};
pub use login::{LoginArgs, LogoutArgs};
pub use options::Options;
pub use pins::PinsArgs;
pub use policy::{FrontArg, PolicyCommand, PolicyReplayArgs, PolicyTestArgs, WhoArgs, WhyArgs};
pub use record::{RecordArgs, ReplayArgs};
pub use registry::{RegistryAddArgs, RegistryArgs, RegistryCommand, RegistrySearchArgs};
pub use scan::ScanArgs;
pub use search::SearchArgs;
pub use secret::{SecretCommand, SecretNameArgs};
pub use serve::{ConfirmArg, LogFormat, ServeArgs};
pub use user::{UserAddArgs, UserCommand, UserNameArgs};

/// One hub for every MCP server.
///
/// Capstan starts the MCP servers in your configuration, checks every call against one policy, and
/// records every call in an audit log.
///
/// All servers are available through this command and through one gateway.
#[derive(Debug, Parser)]
#[command(name = "capstan", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Start with `capstan serve --http --demo` or `capstan tools --demo`, then `capstan add NAME COMMAND…`.\n\
                        Exit codes: 0 ok, 1 tool error, 2 usage, 3 config, 4 not found, 5 auth, \
                        6 denied, 7 unreachable, 8 timeout, 9 quota, 130 interrupted."
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub options: Options,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Add a server to the configuration
    Add(AddArgs),
    /// List the servers with their states
    List(ReadingArgs),
    /// Show one server: configuration, state, instructions
    Get(GetArgs),
    /// Remove a server from the configuration
    Remove(NameArgs),
    /// Change the entry of a server, in your editor or by key
    Edit(EditArgs),
    /// Enable a server
    Enable(NameArgs),
    /// Disable a server
    Disable(NameArgs),
    /// List the tools of all servers, or show one tool
    Tools(ToolsArgs),
    /// Find tools by what they do
    Search(SearchArgs),
    /// Call a tool
    Call(CallArgs),
    /// List the resources of all servers, or their templates
    Resources(ResourcesArgs),
    /// Read a resource
    Read(ReadArgs),
    /// List the prompts of all servers, or show one prompt
    Prompts(PromptsArgs),
    /// Get the messages of a prompt
    Prompt(PromptArgs),
    /// Log in to a server
    Login(LoginArgs),
    /// Log out of a server
    Logout(LogoutArgs),
    /// Talk to a model that has the tools of all servers; `capstan -p TEXT` answers once
    Chat(ChatArgs),
    /// Run the gateway: all servers behind one endpoint, over stdio or HTTP
    Serve(ServeArgs),
    /// Record a server's answers in a file
    Record(RecordArgs),
    /// Serve the answers of a recording, as a server over stdio
    Replay(ReplayArgs),
    /// Move a client's servers to Capstan
    Adopt(AdoptArgs),
    /// Import servers from other MCP clients
    Import(ImportArgs),
    /// Add Capstan to a client's configuration
    Install(InstallArgs),
    /// Remove Capstan from a client's configuration
    Uninstall(ClientArgs),
    /// Reload the configuration of running gateways
    Reload,
    /// Explain what policy decides about a call
    Why(WhyArgs),
    /// List and answer calls that wait for approval in running gateways
    Approvals(ApprovalsArgs),
    /// Show the effects of tools, and check permissions of callers
    #[command(subcommand)]
    Acl(AclCommand),
    /// Show tools whose definition differs from the pinned one, and pin new definitions
    Pins(PinsArgs),
    /// Scan texts of servers, or of definitions in a file, for attempts to steer a model
    Scan(ScanArgs),
    /// Test rules with cases, or with past calls
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Find servers in a registry, and add them
    #[command(subcommand)]
    Registry(RegistryCommand),
    /// Manage the credentials of callers of the gateway
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Manage the users who sign in at the gateway
    #[command(subcommand)]
    User(UserCommand),
    /// Store secrets that the configuration refers to as `keyring:NAME`
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Show the audit log
    Audit(AuditArgs),
    /// Check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Review and trust the project's configuration files
    Trust(TrustArgs),
    /// Check servers and the environment, and suggest fixes
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them to a folder
    Man(ManArgs),
}

/// A provider of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProviderArg {
    /// Gemini and Vertex AI.
    Gemini,
    /// `OpenAI` and providers with the same API.
    #[value(name = "openai", help = "OpenAI and providers with the same API")]
    OpenAi,
    /// Anthropic.
    Anthropic,
}

/// How lists of servers are read.
#[derive(Clone, Debug, Default, Args)]
pub struct ReadingArgs {
    /// Ask the servers instead of showing what was last seen of them
    #[arg(long)]
    pub refresh: bool,
    /// The time to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// The time to wait for servers.
#[derive(Clone, Debug, Default, Args)]
pub struct WaitArgs {
    /// Longest wait for servers, such as 30s [default: 8s, longer until the first one answers]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
}

/// The name of a server.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The server's name
    pub name: String,
    /// The file to change, if several define the server
    #[arg(short, long, value_enum)]
    pub scope: Option<ScopeArg>,
}

/// `capstan get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The server's name
    pub name: String,
    /// Ask the server instead of showing what was last seen of it
    #[arg(long)]
    pub refresh: bool,
}

/// `capstan tools`.
#[derive(Debug, Default, Args)]
pub struct ToolsArgs {
    /// A server, or one tool, such as `files` or `files__read_file`
    pub name: Option<String>,
    /// Print the JSON Schema of the tool's arguments
    #[arg(long, requires = "name")]
    pub schema: bool,
    /// Show what definitions cost a model, and which tools were not used in 30 days
    #[arg(long, conflicts_with_all = ["schema", "provider"])]
    pub tokens: bool,
    /// Show names and schemas in this provider's format
    #[arg(long = "for", value_enum, value_name = "PROVIDER")]
    pub provider: Option<ProviderArg>,
    /// How lists are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// `capstan call`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan call everything__echo message=hi\n  \
    capstan call everything:echo '{\"message\":\"hi\"}'\n  \
    capstan call everything__echo --message hi\n  \
    capstan call everything__echo message=@letter.txt\n  \
    echo '{\"message\":\"hi\"}' | capstan call everything__echo -\n\n\
    A value takes the type that the tool's schema requires. Repeat a key for each item of a list. \
    `key=@FILE` takes the value from a text file; `key=@@text` is a text that begins with `@`.")]
pub struct CallArgs {
    // The indices are explicit because completions take the arguments apart and rebuild them.
    /// The tool, as `server__tool` or `server:tool`
    #[arg(index = 1)]
    pub tool: String,
    /// Its arguments: key=value, key:=JSON, key=@FILE or --key value words, a JSON object, or `-` for JSON on stdin
    #[arg(index = 2, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
    /// Write the answer to a file: its images and other bytes, else its text; with --json, all of it
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How to answer the server's questions: `ask` (on a terminal), `defaults`, `decline`, or a JSON file with the values
    #[arg(long, value_name = "ask|defaults|decline|FILE.json")]
    pub elicit: Option<String>,
    /// Asks the user for approval.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// `capstan config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the configuration files and their status
    Path,
    /// Report errors and warnings in the configuration
    Check,
    /// Print the JSON Schema of the configuration
    Schema,
    /// Print the merged configuration with the origin of each value, secrets masked
    Show,
}

/// `capstan trust`.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Only these files of the project
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Revoke the trust
    #[arg(long)]
    pub revoke: bool,
    /// Trust the files without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// `capstan doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Only this server
    pub name: Option<String>,
    /// Exit with an error if there are problems
    #[arg(long)]
    pub strict: bool,
    /// Check instead if Claude.ai and ChatGPT can connect to a gateway at this address
    #[arg(long, value_name = "URL", conflicts_with_all = ["name", "wait"])]
    pub public_url: Option<String>,
    /// Longest wait for each server, such as 1m [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
}

/// `capstan completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish", "elvish", "powershell"])]
    pub shell: String,
}

/// `capstan man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder for the pages of all commands
    pub folder: Option<PathBuf>,
}

// === impl Options ===

impl Options {
    /// Adds options from another part of the command line.
    pub(crate) fn add(&mut self, more: Self) {
        let Self {
            config,
            json,
            debug,
            demo,
            no_mcp,
            attach,
            no_attach,
            trust_project,
            mcp_oauth_port,
        } = more;
        self.mcp_oauth_port = self.mcp_oauth_port.or(mcp_oauth_port);
        self.attach = self.attach.or(attach);
        self.no_attach |= no_attach;
        self.config.extend(config);
        self.json |= json;
        self.debug |= debug;
        self.demo |= demo;
        self.no_mcp |= no_mcp;
        self.trust_project |= trust_project;
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write for example `30s`"))
}
