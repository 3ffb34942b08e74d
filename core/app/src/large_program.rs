//! Advice for command-line programs that offer more tools than a model can use.

use capstan_config::{Kind, ServerEntry};
use capstan_hub::Hub;
use capstan_hub::ports::Item;
use capstan_model::{Effect, ItemId};

use crate::api::operator;

/// Number of tokens of definitions from which advice is given.
const MANY_TOKENS: usize = 10_000;

/// Number of subcommands in the example.
const SHOWN: usize = 3;

/// The line that limits a program to the subcommands that are needed, with the figures that call
/// for it; `None` for other servers, and for programs with few tools.
pub(crate) fn advice(hub: &Hub, entry: &ServerEntry, tools: &[Item]) -> Option<String> {
    let Kind::Cli(program) = &entry.usable()?.kind else { return None };
    let tokens = hub.tokens(&entry.name, tools, &operator());
    if tokens < MANY_TOKENS {
        return None;
    }
    let command = program.program.command.rsplit('/').next().unwrap_or_default();
    let reads = tools.iter().filter(|tool| {
        let id = ItemId { server: entry.name.clone(), item: tool.name.clone() };
        hub.policy().classify(&id, &tool.definition).effect == Effect::Read
    });
    // A tool is named after the program and its subcommand: `git_status`.
    let words = reads.filter_map(|tool| tool.name.strip_prefix(command)?.strip_prefix('_'));
    let plain = words.filter(|word| word.bytes().all(|b| b.is_ascii_alphanumeric())).take(SHOWN);
    let example: Vec<String> = plain.map(|word| format!("\"{word}\"")).collect();
    let example = if example.is_empty() { "\"SUBCOMMAND\"".to_owned() } else { example.join(", ") };
    let name = &entry.name;
    let count = hub.count_shown(name, tools, &operator());
    Some(format!(
        "{count} tools cost a model about {},{:03} tokens; to offer only some, write \
         `cli_only = [{example}]` under `[servers.{name}]`",
        tokens / 1000,
        tokens % 1000,
    ))
}
