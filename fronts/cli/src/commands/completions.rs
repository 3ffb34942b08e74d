//! `capstan completions`: a script that makes a shell ask us what can be typed.

use clap_complete::env::Shells;

use crate::args::CompletionsArgs;
use crate::context::Context;
use crate::exit::{Exit, Failure};

/// The variable by which the shell asks.
const VARIABLE: &str = "COMPLETE";

pub(crate) fn run(context: &Context, args: &CompletionsArgs) -> Result<Exit, Failure> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&args.shell)
        .ok_or_else(|| Failure::usage(format!("no completions for `{}`", args.shell)))?;
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "capstan", "capstan", "capstan", &mut script)
        .map_err(|error| Failure::internal(error.to_string()))?;
    context.print.exactly(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}
