//! The command line.
//!
//! Read in this order: [`args`] is what can be typed, `attach` where a command runs, `context` what
//! every command gets, `commands` has one file a command, [`exit`] how it ends. `print` and `spinner`
//! print, `person` answers what an operation asks, [`serving`] is what `serve` needs from the program
//! around it. What people read and type is in `capstan-text`.
//!
//! **Invariant:** data goes to stdout, everything else to stderr; what a server wrote passes
//! through `capstan_safety::clean` before a person sees it.

pub mod args;
pub mod serving;
pub mod exit;
mod context;
mod commands;
mod person;
mod attach;
mod print;
mod spinner;
mod keyboard;
mod complete;
mod fast_path;

use std::ffi::OsString;

use capstan_app::AppError;
use clap::{CommandFactory, FromArgMatches};
use tokio::signal::unix::{SignalKind, signal};

pub use complete::command;

use crate::args::{Cli, Command, Options};
use crate::context::Context;
pub use crate::context::Program;
use crate::exit::Exit;
use crate::keyboard::Keyboard;
use crate::print::Printer;

/// Reads what was typed.
///
/// # Errors
/// When it was not understood, or when only help was asked for; both have been printed.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(cli) = fast_path::read(&words) {
        return Ok(cli);
    }
    // Made once: that takes longer than all that is done with it.
    let command = Cli::command();
    let words = commands::add::normalise(&command, words);
    let words = commands::prompt::normalise(&command, words);
    let wants_json = words.iter().any(|word| word == "--json");
    let print = if wants_json { Printer::json_only() } else { Printer::new(&Options::default()) };
    match read(command, words) {
        Ok(mut cli) => match commands::add::lift_options(&mut cli) {
            Ok(()) => Ok(cli),
            Err(failure) => {
                print.failure(&failure);
                Err(failure.kind.into())
            }
        },
        Err(error) if error.use_stderr() && wants_json => {
            let text = error.render().to_string();
            let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
            let message = lines.join(" ").replace("  ", " ");
            let message = message.trim_start_matches("error: ");
            print.failure(&AppError::usage(message));
            Err(Exit::Usage)
        }
        Err(error) => {
            // A closed pipe is no reason to complain about help that nobody reads.
            drop(error.print());
            Err(if error.use_stderr() { Exit::Usage } else { Exit::Ok })
        }
    }
}

/// Reads words that are put in order already.
fn read(command: clap::Command, words: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Runs one command to its end.
pub async fn run(cli: Cli, program: Program) -> Exit {
    let place = match attach::place(&cli) {
        Ok(place) => place,
        Err(error) => {
            Printer::new(&cli.options).failure(&error);
            return error.kind.into();
        }
    };
    let context = Context::new(&cli.options, place, program);
    let keyboard = Keyboard::as_it_is();
    // A gateway has clients to take leave of.
    let ends_itself = matches!(cli.command, Command::Serve(_));
    let result = tokio::select! {
        // First, so that signals are heard before anything is begun.
        biased;
        () = interrupted(), if !ends_itself => Ok(Exit::Interrupted),
        result = commands::run(&context, &cli) => result,
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
            failure.kind.into()
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
