//! Parses what a user types to a model: slash commands, and `@` before resources and files.

use std::ops::Range;

use capstan_app::api::Slot;

use crate::arguments::slots::{self, SlotError};

/// A typed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed<'a> {
    /// A slash command: its name without the slash, and the rest of the text.
    Command(&'a str, &'a str),
    /// A message for the model.
    Message(&'a str),
}

/// A `@name` in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention<'a> {
    /// The name, without the `@`.
    pub name: &'a str,
    /// Its position, with the `@`.
    pub range: Range<usize>,
}

/// Characters that end a sentence rather than a name.
const PUNCTUATION: [char; 7] = [',', '.', ';', ':', '!', '?', ')'];

/// Tells a slash command from a message. A path such as `/etc/hosts` is no command.
pub fn read(text: &str) -> Typed<'_> {
    let trimmed = text.trim();
    let Some(rest) = trimmed.strip_prefix('/') else { return Typed::Message(text) };
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let like_a_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if name.is_empty() || !name.chars().all(like_a_name) {
        return Typed::Message(text);
    }
    Typed::Command(name, rest.trim())
}

/// The names after `@` in a message, in order. A `@` within a word, as in an address, begins none.
pub fn mentions(text: &str) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    let mut before = ' ';
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let start = at;
        at += c.len_utf8();
        if c == '@' && (before.is_whitespace() || matches!(before, '(' | '"' | '\'')) {
            let rest = text.get(at..).unwrap_or_default();
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            let name = word.trim_end_matches(PUNCTUATION);
            if !name.is_empty() {
                at += name.len();
                found.push(Mention { name, range: start..at });
            }
        }
        before = c;
    }
    found
}

/// Splits a text into words. Quotes hold a word together, at its beginning or after `=`; a quote
/// that does not end stands for itself.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = word(rest);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// The first word of a text, and what follows it.
fn word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next().filter(|c| !c.is_whitespace()) {
        let may_open = word.is_empty() || word.ends_with('=');
        if may_open
            && matches!(c, '"' | '\'')
            && let Some((quoted, after)) = quoted(rest, c)
        {
            word.push_str(&quoted);
            rest = after;
            continue;
        }
        word.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    (word, rest)
}

/// A quoted text and what follows it; a backslash keeps a quote within.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if characters.peek().is_some_and(|(_, next)| *next == quote || *next == '\\') => {
                inside.extend(characters.next().map(|(_, next)| next));
            }
            c if c == quote => {
                let after = text.get(at + c.len_utf8()..)?;
                // Within a word, as in `'tis'nt`, it is no quote.
                let ends = after.is_empty() || after.starts_with(char::is_whitespace);
                return ends.then_some((inside, after));
            }
            c => inside.push(c),
        }
    }
    None
}

/// Assigns words to the arguments of a prompt; the last argument takes the rest of the line.
///
/// # Errors
/// If a word names no argument, or a required one is missing.
pub fn fill(words: &[String], slots: &[Slot]) -> Result<Vec<(String, String)>, SlotError> {
    let mut words = words.to_vec();
    loop {
        match slots::fill(&words, slots) {
            // The last two words without a name become one, until they fit.
            Err(error @ SlotError::TooMany { .. }) => {
                let bare = bare(&words, slots);
                let [.., first, second] = bare.as_slice() else { break Err(error) };
                let tail = words.remove(*second);
                let Some(head) = words.get_mut(*first) else { break Err(error) };
                head.push(' ');
                head.push_str(&tail);
            }
            other => break other,
        }
    }
}

/// The positions of words that are values without a name.
fn bare(words: &[String], slots: &[Slot]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut takes_next = false;
    for (at, word) in words.iter().enumerate() {
        if std::mem::take(&mut takes_next) {
            continue;
        }
        let by_name = |name: &str| slots.iter().any(|slot| slot.name == name);
        match (word.strip_prefix("--"), word.split_once('=')) {
            (Some(option), _) => takes_next = !option.contains('='),
            (None, Some((name, _))) if by_name(name) => {}
            (None, _) => found.push(at),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use capstan_app::api::Need;

    use super::*;

    #[test]
    fn a_command_begins_with_a_slash_and_a_path_does_not() {
        for (text, expected) in [
            ("/mcp list", Typed::Command("mcp", "list")),
            (" /my-server:analyze-code --a b\n", Typed::Command("my-server:analyze-code", "--a b")),
            ("/help", Typed::Command("help", "")),
            ("/etc/hosts says what?", Typed::Message("/etc/hosts says what?")),
            ("/ what", Typed::Message("/ what")),
            ("//x", Typed::Message("//x")),
            ("why /mcp?", Typed::Message("why /mcp?")),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn names_after_an_at_sign_are_found_and_addresses_are_not() {
        let names =
            |text| mentions(text).into_iter().map(|mention| mention.name).collect::<Vec<_>>();
        assert_eq!(names("see @docs:readme, and (@src/main.rs)."), ["docs:readme", "src/main.rs"]);
        assert_eq!(names("@s:file:///a.txt"), ["s:file:///a.txt"]);
        assert_eq!(names("me@example.com @ @, a@b"), [""; 0]);
        let mention = &mentions("é @x y")[0];
        assert_eq!("é @x y".get(mention.range.clone()), Some("@x"));
    }

    #[test]
    fn quotes_hold_words_together() {
        let cases: [(&str, &[&str]); 7] = [
            (r#""LLxprt Code" reverent"#, &["LLxprt Code", "reverent"]),
            (r"--focus='a b' c", &["--focus=a b", "c"]),
            (r#"--title "a \"b\" c""#, &["--title", "a \"b\" c"]),
            ("don't stop", &["don't", "stop"]),
            ("'tis fine", &["'tis", "fine"]),
            (r#""" x"#, &["", "x"]),
            ("  ", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn arguments_of_prompts_are_given_by_name_by_position_and_to_the_end_of_the_line() {
        let slot = |name: &str, need| Slot { name: name.to_owned(), need, description: None };
        let slots = [slot("language", Need::Required), slot("focus", Need::Optional)];
        let fill = |text: &str| {
            let filled = fill(&words(text), &slots).map_err(|error| error.to_string())?;
            let pair = |(name, value)| format!("{name}={value}");
            Ok::<_, String>(filled.into_iter().map(pair).collect::<Vec<_>>().join("|"))
        };
        let good = |text: &str, expected: &str| assert_eq!(fill(text), Ok(expected.to_owned()));
        good("--language typescript --focus performance", "language=typescript|focus=performance");
        good("--language=ts speed", "language=ts|focus=speed");
        good("ts speed and safety", "language=ts|focus=speed and safety");
        good("--focus speed C plus plus", "language=C plus plus|focus=speed");
        good(r#""C plus plus""#, "language=C plus plus");
        for bad in ["", "--focus x", "--langage ts", "--language"] {
            assert!(fill(bad).is_err(), "{bad}");
        }
        assert!(super::fill(&words("x"), &[]).is_err());
    }
}
