//! Converts a program's output to plain lines.

use std::iter::Peekable;
use std::str::Chars;

/// Maximum size of a text, in bytes; the rest is ignored.
pub(crate) const MAX_TEXT: usize = 1024 * 1024;

/// Maximum number of lines; the rest is ignored.
const MAX_LINES: usize = 20_000;

/// Maximum length of a line, in characters; the rest is ignored.
const MAX_LINE: usize = 8 * 1024;

/// Width of a tab.
const TAB: usize = 8;

/// A line without its indentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Its indentation.
    pub indent: usize,
    /// The text, without trailing white space.
    pub text: String,
}

/// Splits a text into lines, without colours, overstruck letters, tabs and control characters.
pub fn clean(text: &[u8]) -> Vec<Line> {
    let text = text.get(..MAX_TEXT).unwrap_or(text);
    let text = String::from_utf8_lossy(text);
    text.lines().take(MAX_LINES).map(|line| plain(line).into()).collect()
}

fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len().min(MAX_LINE));
    let (mut columns, mut chars) = (0, line.chars().peekable());
    while let Some(c) = chars.next() {
        if columns >= MAX_LINE {
            break;
        }
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            // Manuals print bold as a letter, a backspace and the letter again.
            '\u{8}' => {
                if plain.pop().is_some() {
                    columns -= 1;
                }
            }
            '\t' => {
                let room = TAB - columns % TAB;
                plain.extend(std::iter::repeat_n(' ', room));
                columns += room;
            }
            '\u{2028}' | '\u{2029}' => {}
            c if c.is_control() => {}
            c => {
                plain.push(if c.is_whitespace() { ' ' } else { c });
                columns += 1;
            }
        }
    }
    plain
}

/// Skips the rest of an escape sequence.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        // Colours and the like end with a letter.
        Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        // Titles and links end with a bell or another escape.
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next();
                    break;
                }
            }
        }
        Some(_) | None => {}
    }
}

// === impl Line ===

impl From<String> for Line {
    fn from(line: String) -> Self {
        let text = line.trim_start();
        let indent = line.chars().count() - text.chars().count();
        Self { indent, text: text.trim_end().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], indent: usize, expected: &str) {
        let lines = clean(text);
        let line = lines.first().cloned().unwrap_or_default();
        assert_eq!((line.indent, line.text.as_str()), (indent, expected));
    }

    #[test]
    fn what_a_terminal_or_a_manual_needs_is_left_out() {
        check(b"  \x1b[1m--all\x1b[0m  show", 2, "--all  show");
        check(b"N\x08NA\x08AM\x08ME\x08E _\x08x", 0, "NAME x");
        check(b"\x1b]8;;http://h\x1b\\link\x1b]8;;\x07 end", 0, "link end");
        check(b"\ta\tb ", 8, "a       b");
        check(b"\x08\x08a\r", 0, "a");
        check(b"a\xff\xc3b", 0, "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn there_is_an_end_to_everything() {
        assert!(clean(&vec![b'\n'; 2 * MAX_TEXT]).len() <= MAX_LINES);
        assert!(clean(&vec![b'\t'; MAX_TEXT]).iter().all(|line| line.text.is_empty()));
        assert!(clean(&vec![b'x'; MAX_TEXT]).iter().all(|line| line.text.len() <= MAX_LINE));
    }
}
