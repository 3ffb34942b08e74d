//! `capstan completions`: prints a script with which a shell requests completions from Capstan.

use capstan_app::AppError;
use clap_complete::env::Shells;

use crate::args::CompletionsArgs;
use crate::context::Context;
use crate::exit::Exit;

/// The variable with which the shell requests completions.
const VARIABLE: &str = "COMPLETE";

pub(crate) fn run(context: &Context, args: &CompletionsArgs) -> Result<Exit, AppError> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&args.shell)
        .ok_or_else(|| AppError::usage(format!("no completions for `{}`", args.shell)))?;
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "capstan", "capstan", "capstan", &mut script)
        .map_err(|error| AppError::internal(error.to_string()))?;
    context.print.exactly(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}
