//! Measurements of the build that ships: `./dev/bench NAME [--json]`.
//!
//! Times depend on the machine, so whatever has a goal is a ratio of two things measured side by
//! side in one run; such a goal that is missed is reported, and never makes the run fail. Counts of
//! instructions are the same everywhere, so that there a missed goal does.

mod attached;
mod auth;
mod call;
mod classifier;
mod gateway;
mod life;
mod policy;
mod reading;
mod search;
mod count;
mod relay;
mod scanner;
mod oneshot;
mod peer;
mod start;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What is measured.
#[derive(Parser)]
#[command(name = "./dev/bench", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    /// What a call costs: relayed by a hub that runs, and one-shot from the command line
    Call {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Measure the cost that authentication of callers adds to a call at the gateway
    Auth {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
    },
    /// What the gateway costs beside bare proxies: calls, lists, start and memory
    Gateway {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
        /// Tries everything once and briefly; the figures mean little
        #[arg(long)]
        quick: bool,
    },
    /// How often the effect of a tool is told from its definition, and how fast
    Classifier {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
        /// Also lists what was not told right
        #[arg(long)]
        verbose: bool,
    },
    /// How many poisoned definitions and answers are found, how many honest ones are flagged, how fast
    Scanner {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
        /// Also lists what was missed or flagged wrongly
        #[arg(long)]
        verbose: bool,
    },
    /// What it costs to decide on a call, with many rules, roles and tools
    Policy {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
    },
    /// What many servers cost a gateway that remembers them: its start and its memory
    Start {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
    },
    /// What a server that exits again and again does to the others, and when a death is noticed
    Life {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
    },
    /// How often tool search finds the right tools, and how fast
    Search {
        /// Prints one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Decides and does nothing else, to be run under valgrind
    #[command(hide = true)]
    Decide { rules: usize, roles: usize, tools: usize, times: u32 },
    /// Relays calls and nothing else, to be run under valgrind
    #[command(hide = true)]
    Relay {
        way: relay::Way,
        /// Size of the answer's text, in bytes
        size: usize,
        times: u32,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().name {
        Name::Call { json: true } => call::print_json(),
        Name::Call { json: false } => call::print_tables(),
        Name::Auth { json } => {
            let report = auth::Report::measure()?;
            if json { report.print_json() } else { report.print_table() }
        }
        Name::Gateway { json, quick } => {
            let effort = if quick { gateway::Effort::Quick } else { gateway::Effort::Full };
            let report = gateway::Report::measure(effort);
            if json { report.print_json() } else { report.print_table() }
        }
        Name::Classifier { json, verbose } => {
            let report = classifier::Report::measure(&classifier::data())?;
            let detail =
                if verbose { classifier::Detail::Misses } else { classifier::Detail::Numbers };
            if json { report.print_json() } else { report.print_table(detail) }
        }
        Name::Scanner { json, verbose } => {
            let report = scanner::Report::measure(&classifier::data())?;
            let detail =
                if verbose { classifier::Detail::Misses } else { classifier::Detail::Numbers };
            if json { report.print_json() } else { report.print_table(detail) }
        }
        Name::Policy { json } => {
            policy::print(if json { policy::Form::Json } else { policy::Form::Table })
        }
        Name::Start { json } => {
            let report = start::Report::measure()?;
            if json { report.print_json() } else { report.print_table() }
        }
        Name::Life { json } => {
            let report = life::Report::measure()?;
            if json { report.print_json() } else { report.print_table() }
        }
        Name::Search { json } => {
            let report = search::Report::measure(&classifier::data())?;
            if json { report.print_json() } else { report.print_table() }
        }
        Name::Decide { rules, roles, tools, times } => {
            policy::run(rules, roles, tools, times)?;
            Ok(ExitCode::SUCCESS)
        }
        Name::Relay { way, size, times } => {
            relay::run(way, size, times)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_door_and_the_crate_know_the_same_names() {
        let door = include_str!("../../dev/bench");
        let list = door.lines().find_map(|line| line.strip_prefix("NAMES=(")?.strip_suffix(')'));
        let command = Cli::command();
        let names: Vec<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(list, Some(names.join(" ").as_str()));
    }

    #[test]
    fn a_name_nobody_knows_is_refused() {
        for words in [&["bench"][..], &["bench", "unknown"], &["bench", "call", "--quick"]] {
            assert!(Cli::try_parse_from(words).is_err(), "{words:?}");
        }
    }
}
