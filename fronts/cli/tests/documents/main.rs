//! The documents show commands as they are: the generated reference, and every command in a block or a line.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod reference;

use std::ffi::OsString;
use std::fs;

use capstan_cli::args::Cli;
use capstan_tidy::markdown::{Block, blocks, inline_code};
use capstan_tidy::tree::{File, files_ending, root};
use clap::CommandFactory;

/// Documents that speak of earlier and later versions, where commands differ.
const OTHER_VERSIONS: [&str; 3] = ["CHANGELOG.md", "GLOSSARY.md", "docs/adr/"];

fn documents() -> Vec<File> {
    let other = |file: &File| OTHER_VERSIONS.iter().any(|path| file.path.starts_with(path));
    files_ending(".md").unwrap().into_iter().filter(|file| !other(file)).collect()
}

/// The definition of the command line, with the options of every command in each of them.
fn built() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// The commands that a block shows, each with its line and its words.
fn shown(block: &Block) -> Vec<(usize, Vec<String>)> {
    let typed: Vec<(usize, &str)> = match block.language.as_str() {
        "sh" => block.lines.iter().map(String::as_str).zip(block.line + 1..).map(swapped).collect(),
        "console" => {
            let lines = block.lines.iter().zip(block.line + 1..);
            lines.filter_map(|(line, at)| Some((at, line.strip_prefix("$ ")?))).collect()
        }
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    let mut begun = String::new();
    for (line, text) in typed {
        begun.push_str(text.trim_end_matches('\\'));
        // A quote that is still open, and a backslash at the end, go on in the next line.
        match shlex::split(&begun) {
            Some(words) if !text.ends_with('\\') => {
                begun.clear();
                let ends = |word: &String| ["|", "&&", "||", ";", "&"].contains(&word.as_str());
                found.extend(words.split(ends).map(|words| (line, words.to_vec())));
            }
            _ => begun.push('\n'),
        }
    }
    assert!(begun.is_empty(), "line {}: a command without an end: {begun}", block.line);
    found
}

fn swapped((text, line): (&str, usize)) -> (usize, &str) {
    (line, text)
}

/// The words of a command of ours, from `capstan` on, without redirections; `None` for other programs.
fn ours(words: &[String]) -> Option<Vec<String>> {
    let is_variable = |word: &&String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let words: Vec<String> = words.iter().skip_while(is_variable).cloned().collect();
    let rest = match words.as_slice() {
        [program, rest @ ..] if program == "capstan" => rest,
        [cargo, run, release, dashes, rest @ ..]
            if [cargo, run, release, dashes].map(String::as_str)
                == ["cargo", "run", "--release", "--"] =>
        {
            rest
        }
        _ => return None,
    };
    let typed = rest.iter().take_while(|word| !word.starts_with('>') && !word.starts_with("2>"));
    Some(std::iter::once("capstan".to_owned()).chain(typed.cloned()).collect())
}

#[test]
fn every_command_in_a_block_is_one_that_capstan_reads() {
    let mut count = 0;
    for document in documents() {
        for block in blocks(&document.text) {
            for (line, words) in shown(&block) {
                let Some(words) = ours(&words) else { continue };
                let read =
                    capstan_cli::parse(words.iter().map(OsString::from).collect(), String::new());
                let helps = words.iter().any(|word| word == "--help" || word == "--version");
                assert!(read.is_ok() || helps, "{}:{line}: {words:?}", document.path);
                count += 1;
            }
        }
    }
    assert!(count > 50, "only {count} commands are shown");
}

#[test]
fn every_command_and_option_in_a_line_exists() {
    let command = built();
    for document in documents() {
        for (line, code) in inline_code(&document.text) {
            let Some(rest) = code.strip_prefix("capstan ") else { continue };
            if let Err(problem) = exists(&command, rest) {
                panic!("{}:{line}: `{code}`: {problem}", document.path);
            }
        }
    }
}

/// Checks the verb and the options of a command that may have placeholders such as `NAME` and `[…]`.
fn exists(command: &clap::Command, rest: &str) -> Result<(), String> {
    let mut at = command;
    for (nth, word) in rest.split_whitespace().enumerate() {
        if word == "--" || word == "…" {
            break;
        }
        let word = word.trim_matches(['[', ']', '(', ')', ',', ';', '…']);
        if let Some(option) = word.strip_prefix("--") {
            let option = option.split(['=', '[']).next().unwrap_or_default();
            let known = |arg: &clap::Arg| {
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some(option) || aliases.contains(&option)
            };
            let common = ["help", "version"].contains(&option);
            // Arguments of a prompt or a tool can be written as options.
            let own = ["prompt", "call"].contains(&at.get_name());
            if !common && !own && !at.get_arguments().any(known) {
                return Err(format!("`{}` has no option `--{option}`", at.get_name()));
            }
        } else if let Some(verb) = at.find_subcommand(word) {
            at = verb;
        } else if nth == 0 && word.starts_with(|c: char| c.is_ascii_lowercase()) && word != "mcp" {
            return Err(format!("there is no command `{word}`"));
        }
    }
    Ok(())
}

#[test]
fn a_wrong_command_a_wrong_option_and_an_option_of_another_command_are_found() {
    let command = built();
    for wrong in ["lst", "add --openap X", "tools --verify", "approvals yes ID --csv", "--jsn list"]
    {
        assert!(exists(&command, wrong).is_err(), "{wrong}");
    }
    for right in
        ["list", "add NAME -- npx --x", "audit --verify", "approvals yes ID --json", "--json"]
    {
        exists(&command, right).unwrap();
    }
}

#[test]
fn the_reference_of_the_commands_is_up_to_date() {
    let path = root().join("docs/reference/commands.md");
    let generated = reference::page(&built());
    if std::env::var_os("CAPSTAN_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, &generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "docs/reference/commands.md is stale; run `./dev/bless`");
}
