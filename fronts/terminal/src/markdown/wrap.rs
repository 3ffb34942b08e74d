//! Breaks styled text into rows of a width.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// A piece of text with one style.
pub(crate) type Piece = (String, Style);

/// A row that is being filled.
#[derive(Default)]
struct Row {
    pieces: Vec<Piece>,
    used: usize,
}

/// The rows of a text, broken between words. Runs of blanks count as one.
pub(crate) fn words(pieces: &[Piece], width: usize) -> Vec<Vec<Piece>> {
    let width = width.max(1);
    let (mut rows, mut row) = (Vec::new(), Row::default());
    let (mut word, mut gap) = (Row::default(), None);
    for (text, style) in pieces {
        for letter in text.graphemes(true) {
            if letter.chars().all(char::is_whitespace) {
                put_word(&mut rows, &mut row, &mut word, gap.take(), width);
                gap = Some(*style);
                if letter == "\n" {
                    rows.push(std::mem::take(&mut row).pieces);
                    gap = None;
                }
            } else {
                word.push(letter, *style);
            }
        }
    }
    put_word(&mut rows, &mut row, &mut word, gap, width);
    if !row.pieces.is_empty() || rows.is_empty() {
        rows.push(row.pieces);
    }
    rows
}

/// The rows of a text, broken where the width ends. Blanks are kept.
pub(crate) fn columns(pieces: &[Piece], width: usize) -> Vec<Vec<Piece>> {
    let width = width.max(1);
    let (mut rows, mut row) = (Vec::new(), Row::default());
    for (text, style) in pieces {
        for letter in text.graphemes(true) {
            let letter = if letter == "\t" { "    " } else { letter };
            if row.used + letter.width() > width && row.used > 0 {
                rows.push(std::mem::take(&mut row).pieces);
            }
            row.push(letter, *style);
        }
    }
    rows.push(row.pieces);
    rows
}

/// The width of a text in columns.
pub(crate) fn width(pieces: &[Piece]) -> usize {
    pieces.iter().map(|(text, _)| text.width()).sum()
}

/// A row for the screen.
pub(crate) fn line(pieces: Vec<Piece>) -> Line<'static> {
    Line::from(
        pieces.into_iter().map(|(text, style)| Span::styled(text, style)).collect::<Vec<_>>(),
    )
}

fn put_word(
    rows: &mut Vec<Vec<Piece>>,
    row: &mut Row,
    word: &mut Row,
    gap: Option<Style>,
    width: usize,
) {
    if word.pieces.is_empty() {
        return;
    }
    let word = std::mem::take(word);
    let gap = gap.filter(|_| row.used > 0);
    if row.used + usize::from(gap.is_some()) + word.used > width && row.used > 0 {
        rows.push(std::mem::take(row).pieces);
    } else if let Some(style) = gap {
        row.push(" ", style);
    }
    for (text, style) in word.pieces {
        for letter in text.graphemes(true) {
            if row.used + letter.width() > width && row.used > 0 {
                rows.push(std::mem::take(row).pieces);
            }
            row.push(letter, style);
        }
    }
}

// === impl Row ===

impl Row {
    fn push(&mut self, letter: &str, style: Style) {
        self.used += letter.width();
        match self.pieces.last_mut() {
            Some((text, last)) if *last == style => text.push_str(letter),
            _ => self.pieces.push((letter.to_owned(), style)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &[Vec<Piece>]) -> Vec<String> {
        let text = |row: &Vec<Piece>| row.iter().map(|(text, _)| text.as_str()).collect();
        rows.iter().map(text).collect()
    }

    fn piece(text: &str) -> Vec<Piece> {
        vec![(text.to_owned(), Style::new())]
    }

    #[test]
    fn words_are_broken_between_blanks_and_long_ones_anywhere() {
        for (text, rows) in [
            ("one two three", &["one two", "three"][..]),
            ("abcdefghijk", &["abcdefgh", "ijk"]),
            ("ab abcdefghijk x", &["ab", "abcdefgh", "ijk x"]),
            ("世界世界世", &["世界世界", "世"]),
            ("a\n\nb", &["a", "", "b"]),
            ("  a   b ", &["a b"]),
            ("", &[""]),
        ] {
            assert_eq!(texts(&words(&piece(text), 8)), rows, "{text:?}");
        }
    }

    #[test]
    fn code_keeps_its_blanks() {
        assert_eq!(texts(&columns(&piece("  let a = 1;"), 8)), ["  let a ", "= 1;"]);
        assert_eq!(texts(&columns(&piece("\tx"), 8)), ["    x"]);
        assert_eq!(texts(&columns(&piece("ab"), 0)), ["a", "b"]);
    }
}
