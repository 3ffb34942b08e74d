//! Distinguishes our own options from words that belong to a server or prompt.

use std::ffi::OsString;

/// The number of words that an option of ours takes.
pub(super) enum Own {
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
pub(super) fn own(commands: &[&clap::Command], word: &str) -> Option<Own> {
    if matches!(word, "-h" | "--help" | "-V" | "--version") {
        return Some(Own::Alone);
    }
    let option = word.strip_prefix("--")?;
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    let options = commands.iter().flat_map(|command| command.get_arguments());
    let known = options.into_iter().find(|argument| argument.get_long() == Some(name))?;
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
