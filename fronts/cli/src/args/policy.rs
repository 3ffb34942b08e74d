//! The grammar of `capstan why` and `capstan policy`.

use std::path::PathBuf;

use capstan_hub::EntryPoint;
use clap::{Args, Subcommand, ValueEnum};

/// `capstan why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan why linear__delete_issue id=7\n  \
    capstan why @docs:file:///README.md\n  \
    capstan why --caller alice --role dev linear__create_issue\n\n\
    Exits with 6 if the verdict is deny.")]
pub struct WhyArgs {
    /// The tool or prompt, as `server__tool` or `server:tool`; a resource as `@server:uri`
    #[arg(index = 1)]
    pub tool: String,
    /// Its arguments, as for `capstan call`
    #[arg(index = 2, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
    /// The caller.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// The caller of a hypothetical call.
#[derive(Clone, Debug, Default, Args)]
pub struct WhoArgs {
    /// Assume this caller instead of yourself
    #[arg(long, value_name = "SUBJECT")]
    pub caller: Option<String>,
    /// Assume that the caller has this role; can be given several times
    #[arg(long, value_name = "ROLE")]
    pub role: Vec<String>,
    /// Assume a call through this front [default: cli; gateway with --caller or --role]
    #[arg(long, value_enum, value_name = "FRONT")]
    pub front: Option<FrontArg>,
}

/// A front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FrontArg {
    /// This command line.
    Cli,
    /// The interactive terminal.
    Terminal,
    /// `capstan serve --http`.
    Gateway,
    /// `capstan serve`, over stdin and stdout.
    Stdio,
}

/// `capstan policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check the rules against a file of cases with expected verdicts
    Test(PolicyTestArgs),
    /// Show past calls that the current rules, or other rules, would decide differently
    Replay(PolicyReplayArgs),
}

/// `capstan policy test`.
#[derive(Debug, Args)]
#[command(after_help = "A file of cases, in TOML (or JSON):\n\n  \
    [[case]]\n  \
    name = \"no deletions\"               # optional\n  \
    tool = \"linear__delete_issue\"       # or resource = \"docs:file:///x\", prompt = \"docs:greet\"\n  \
    arguments = { id = 7 }              # optional, like all keys up to `effect`\n  \
    caller = \"alice\"\n  \
    roles = [\"dev\"]\n  \
    front = \"gateway\"                   # cli, terminal, gateway, stdio\n  \
    effect = \"write\"                    # read, write, unknown (the default of tools)\n  \
    expect = \"deny\"                     # allow, ask, deny\n  \
    rule = \"permissions.deny\"           # optional: part of the rule that must decide\n\n\
    No server is started. Exits with 1 if a case fails, with 3 if the file is invalid.")]
pub struct PolicyTestArgs {
    /// The file of cases, TOML or JSON
    pub file: PathBuf,
    /// Read only the files given by --config
    #[arg(long)]
    pub alone: bool,
}

/// `capstan policy replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan policy replay                                 the current rules\n  \
    capstan policy replay --config new.toml               with additional rules\n  \
    capstan policy replay --config new.toml --alone       with other rules instead\n\n\
    Callers, fronts and effects are taken from the audit log. Expired rules do not apply. If a rule\n\
    matches arguments, they must have been logged (`[audit] arguments = \"redacted\"`); otherwise the\n\
    call cannot be judged.")]
pub struct PolicyReplayArgs {
    /// Calls since this time, such as 7d or 2026-11-15T08:00:00Z
    #[arg(long, value_name = "AGO|TIME", default_value = "7d")]
    pub since: String,
    /// Read only the files given by --config
    #[arg(long)]
    pub alone: bool,
    /// The maximum number of calls; the newest are used
    #[arg(long, default_value_t = 20_000)]
    pub limit: usize,
}

// === impl WhoArgs ===

impl WhoArgs {
    /// The door through which the call comes in. Only the gateway has callers, so a named caller or
    /// role implies it.
    pub(crate) fn door(&self) -> EntryPoint {
        match self.front {
            Some(FrontArg::Cli) => EntryPoint::Cli,
            Some(FrontArg::Terminal) => EntryPoint::Terminal,
            Some(FrontArg::Stdio) => EntryPoint::Stdio,
            None if self.caller.is_none() && self.role.is_empty() => EntryPoint::Cli,
            Some(FrontArg::Gateway) | None => EntryPoint::Gateway,
        }
    }
}
