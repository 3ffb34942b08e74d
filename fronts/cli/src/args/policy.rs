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
    Ends with 6 when the verdict is deny.")]
pub struct WhyArgs {
    /// The tool or prompt, as `server__tool` or `server:tool`; a resource as `@server:uri`
    #[arg(index = 1)]
    pub tool: String,
    /// Its arguments, as for `capstan call`
    #[arg(index = 2, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
    /// For whom.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// On whose behalf a call is imagined.
#[derive(Clone, Debug, Default, Args)]
pub struct WhoArgs {
    /// Imagine a call of this caller instead of your own
    #[arg(long, value_name = "SUBJECT")]
    pub caller: Option<String>,
    /// Imagine that the caller has this role; can be given several times
    #[arg(long, value_name = "ROLE")]
    pub role: Vec<String>,
    /// Imagine a call that comes in here [default: cli; gateway with --caller or --role]
    #[arg(long, value_enum, value_name = "FRONT")]
    pub front: Option<FrontArg>,
}

/// A way in.
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
    /// Check the rules against a file of cases with the verdicts that are expected
    Test(PolicyTestArgs),
    /// Say which past calls would be decided differently now, or with other rules
    Replay(PolicyReplayArgs),
}

/// `capstan policy test`.
#[derive(Debug, Args)]
#[command(after_help = "A file of cases, as TOML (or the same as JSON):\n\n  \
    [[case]]\n  \
    name = \"nobody deletes\"             # may be left out\n  \
    tool = \"linear__delete_issue\"       # or resource = \"docs:file:///x\", prompt = \"docs:greet\"\n  \
    arguments = { id = 7 }              # the rest of these may be left out\n  \
    caller = \"alice\"\n  \
    roles = [\"dev\"]\n  \
    front = \"gateway\"                   # cli, terminal, gateway, stdio\n  \
    effect = \"write\"                    # read, write, unknown (the default of tools)\n  \
    expect = \"deny\"                     # allow, ask, deny\n  \
    rule = \"permissions.deny\"           # part of the rule that has to decide\n\n\
    No server is started. Ends with 1 when a case fails, with 3 when the file is broken.")]
pub struct PolicyTestArgs {
    /// The file of cases, TOML or JSON
    pub file: PathBuf,
    /// Read only the files of --config, not your own and the project's
    #[arg(long)]
    pub alone: bool,
}

/// `capstan policy replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan policy replay                                 the rules as they are now\n  \
    capstan policy replay --config new.toml               with these rules added\n  \
    capstan policy replay --config new.toml --alone       with these rules instead\n\n\
    Who called, from where, and what the tool does is taken from the audit log; rules that have\n\
    expired by now no longer speak. Where a rule looks at arguments, they must have been kept\n\
    (`[audit] arguments = \"redacted\"`), or the call cannot be judged.")]
pub struct PolicyReplayArgs {
    /// Calls since then, such as 7d or 2026-11-15T08:00:00Z
    #[arg(long, value_name = "AGO|TIME", default_value = "7d")]
    pub since: String,
    /// Read only the files of --config, not your own and the project's
    #[arg(long)]
    pub alone: bool,
    /// At most so many calls, the newest
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
