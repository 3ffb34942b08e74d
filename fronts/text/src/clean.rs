//! Makes text that a server wrote safe for a terminal.
//!
//! **Invariant:** what comes out has no control character but newline and tab, and no character
//! that is there without being seen. So no server can move the cursor, recolour the screen, set
//! the title, reorder what is read, or hide words from the person while a model reads them.
//!
//! Colour (`ESC [ … m`) is dropped, because honest programs use it and it carries no words.
//! Everything else that does not belong is shown as `\u{1b}`, because text that vanishes would be
//! hidden text again.

use std::borrow::Cow;

use capstan_model::text::is_invisible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Most marks above and below one letter; more would climb over the neighbouring lines.
const MAX_MARKS: usize = 8;

/// `text` without anything that a terminal obeys or a reader cannot see.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut before = None;
    let mut marks = 0;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = after_colour(rest) {
            rest = after;
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        let next = rest.chars().next();
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        if c == '\r' && next == Some('\n') {
            continue;
        }
        if marks <= MAX_MARKS && is_seen(before, c, next) {
            clean.push(c);
        } else {
            clean.extend(c.escape_unicode());
        }
        before = Some(c);
    }
    Cow::Owned(clean)
}

/// [`clean`]ed text on one line of at most `max_width` columns, cut with `…`.
pub fn one_line(text: &str, max_width: usize) -> String {
    let clean = clean(text);
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.width() <= max_width {
        return line;
    }
    let mut cut = String::new();
    let mut room = max_width.saturating_sub(1);
    for c in line.chars() {
        let Some(left) = room.checked_sub(columns(c)) else { break };
        room = left;
        cut.push(c);
    }
    if max_width > 0 {
        cut.truncate(cut.trim_end().len());
        cut.push('…');
    }
    cut
}

/// [`clean`]ed text on lines of at most `max_width` columns. Runs of blanks count as one, so that
/// no padding can push words to the beginning of a line.
pub fn wrap(text: &str, max_width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in clean(text).lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let space = usize::from(!line.is_empty());
            if line.width() + space + word.width() > max_width && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            } else if space > 0 {
                line.push(' ');
            }
            push_broken(&mut lines, &mut line, word, max_width);
        }
        lines.push(line);
    }
    lines
}

/// Adds a word, broken wherever the line is full.
fn push_broken(lines: &mut Vec<String>, line: &mut String, word: &str, max_width: usize) {
    if line.width() + word.width() <= max_width {
        line.push_str(word);
        return;
    }
    let mut used = line.width();
    for c in word.chars() {
        if used + columns(c) > max_width && used > 0 {
            lines.push(std::mem::take(line));
            used = 0;
        }
        used += columns(c);
        line.push(c);
    }
}

/// Most columns that a character adds to its line.
fn columns(c: char) -> usize {
    // This one can make the character before it a column wider.
    if c == EMOJI_STYLE { 1 } else { c.width().unwrap_or(0) }
}

/// Asks for the coloured form of the character before it.
const EMOJI_STYLE: char = '\u{fe0f}';

/// Joins the characters on both sides.
const JOINER: char = '\u{200d}';

/// Keeps the characters on both sides apart.
const NON_JOINER: char = '\u{200c}';

/// What follows a colour sequence at the beginning of `text`.
fn after_colour(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let after =
        parameters.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | ':'));
    after.strip_prefix('m')
}

/// Whether a reader sees `c`, standing where it stands.
fn is_seen(before: Option<char>, c: char, next: Option<char>) -> bool {
    match c {
        '\n' | '\t' => true,
        EMOJI_STYLE => before.is_some_and(|before| is_picture(before) || is_keycap(before)),
        JOINER | NON_JOINER => match (before, next) {
            (Some(before), Some(next)) => joins(before) && joins(next),
            (Some(_) | None, _) => false,
        },
        _ => !c.is_control() && !is_invisible(c),
    }
}

/// Whether a joiner beside `c` is good spelling: pictures, and scripts from Arabic to Sinhala.
fn joins(c: char) -> bool {
    is_picture(c) || c == EMOJI_STYLE || matches!(c, '\u{620}'..='\u{dff}')
}

