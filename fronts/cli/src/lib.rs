//! The command line.
//!
//! Read in this order: [`args`] defines the grammar, `attach` chooses where a command runs,
//! `context` is passed to every command, `commands` has one file per command, [`exit`] maps errors
//! to exit codes. `print` and `spinner` print, `person` answers the questions of an operation,
//! [`serving`] and [`conversing`] are the ports that `serve` and `chat` need from the binary. Texts and input for people are in
//! `capstan-text`.
//!
//! **Invariant:** data goes to stdout, everything else to stderr; text from a server passes through
//! `capstan_safety::clean` before a person sees it.

pub mod args;
pub mod serving;
pub mod conversing;
pub mod exit;
mod context;
mod commands;
mod person;
mod attach;
mod print;
mod spinner;
mod keyboard;
mod words;
mod options;
mod complete;
mod fast_path;

use std::ffi::OsString;

use capstan_app::AppError;
use capstan_text::screen::{has_person, stdout_is_terminal};
use clap::{CommandFactory, FromArgMatches};
use tokio::signal::unix::{SignalKind, signal};

pub use complete::command;

use crate::args::{Cli, Command, Options, OutputFormat};
use crate::context::Context;
pub use crate::context::Services;
use crate::exit::Exit;
use crate::keyboard::Keyboard;
use crate::print::Printer;

/// Parses the command line; `typed` is the command as the user typed it, for hints.
///
/// # Errors
/// If it is invalid, or if only help was requested; both have been printed.
pub fn parse(words: Vec<OsString>, typed: String) -> Result<Cli, Exit> {
    if let Some(cli) = fast_path::read(&words) {
        print::set_command(typed);
        return Ok(cli);
    }
    // Built once, because building it takes longer than all its uses.
    let command = Cli::command();
    let is_alias = words::has_alias(&command, &words);
    print::set_command(if is_alias { format!("{typed} mcp") } else { typed });
    let words = words::with_chat(&command, words);
    let words = if has_person() && stdout_is_terminal() {
        words::with_conversation(&command, words)
    } else {
        words
    };
    let words = words::normalise(&command, words);
    let words = options::normalise(&command, words);
    let wants_json = words.iter().any(|word| word == "--json");
    let print = if wants_json { Printer::json_only() } else { Printer::new(&Options::default()) };
    match read(command, words) {
        Ok(mut cli) => match commands::add::lift_options(&mut cli) {
            Ok(()) => {
                // Errors are printed in the format that was asked for.
                if let Command::Chat(chat) = &cli.command {
                    cli.options.json |= chat.output_format != OutputFormat::Text;
                }
                Ok(cli)
            }
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
            // If the pipe is closed, nothing reads the help; that is no error.
            drop(error.print());
            Err(if error.use_stderr() { Exit::Usage } else { Exit::Ok })
        }
    }
}

/// Parses normalised words.
fn read(command: clap::Command, words: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Runs one command to its end.
pub async fn run(cli: Cli, services: Services) -> Exit {
    let destination = match attach::destination(&cli) {
        Ok(destination) => destination,
        Err(error) => {
            Printer::new(&cli.options).failure(&error);
            return error.kind.into();
        }
    };
    let context = Context::new(&cli.options, destination, services);
    let keyboard = Keyboard::as_it_is();
    // A gateway handles signals itself, to notify its clients. Under an editor, Ctrl-C is for the
    // editor.
    // In a conversation, Ctrl-C ends the answer and not the program.
    let talks = matches!(&cli.command, Command::Chat(chat) if !chat.print);
    let serves = matches!(cli.command, Command::Serve(_) | Command::Record(_));
    let ends_itself = talks || serves || matches!(cli.command, Command::Edit(_));
    let result = tokio::select! {
        // Polled first, so that signals are handled before anything is started.
        biased;
        () = interrupted(), if !ends_itself => Ok(Exit::Interrupted),
        result = commands::run(&context, &cli) => result,
    };
    if !matches!(result, Ok(Exit::Interrupted)) {
        context.save_lists().await;
    }
    context.close().await;
    keyboard.restore();
    let exit = match result {
        Ok(exit) => exit,
        Err(failure) => {
            context.print.failure(&failure);
            failure.kind.into()
        }
    };
    if exit == Exit::Interrupted {
        print::clear_line();
    }
    let Some(reason) = print::lost() else { return exit };
    context.print.error(&format!("the output could not be written: {reason}"));
    if exit == Exit::Ok { Exit::ToolError } else { exit }
}

/// Waits for SIGTERM. Ctrl-C has no effect meanwhile.
pub(crate) async fn terminated() {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    match signals {
        (_, Ok(mut terminate)) => drop(terminate.recv().await),
        (_, Err(_)) => std::future::pending::<()>().await,
    }
}

/// Waits for Ctrl-C or SIGTERM.
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
