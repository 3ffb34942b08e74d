//! Reads the effect from a tool's name: its leading verb, and the other verbs in it.

use super::words::{self, Form, Sense};

/// The verb in a name, as evidence of its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Has a verb that destroys.
    Destroys(String),
    /// Has a verb of change in the position of a verb.
    Writes(String),
    /// Starts with a verb that acts or makes something happen.
    Acts(String),
    /// Starts with a word that is as often a noun as a verb, and has no other verb.
    Thing(String),
    /// Contains such a word, but not at the start: `secret_key`.
    Noun(String),
    /// A noun or an acting verb, and a reading verb at the end: `issue_read`.
    ThingRead(String),
    /// Reads, but also contains a verb of change.
    Torn(String, String),
    /// Fetches something.
    Brings(String),
    /// Starts with an unambiguous reading verb.
    Reads(String),
    /// Starts or ends with a word that reads if it is a verb.
    Looks(String),
    /// Computes something.
    Computes(String),
    /// It has no verb.
    Nothing,
    /// Cannot be parsed reliably.
    Odd,
}

/// Maximum length of an examined name; the protocol allows 128 characters.
const MAX_NAME: usize = 160;

/// Question words at the start of a name: `is_valid`.
const QUESTIONS: [&str; 7] = ["is", "has", "does", "can", "which", "who", "what"];

/// Last words of names that start with an object: `run_list`.
const LAST_READS: [&str; 15] = [
    "get", "list", "describe", "show", "view", "find", "fetch", "count", "info", "status",
    "details", "stats", "history", "search", "lookup",
];

/// First words of names that act, although they only announce a result in a description:
/// `return_book`.
const FIRST_ACTS: [&str; 3] = ["return", "give", "provide"];

/// Examines a name.
pub(super) fn read(name: &str) -> Verb {
    // Letters of other scripts can look like Latin ones.
    if name.chars().any(|c| c.is_alphabetic() && !c.is_ascii()) || name.len() > MAX_NAME {
        let tokens = tokens(name.chars().take(MAX_NAME));
        return change(&tokens).unwrap_or(Verb::Odd);
    }
    let tokens = tokens(name.chars());
    change(&tokens).unwrap_or_else(|| without_change(&tokens))
}

/// Splits at non-letters, and before a capital that starts a word.
pub(super) fn tokens(name: impl Iterator<Item = char>) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = name.collect();
    for (at, c) in chars.iter().enumerate() {
        if !c.is_ascii_alphabetic() {
            tokens.push(std::mem::take(&mut word));
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let after = chars.get(at + 1);
        let is_start = c.is_ascii_uppercase()
            && (before.is_some_and(char::is_ascii_lowercase)
                || after.is_some_and(char::is_ascii_lowercase));
        if is_start {
            tokens.push(std::mem::take(&mut word));
        }
        word.push(c.to_ascii_lowercase());
    }
    tokens.push(word);
    tokens.retain(|token| !token.is_empty());
    tokens
}

/// The evidence from verbs of change, if there are any.
fn change(tokens: &[String]) -> Option<Verb> {
    let sense = |token: &String| change_in(token);
    let destroying = tokens.iter().find(|token| sense(token) == Some(Sense::Destroys));
    if let Some(token) = destroying {
        return Some(Verb::Destroys(token.clone()));
    }
    if let Some(joined) = joined(tokens) {
        return Some(Verb::Writes(joined.to_owned()));
    }
    // Prefers a verb that is not a noun, then the last one.
    let writing = tokens.iter().enumerate().filter(|(_, t)| sense(t) == Some(Sense::Writes));
    let (at, token) = writing.max_by_key(|(at, token)| (!words::is_noun_too(token), *at))?;
    let leading = tokens.iter().take(at).find_map(|token| Some((token, words::base(token)?)));
    match leading {
        Some((reading, Sense::Reads)) if !shows_to_people(tokens, reading) => {
            Some(Verb::Torn(reading.clone(), token.clone()))
        }
        Some((reading, Sense::Looks)) if at + 1 < tokens.len() => {
            Some(Verb::Torn(reading.clone(), token.clone()))
        }
        Some(_) | None => Some(Verb::Writes(token.clone())),
    }
}

/// The sense of a word that changes something, also if more is glued to it.
fn change_in(token: &str) -> Option<Sense> {
    match words::verb(token) {
        Some((sense, Form::Base)) => Some(sense),
        // `deletes_file` is rare and unambiguous.
        Some((Sense::Destroys, Form::Third)) if token != "drops" && token != "kills" => {
            Some(Sense::Destroys)
        }
        Some((_, Form::Third | Form::Ing)) => None,
        None => words::glued(token).map(|(_, sense)| sense),
    }
}

/// Finds a verb of change after `and` or `or`: `get_or_create`, `read_and_mark`.
fn joined(tokens: &[String]) -> Option<&str> {
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    pairs.filter(|(joint, _)| words::is_joint(joint)).find_map(|(_, word)| {
        let sense = change_in(word)?;
        let changes = matches!(sense, Sense::Writes | Sense::Acts | Sense::Thing);
        changes.then_some(word.as_str())
    })
}