fn is_picture(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, shown: &str) {
        assert_eq!(clean(written), shown, "{written:?}");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        check("\u{1b}[2J\u{1b}[Hhello", "\\u{1b}[2J\\u{1b}[Hhello");
        check("a\u{1b}[1A\u{1b}[2Kb", "a\\u{1b}[1A\\u{1b}[2Kb");
        check("\u{1b}]0;root@prod\u{7}", "\\u{1b}]0;root@prod\\u{7}");
        check("\u{1b}]8;;http://evil\u{1b}\\bank\u{1b}]8;;\u{1b}\\", {
            "\\u{1b}]8;;http://evil\\u{1b}\\bank\\u{1b}]8;;\\u{1b}\\"
        });
        check("\u{1b}]52;c;cm0gLXJm\u{7}", "\\u{1b}]52;c;cm0gLXJm\\u{7}");
        check("\u{1b}P1$r\u{1b}\\", "\\u{1b}P1$r\\u{1b}\\");
        check("\u{1b}c", "\\u{1b}c");
        check("\u{9b}31mred\u{9d}0;t\u{9c}", "\\u{9b}31mred\\u{9d}0;t\\u{9c}");
        check("safe\rrm -rf", "safe\\u{d}rm -rf");
        check("good\u{8}\u{8}\u{8}\u{8}evil", "good\\u{8}\\u{8}\\u{8}\\u{8}evil");
        check("\u{0}\u{b}\u{c}\u{7f}", "\\u{0}\\u{b}\\u{c}\\u{7f}");
    }

    #[test]
    fn what_a_reader_cannot_see_is_shown() {
        check("user\u{202e}txt.exe", "user\\u{202e}txt.exe");
        check("\u{2066}a\u{2069}\u{200f}", "\\u{2066}a\\u{2069}\\u{200f}");
        check("pa\u{200b}ss", "pa\\u{200b}ss");
        check("x\u{e0041}\u{e007f}", "x\\u{e0041}\\u{e007f}");
        check("\u{feff}{}", "\\u{feff}{}");
        check("a\u{fe0f}b\u{e0100}", "a\\u{fe0f}b\\u{e0100}");
        check("a\u{200d}b", "a\\u{200d}b");
        check("😀\u{200d}", "😀\\u{200d}");
        check("😀\u{fe0f}\u{fe0f}", "😀\u{fe0f}\\u{fe0f}");
        check("one\u{2028}two", "one\\u{2028}two");
        check("soft\u{ad}hyphen \u{3164}", "soft\\u{ad}hyphen \\u{3164}");
    }

    #[test]
    fn colour_is_dropped_and_cannot_hide_a_sequence_in_another() {
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}[38:2::1:2:3mx\u{1b}[m", "x");
        check("\u{1b}[8mconcealed", "concealed");
        check("\u{1b}\u{1b}[0m[2J", "\\u{1b}[2J");
        check("\u{1b}[0\u{1b}[0mm", "\\u{1b}[0m");
        check("\u{1b}[0;evil", "\\u{1b}[0;evil");
    }

    #[test]
    fn marks_do_not_climb_over_other_lines() {
        let zalgo = format!("z{}", "\u{301}".repeat(30));
        let shown = clean(&zalgo);
        assert_eq!(shown.matches('\u{301}').count(), MAX_MARKS);
        assert_eq!(shown.matches("\\u{301}").count(), 30 - MAX_MARKS);
    }

    #[test]
    fn honest_text_stays_as_it_is() {
        for text in ["", "plain\n\ttext", "Grüße, 世界", "👨‍👩‍👧 ❤️ 1️⃣", "می‌خواهم", "क्‍ष", "e\u{301}"]
        {
            check(text, text);
        }
        check("a\r\nb\r\n", "a\nb\n");
        assert!(matches!(clean("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_that_comes_out_is_cleaned_further() {
        let all: String = ('\0'..='\u{3000}').chain('\u{e0000}'..='\u{e0200}').collect();
        let once = clean(&all).into_owned();
        assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        assert_eq!(clean(&once), once);
    }

    #[test]
    fn a_cell_is_one_line_and_never_wider_than_its_room() {
        for (text, width, shown) in [
            ("two\nlines\t here ", 80, "two lines here"),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("ab cdefg", 4, "ab…"),
            ("世界世界", 5, "世界…"),
            ("世界世界", 4, "世…"),
            ("❤️❤️❤️", 3, "❤️…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
            ("", 0, ""),
            ("\u{1b}[31mred\u{7}", 40, "red\\u{7}"),
        ] {
            let cell = one_line(text, width);
            assert_eq!(cell, shown, "{text:?}");
            assert!(cell.width() <= width, "{text:?}");
        }
    }

    #[test]
    fn lines_are_broken_before_a_terminal_breaks_them() {
        let pushed = format!("hi{}`github` asks:", " ".repeat(78));
        for (text, shown) in [
            ("", &[][..]),
            ("one two three", &["one two", "three"]),
            ("a\n\nb", &["a", "", "b"]),
            ("abcdefghijk", &["abcdefgh", "ijk"]),
            ("ab abcdefghijk", &["ab", "abcdefgh", "ijk"]),
            ("世界世界世", &["世界世界", "世"]),
            (&pushed, &["hi", "`github`", "asks:"]),
        ] {
            let lines = wrap(text, 8);
            assert_eq!(lines, shown, "{text:?}");
            assert!(lines.iter().all(|line| line.width() <= 8));
        }
        assert_eq!(wrap("ab", 0), ["a", "b"]);
    }
}
