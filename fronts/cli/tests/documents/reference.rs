//! The reference page of all commands, made from their definition.

use clap::{Arg, Command};

const HEAD: &str = "<!-- Generated from fronts/cli/src/args/ by `./dev/bless`. -->

# Commands

`capstan COMMAND --help` shows the same on a terminal, and `capstan man` prints it as a manual page.
`--json` works with every command; the shapes are in [JSON output](json.md). Exit codes are in
[errors and exit codes](../errors.md).

";

/// The page.
pub(crate) fn page(command: &Command) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("## Options of every command\n\n");
    page.push_str(&table(command.get_arguments().filter(|arg| arg.is_global_set())));
    for verb in verbs(command) {
        section(verb, 2, &mut page);
    }
    page
}

/// The commands below a command, without `help`.
fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
}

fn section(command: &Command, depth: usize, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    page.extend([format!("\n{} `{name}`\n\n", "#".repeat(depth))]);
    page.extend([format!("{}.\n\n```text\n{usage}\n```\n\n", about.trim_end_matches('.'))]);
    page.push_str(&table(command.get_arguments().filter(|arg| !arg.is_global_set())));
    if let Some(more) = command.get_after_help() {
        page.push_str(&notes(&more.to_string()));
    }
    for verb in verbs(command) {
        section(verb, depth + 1, page);
    }
}

/// The arguments and options of a command, one in a row.
fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let rows: String = arguments.filter(shown).map(row).collect();
    if rows.is_empty() { rows } else { format!("| argument | meaning |\n|---|---|\n{rows}") }
}

fn row(arg: &Arg) -> String {
    let words = spelled(arg);
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() {
        let names: Vec<_> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        help.extend([format!(". One of {}", names.join(", "))]);
    }
    let defaults = arg.get_default_values();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let values: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        help.extend([format!(" [default: `{}`]", values.join(" "))]);
    }
    if let Some(variable) = arg.get_env() {
        help.extend([format!(" [variable: `{}`]", variable.to_string_lossy())]);
    }
    let escaped = |text: &str| text.replace('|', "\\|");
    format!("| {} | {} |\n", escaped(&words), escaped(&help))
}

/// The argument as it is typed: `-s`, `--scope SCOPE`.
fn spelled(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let many =
        if arg.get_num_args().is_some_and(|range| range.max_values() > 1) { "…" } else { "" };
    if arg.is_positional() {
        return format!("`{value}{many}`");
    }
    let value = match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
        (false, _) => String::new(),
        (true, true) => format!("[={value}]"),
        (true, false) => format!(" {value}{many}"),
    };
    let long = arg.get_long().map(|long| format!("`--{long}{value}`"));
    let short = arg.get_short().map(|short| format!("`-{short}`"));
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.iter().map(|alias| format!("`--{alias}`"));
    short.into_iter().chain(long).chain(aliases).collect::<Vec<_>>().join(", ")
}

/// The text below a help: paragraphs, and examples as a block.
fn notes(text: &str) -> String {
    let mut shown = String::new();
    let mut in_block = false;
    for line in text.lines() {
        let example = line.strip_prefix("  ");
        if example.is_some() != in_block {
            shown.push_str(if in_block { "```\n" } else { "\n\n```sh\n" });
            in_block = example.is_some();
        }
        match example {
            // A description that stands behind an example becomes a comment.
            Some(example) => match example.split_once("  ") {
                Some((typed, about)) => {
                    shown.extend([format!("{typed:<40} # {}\n", about.trim())]);
                }
                None => shown.extend([format!("{example}\n")]),
            },
            None => shown.extend([format!("\n{line}")]),
        }
    }
    shown.push_str(if in_block { "```\n" } else { "\n" });
    shown
}