/// True for `show_message`, which shows nothing to the caller.
fn shows_to_people(tokens: &[String], verb: &str) -> bool {
    let mut rest = tokens.iter().skip_while(|token| *token != verb);
    matches!(verb, "show" | "display") && rest.nth(1).is_some_and(|w| words::is_shown_to_people(w))
}

/// The verb in a name without verbs of change.
fn without_change(tokens: &[String]) -> Verb {
    if let Some(first) = tokens.first().filter(|first| QUESTIONS.contains(&first.as_str())) {
        return Verb::Looks(first.clone());
    }
    if let Some(first) = tokens.first().filter(|first| FIRST_ACTS.contains(&first.as_str())) {
        return Verb::Acts(first.clone());
    }
    let verbs: Vec<(usize, &String, Sense)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, token)| Some((at, token, words::base(token)?)))
        .collect();
    let Some((at, first, sense)) = verbs.first().copied() else { return Verb::Nothing };
    let last = verbs.last().filter(|(last, _, _)| *last > at && *last + 1 == tokens.len());
    let is_read = |sense| matches!(sense, Sense::Reads | Sense::Looks);
    let objects = tokens.iter().skip(at + 1).map(String::as_str);
    if words::changes_object(first, objects) {
        return Verb::Acts(first.clone());
    }
    match sense {
        Sense::Destroys | Sense::Writes => Verb::Writes(first.clone()),
        Sense::Acts => match last {
            Some((_, last, _)) if LAST_READS.contains(&last.as_str()) => {
                Verb::ThingRead((*last).clone())
            }
            Some(_) | None => Verb::Acts(first.clone()),
        },
        Sense::Thing => match last {
            Some((_, last, sense)) if is_read(*sense) => Verb::ThingRead((*last).clone()),
            Some((_, last, Sense::Acts)) => Verb::Acts((*last).clone()),
            Some(_) | None if at > 0 => Verb::Noun(first.clone()),
            Some(_) | None => Verb::Thing(first.clone()),
        },
        Sense::Brings => Verb::Brings(first.clone()),
        Sense::Reads if shows_to_people(tokens, first) => Verb::Acts(first.clone()),
        Sense::Reads => Verb::Reads(first.clone()),
        Sense::Looks => {
            let next = tokens.get(at + 1).map(String::as_str);
            match (first.as_str(), next, last) {
                ("check", Some("in" | "out"), _) => Verb::Writes(first.clone()),
                (_, _, Some((_, last, Sense::Acts | Sense::Thing))) => {
                    Verb::Torn(first.clone(), (*last).clone())
                }
                _ => Verb::Looks(first.clone()),
            }
        }
        Sense::Computes => Verb::Computes(first.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_where_words_begin() {
        let split = |name: &str| tokens(name.chars()).join(" ");
        assert_eq!(split("getHTTPStatus_v2-list.all"), "get http status v list all");
        assert_eq!(split("NPMDeps"), "npm deps");
        assert_eq!(split("__"), "");
    }

    #[test]
    fn a_name_is_read_by_the_verb_that_leads_it() {
        let own = str::to_owned;
        let table = [
            ("get_invoice", Verb::Reads(own("get"))),
            ("acme_fetch_rows", Verb::Reads(own("fetch"))),
            ("invoices_list", Verb::Looks(own("list"))),
            ("is_open", Verb::Looks(own("is"))),
            ("note_read", Verb::ThingRead(own("read"))),
            ("run_list", Verb::ThingRead(own("list"))),
            ("run_query", Verb::Acts(own("run"))),
            ("mark_mail_read", Verb::Acts(own("mark"))),
            ("get_or_create_user", Verb::Writes(own("create"))),
            ("fetch_and_star", Verb::Writes(own("star"))),
            ("list_add", Verb::Writes(own("add"))),
            ("get_merge_request", Verb::Torn(own("get"), own("merge"))),
            ("get_merge_create", Verb::Torn(own("get"), own("create"))),
            ("list_merge_create", Verb::Writes(own("create"))),
            ("list_merge_vote", Verb::Writes(own("vote"))),
            ("query_run", Verb::Torn(own("query"), own("run"))),
            ("check_in", Verb::Writes(own("check"))),
            ("get_delete", Verb::Destroys(own("delete"))),
            ("deletefile", Verb::Destroys(own("deletefile"))),
            ("list_deleted_files", Verb::Looks(own("list"))),
            ("pin_message", Verb::Thing(own("pin"))),
            ("secret_key", Verb::Noun(own("key"))),
            ("weather", Verb::Nothing),
            ("", Verb::Nothing),
            ("g\u{435}t_user", Verb::Odd),
            ("g\u{435}t_delete", Verb::Destroys(own("delete"))),
        ];
        for (name, expected) in table {
            assert_eq!(read(name), expected, "{name}");
        }
        assert_eq!(read(&"get_".repeat(10_000)), Verb::Odd);
    }
}
