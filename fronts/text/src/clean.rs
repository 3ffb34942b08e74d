//! Lays out text that other programs wrote: on one line, or wrapped to a width.

use capstan_safety::clean::clean;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Selects the coloured form of the preceding character, which can be a column wider.
const EMOJI_STYLE: char = '\u{fe0f}';

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

/// [`clean`]ed text, wrapped to at most `max_width` columns.
///
/// Runs of blanks count as one, so that padding cannot push words to the beginning of a line.
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

/// Appends a word and breaks it wherever the line is full.
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

/// The maximum number of columns that a character adds to its line.
fn columns(c: char) -> usize {
    if c == EMOJI_STYLE { 1 } else { c.width().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
