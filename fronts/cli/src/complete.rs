//! Completions that know the names of servers and tools.

use std::ffi::OsStr;
use std::sync::Arc;

use clap::CommandFactory;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::args::{Cli, Options};
use crate::host::Host;

/// The command with everything it can complete.
pub fn command(host: &Arc<dyn Host>) -> clap::Command {
    let mut command = Cli::command();
    for verb in ["get", "remove", "enable", "disable", "doctor"] {
        let host = Arc::clone(host);
        let names = ArgValueCompleter::new(move |typed: &OsStr| fitting(typed, servers(&*host)));
        command = command.mut_subcommand(verb, |verb| verb.mut_arg("name", |arg| arg.add(names)));
    }
    for (verb, argument) in [("call", "tool"), ("why", "tool"), ("tools", "name")] {
        let host = Arc::clone(host);
        let names = ArgValueCompleter::new(move |typed: &OsStr| {
            let mut names = tools(&*host);
            if verb == "tools" {
                names.extend(servers(&*host));
            }
            fitting(typed, names)
        });
        command = command.mut_subcommand(verb, |verb| verb.mut_arg(argument, |arg| arg.add(names)));
    }
    command
}

fn servers(host: &dyn Host) -> Vec<String> {
    match host.load(&Options::default()) {
        Ok(setup) => setup.loaded.config.servers.keys().map(ToString::to_string).collect(),
        Err(_) => Vec::new(),
    }
}

/// The tools seen last time; starting servers at every press of Tab would be rude.
fn tools(host: &dyn Host) -> Vec<String> {
    let known = servers(host);
    let remembered = host.remembered().into_iter().filter(|(server, _)| known.contains(server));
    remembered
        .flat_map(|(server, tools)| tools.into_iter().map(move |tool| format!("{server}__{tool}")))
        .collect()
}

fn fitting(typed: &OsStr, names: Vec<String>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fits = |name: &String| name.starts_with(typed.as_ref());
    names.into_iter().filter(fits).map(CompletionCandidate::new).collect()
}
