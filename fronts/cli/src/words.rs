//! Rearranges typed words before they are parsed.

use std::ffi::OsString;

use crate::options::{Own, own};

/// Rearranges words that our parser does not support: `mcp` before a verb, which other programs
/// use, and, for `add`, options between the name and the command, and the first `--`, wherever it
/// is.
pub(crate) fn normalise(command: &clap::Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(mut verb) = verb_at(&[command], &words, 1) else { return words };
    if has_alias(command, &words) {
        words.remove(verb);
        verb = verb_at(&[command], &words, verb).unwrap_or(verb);
    }
    if words.get(verb).is_some_and(|word| word == "add") {
        let dashes = words.iter().position(|word| word == "--").filter(|at| *at > verb);
        if let Some(at) = dashes {
            words.remove(at);
        }
        let add = command.find_subcommand("add");
        let commands: Vec<&clap::Command> = [command].into_iter().chain(add).collect();
        if let Some(name) = verb_at(&commands, &words, verb + 1) {
            let end = dashes.unwrap_or(words.len());
            let mut after = name + 1;
            while after < end
                && let Some(word) = words.get(after)
                && let Some(own) = own(&commands, &word.to_string_lossy())
            {
                after += match own {
                    Own::WithValue => 2,
                    Own::Alone => 1,
                };
            }
            let after = after.min(words.len());
            if let Some(moved) = words.get_mut(name..after) {
                moved.rotate_left(1);
            }
        }
    }
    words
}

/// Inserts the verb `chat` if `-p` or `--print` stands before any verb.
pub(crate) fn with_chat(command: &clap::Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let chat = command.find_subcommand("chat");
    let commands: Vec<&clap::Command> = [command].into_iter().chain(chat).collect();
    let mut at = 1;
    while let Some(word) = words.get(at).map(|word| word.to_string_lossy()) {
        if word == "-p" || word == "--print" {
            words.insert(1, "chat".into());
            break;
        }
        at += match own(&commands, &word) {
            Some(Own::WithValue) => 2,
            Some(Own::Alone) => 1,
            None if word.starts_with('-') => 1,
            None => break,
        };
    }
    words
}

/// Adds `chat` where no command is named: a person who types only `capstan` wants to talk.
pub(crate) fn with_conversation(
    command: &clap::Command,
    mut words: Vec<OsString>,
) -> Vec<OsString> {
    let chat = command.find_subcommand("chat");
    let commands: Vec<&clap::Command> = [command].into_iter().chain(chat).collect();
    let mut at = 1;
    while let Some(word) = words.get(at).map(|word| word.to_string_lossy()) {
        at += match own(&commands, &word) {
            // Help and version are those of the program.
            _ if matches!(&*word, "-h" | "--help" | "-V" | "--version") => return words,
            Some(Own::WithValue) => 2,
            Some(Own::Alone) => 1,
            None => return words,
        };
    }
    if !words.is_empty() {
        words.insert(1, "chat".into());
    }
    words
}

/// True if `mcp` stands before the verb.
pub(crate) fn has_alias(command: &clap::Command, words: &[OsString]) -> bool {
    let verb = verb_at(&[command], words, 1);
    verb.is_some_and(|at| words.get(at).is_some_and(|word| word == "mcp") && words.len() > at + 1)
}

/// The index of the first word from `start` on that is neither an option nor the value of one.
fn verb_at(commands: &[&clap::Command], words: &[OsString], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let word = words.get(at)?.to_string_lossy();
        at += match own(commands, &word) {
            Some(Own::WithValue) => 2,
            Some(Own::Alone) => 1,
            None if word.starts_with('-') => 1,
            None => return Some(at),
        };
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        assert_eq!(normalise(&Cli::command(), words(typed)), words(expected));
    }

    #[test]
    fn the_first_double_dash_of_an_add_is_dropped_wherever_it_stands() {
        check("capstan add s -- npx -y p", "capstan add s npx -y p");
        check("capstan add s python x.py -- --flag", "capstan add s python x.py --flag");
        check("capstan add s npx -- a -- b", "capstan add s npx a -- b");
        check("capstan call s__t -- a=b", "capstan call s__t -- a=b");
        check("capstan --config f add s -- npx", "capstan --config f add s npx");
        check("capstan --config=f add s -- npx", "capstan --config=f add s npx");
    }

    #[test]
    fn options_of_an_add_may_stand_between_the_name_and_the_command() {
        check("capstan add s --openapi f", "capstan add --openapi f s");
        check(
            "capstan add -t cli s -e A=b --force x -e",
            "capstan add -t cli -e A=b --force s x -e",
        );
        check("capstan add s -- --openapi f", "capstan add s --openapi f");
        check("capstan add s --unknown x", "capstan add s --unknown x");
        check("capstan add s --openapi", "capstan add --openapi s");
    }

    #[test]
    fn the_value_of_an_option_is_not_taken_for_a_verb() {
        check("capstan --config mcp list", "capstan --config mcp list");
        check("capstan --config add call x -- y", "capstan --config add call x -- y");
    }

    #[test]
    fn print_before_a_verb_is_a_chat() {
        let check = |typed: &str, expected: &str| {
            assert_eq!(with_chat(&Cli::command(), words(typed)), words(expected));
        };
        check("capstan -p list", "capstan chat -p list");
        check("capstan --model o/m --print hi", "capstan chat --model o/m --print hi");
        check("capstan --json -p", "capstan chat --json -p");
        check("capstan call s__t -p", "capstan call s__t -p");
        check("capstan --config -p list", "capstan --config -p list");
        check("capstan", "capstan");
    }

    #[test]
    fn without_a_command_a_person_talks() {
        let check = |typed: &str, expected: &str| {
            assert_eq!(with_conversation(&Cli::command(), words(typed)), words(expected));
        };
        check("capstan", "capstan chat");
        check("capstan --demo", "capstan chat --demo");
        check("capstan --config f", "capstan chat --config f");
        check("capstan --model o/m", "capstan chat --model o/m");
        for other in ["capstan --help", "capstan -V", "capstan list", "capstan lst", "capstan --x"]
        {
            check(other, other);
        }
    }

    #[test]
    fn mcp_before_a_verb_is_an_alias() {
        check("capstan mcp add s -- npx", "capstan add s npx");
        check("capstan --json mcp list", "capstan --json list");
        check("capstan mcp --config f add s -- npx", "capstan --config f add s npx");
        check("capstan mcp", "capstan mcp");
    }
}
