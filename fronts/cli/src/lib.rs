//! The command line.
//!
//! Read in this order: [`args`] is what can be typed, [`serving`] what `serve` needs
//! from the program around it, [`far`] how it works in a gateway that runs, `context` what every command gets, `commands` has one file a command,
//! [`exit`] how it ends. The rest prints: `print`, `waiting`; or
//! asks: `operator`, `keyboard`. What people read and type is in `capstan-text`.
//!
//! **Invariant:** data goes to stdout, everything else to stderr; what a server wrote passes
//! through `capstan_text::clean` before a person sees it.

pub mod args;
pub mod serving;
pub mod exit;
mod context;
mod commands;
mod operator;
pub mod far;
mod print;
mod waiting;
mod keyboard;
mod complete;
mod plain;

use std::ffi::OsString;
use std::sync::Arc;

use capstan_app::AppError;
use clap::{CommandFactory, FromArgMatches};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

pub use complete::command;

use crate::args::{Cli, Command, Options};
use crate::context::Context;
pub use crate::context::Program;
use crate::exit::Exit;
use crate::far::Inside;
use crate::far::{Event, Far, Order};
use crate::keyboard::Keyboard;
use crate::print::Printer;

/// Reads what was typed.
///
/// # Errors
/// When it was not understood, or when only help was asked for; both have been printed.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(cli) = plain::read(&words) {
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
    let text = |word: &OsString| word.clone().into_string().ok();
    let all: Option<Vec<String>> = words.iter().map(text).collect();
    let matches = command.try_get_matches_from(words)?;
    let cli = Cli::from_arg_matches(&matches)?;
    Ok(Cli { words: all.unwrap_or_default(), ..cli })
}

/// Runs one command in a gateway, for a shell somewhere else.
pub async fn run_inside(
    order: Order,
    events: UnboundedSender<Event>,
    inside: Arc<dyn Inside>,
    program: Program,
) -> Exit {
    let (words, stdin) = (order.words.clone(), order.stdin.clone());
    let far = Far::new(order, events);
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let read = plain::read(&words).map_or_else(|| read(Cli::command(), words), Ok);
    let read = read.map_err(|error| AppError::usage(error.render().to_string()));
    let read = read.and_then(|mut cli| commands::add::lift_options(&mut cli).map(|()| cli));
    let options = read.as_ref().map(|cli| cli.options.clone()).unwrap_or_default();
    let context = Context::new(options, program).inside(inside, Arc::clone(&far), stdin);
    let result = match read {
        Ok(cli) => commands::attached::run_here(&context, &cli).await,
        Err(failure) => Err(failure),
    };
    far.end(&context.print, result)
}

/// Runs one command to its end.
pub async fn run(cli: Cli, program: Program) -> Exit {
    let context = Context::new(cli.options.clone(), program);
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
