//! Distinguishes our own options from words that belong to a server, tool or prompt.

use std::ffi::OsString;

/// The number of words that an option of ours takes.
pub(crate) enum Own {
    Alone,
    WithValue,
}

/// Consumes options of ours; returns the first word that is not one.
pub(super) fn take_options(
    words: &mut impl Iterator<Item = OsString>,
    taken: &mut Vec<OsString>,
    own: impl Fn(&OsString) -> Option<Own>,
) -> Option<OsString> {
    loop {
        let word = words.next()?;
        match own(&word) {
            Some(Own::Alone) => taken.push(word),
            Some(Own::WithValue) => {
                taken.push(word);
                taken.extend(words.next());
            }
            None => return Some(word),
        }
    }
}

/// Recognises an option of ours; `None` for other words.
pub(crate) fn own(commands: &[&clap::Command], word: &str) -> Option<Own> {
    if matches!(word, "-h" | "--help" | "-V" | "--version") {
        return Some(Own::Alone);
    }
    let mut options = commands.iter().flat_map(|command| command.get_arguments());
    let (known, value) = if let Some(option) = word.strip_prefix("--") {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        (options.find(|argument| argument.get_long() == Some(name))?, value)
    } else {
        let mut letters = word.strip_prefix('-')?.chars();
        let letter = Some(letters.next()?);
        let value = Some(letters.as_str()).filter(|value| !value.is_empty());
        (options.find(|argument| argument.get_short() == letter)?, value)
    };
    let takes_next = known.get_action().takes_values() && !known.is_require_equals_set();
    if value.is_none() && !takes_next {
        return Some(Own::Alone);
    }
    match (known.get_action().takes_values(), value) {
        (true, None) => Some(Own::WithValue),
        (true, Some(_)) | (false, None) => Some(Own::Alone),
        // A switch takes no value, so this word is for a prompt's argument of the same name.
        (false, Some(_)) => None,
    }
}

/// Moves our own options from among the words of a tool or prompt to before them.
///
/// The server decides which `--name` arguments it has, so our parser cannot know them; every word
/// that is not one of our options is left to it.
pub(crate) fn normalise(command: &clap::Command, words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let mut before: Vec<OsString> = words.by_ref().take(1).collect();
    let ours = |word: &OsString| own(&[command], word.to_str()?);
    let Some(verb) = take_options(&mut words, &mut before, ours) else { return before };
    let is_open = ["call", "why", "prompt"].iter().any(|open| verb == *open);
    let found = command.find_subcommand(&verb).filter(|_| is_open);
    before.push(verb);
    let Some(found) = found else {
        before.extend(words);
        return before;
    };
    let own = |word: &OsString| own(&[command, found], word.to_str()?);
    let mut theirs: Vec<OsString> = Vec::new();
    while let Some(word) = take_options(&mut words, &mut before, own) {
        let is_end = word == "--";
        if !(is_end && theirs.is_empty()) {
            theirs.push(word);
        }
        if is_end {
            theirs.extend(words.by_ref());
        }
    }
    if !theirs.is_empty() {
        before.push("--".into());
    }
    before.extend(theirs);
    before
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        assert_eq!(normalise(&Cli::command(), words(typed)), words(expected), "{typed}");
    }

    #[test]
    fn what_is_not_ours_is_left_to_the_prompt() {
        check("capstan prompt s:p --a b --c=d e", "capstan prompt -- s:p --a b --c=d e");
        check("capstan prompt s:p", "capstan prompt -- s:p");
        check("capstan prompt s:p --json=x -5", "capstan prompt -- s:p --json=x -5");
        check("capstan call s:t --a 1 --json b=2", "capstan call --json -- s:t --a 1 b=2");
        check("capstan call prompt --json a=b", "capstan call --json -- prompt a=b");
        check("capstan why s:t --role dev --a 1", "capstan why --role dev -- s:t --a 1");
        check("capstan call s:t -", "capstan call -- s:t -");
    }

    #[test]
    fn our_own_options_may_stand_anywhere_before_a_double_dash() {
        check("capstan prompt s:p a=b --json", "capstan prompt --json -- s:p a=b");
        check("capstan prompt --json s:p --a b", "capstan prompt --json -- s:p --a b");
        check("capstan --config f prompt p --debug", "capstan --config f prompt --debug -- p");
        check(
            "capstan prompt p x --elicit defaults --complete=a=b --demo",
            "capstan prompt --elicit defaults --complete=a=b --demo -- p x",
        );
        check("capstan prompt p -- --json", "capstan prompt -- p -- --json");
        check("capstan prompt -- p --json", "capstan prompt -- p --json");
    }

    #[test]
    fn help_and_other_commands_stay_as_they_are() {
        for line in [
            "capstan",
            "capstan --version",
            "capstan prompt",
            "capstan prompt --help",
            "capstan prompts --json x",
            "capstan --json list",
            "capstan tools call --a b",
        ] {
            check(line, line);
        }
        check("capstan prompt p --help", "capstan prompt --help -- p");
        check("capstan call s:t -h", "capstan call -h -- s:t");
    }
}
