//! What is logged, and where: always to stderr.

use std::io::{IsTerminal, Write};

use capstan_cli::args::{Cli, Command, LogFormat};
use tracing_subscriber::EnvFilter;

use crate::world::World;

/// What is logged when nobody says otherwise.
const USUAL: &str = "warn";

/// What `--debug` logs: the protocol traffic and the servers' stderr too.
const DEBUG: &str = "info,capstan=debug,capstan_backend=debug,capstan_hub=debug";

/// Starts logging. `CAPSTAN_LOG` says what, `--debug` says everything of ours.
pub(crate) fn start(world: &World, cli: &Cli) {
    let usual = if cli.options.debug { DEBUG } else { USUAL };
    let asked = world.variable("CAPSTAN_LOG").filter(|filter| !filter.trim().is_empty());
    let filter = asked.as_deref().unwrap_or(usual);
    let filter = match EnvFilter::try_new(filter) {
        Ok(filter) => filter,
        Err(error) => {
            last_words(&format!("CAPSTAN_LOG is not a log filter: {error}"));
            EnvFilter::new(usual)
        }
    };
    let colour = std::io::stderr().is_terminal() && world.variable("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A gateway runs for long, so when something happened matters.
    let Command::Serve(args) = &cli.command else {
        return log.with_ansi(colour).without_time().init();
    };
    match args.log_format {
        LogFormat::Text => log.with_ansi(colour).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// Says something without the log, when there is none.
pub(crate) fn last_words(text: &str) {
    drop(writeln!(std::io::stderr(), "error: {text}"));
}
