//! The command line.
//!
//! Read in this order: [`args`] is what can be typed, [`host`] and [`desks`] what the front needs
//! from the program around it, `context` what every command gets, `commands` has one file a command,
//! [`exit`] how it ends. The rest prints: `print`, `table`, `answer`, `diagnose`, `waiting`; or
//! asks: `operator`, `confirm`, `form`, `keyboard`.
//!
//! **Invariant:** data goes to stdout, everything else to stderr; what a server wrote passes
//! through `clean` before a person sees it.

pub mod args;
pub mod host;
pub mod desks;
pub mod exit;
mod context;
mod commands;
mod arguments;
mod operator;
mod confirm;
mod form;
mod answer;
mod print;
mod diagnose;
mod veil;
mod table;
mod clean;
mod waiting;
mod keyboard;
mod complete;

use std::ffi::OsString;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches};
use tokio::signal::unix::{SignalKind, signal};

pub use complete::command;

use crate::args::{Cli, Command, Options};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::keyboard::Keyboard;
use crate::print::Printer;

/// Reads what was typed.
///
/// # Errors
/// When it was not understood, or when only help was asked for; both have been printed.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
    let words = commands::add::normalise(words.into_iter().collect());
    let words = commands::prompt::normalise(words);
    let wants_json = words.iter().any(|word| word == "--json");
    let print = if wants_json { Printer::json_only() } else { Printer::new(&Options::default()) };
    let matches = Cli::command().try_get_matches_from(words);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(mut cli) => match commands::add::lift_options(&mut cli) {
            Ok(()) => Ok(cli),
            Err(failure) => {
                print.failure(&failure);
                Err(failure.exit)
            }
        },
        Err(error) if error.use_stderr() && wants_json => {
            let text = error.render().to_string();
            let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
            let message = lines.join(" ").replace("  ", " ");
            let message = message.trim_start_matches("error: ");
            print.failure(&Failure::usage(message));
            Err(Exit::Usage)
        }
        Err(error) => {
            // A closed pipe is no reason to complain about help that nobody reads.
            drop(error.print());
            Err(if error.use_stderr() { Exit::Usage } else { Exit::Ok })
        }
    }
}

/// Runs one command to its end.
pub async fn run(cli: Cli, host: Arc<dyn Host>) -> Exit {
    let context = Context::new(cli.options.clone(), host);
    let keyboard = Keyboard::as_it_is();
    // A gateway has clients to take leave of.
    let ends_itself = matches!(cli.command, Command::Serve(_));
    let result = tokio::select! {
        // First, so that signals are heard before anything is begun.
        biased;
        () = interrupted(), if !ends_itself => Ok(Exit::Interrupted),
        result = commands::run(&context, &cli.command) => result,
    };
    context.close().await;
    keyboard.restore();
    if let Some(reason) = print::lost() {
        context.print.error(&format!("the output could not be written: {reason}"));
        return Exit::Internal;
    }
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            context.print.failure(&failure);
            failure.exit
        }
    }
}

/// Waits for Ctrl-C or a polite request to end.
pub(crate) async fn interrupted() {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    if let (Ok(mut interrupt), Ok(mut terminate)) = signals {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    } else {
        std::future::pending::<()>().await;
    }
}
