//! The text that is being typed: several lines, history, folded pastes.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::keys::Key;

/// Longer pastes are folded into a word.
const MAX_PASTED_LINES: usize = 8;

/// Longer pastes are folded into a word, in bytes.
const MAX_PASTED_BYTES: usize = 1_000;

/// The most lines that are remembered.
const MAX_HISTORY: usize = 500;

/// The longest text, in bytes.
const MAX_TEXT: usize = 4 << 20;

/// A text with a cursor.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// The place of the cursor in the text.
    cursor: usize,
    history: Vec<String>,
    /// The place in the history, while one of its lines is shown.
    place: Option<usize>,
    /// The text before the history was entered.
    draft: String,
    /// Folded texts, by the word that stands for each.
    pastes: Vec<(String, String)>,
}

/// The rows of a text, and where the cursor stands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) lines: Vec<String>,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

// === impl Editor ===

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the text; the cursor stands at its end.
    pub(crate) fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// Replaces the part from `start` to the cursor.
    pub(crate) fn replace(&mut self, start: usize, with: &str) {
        let end = self.cursor;
        if self.text.is_char_boundary(start) && start <= end {
            self.text.replace_range(start..end, with);
            self.cursor = start + with.len();
        }
    }

    /// Takes the text, with pastes in full, and remembers it.
    pub(crate) fn take(&mut self) -> String {
        let text = self.unfolded();
        self.remember(text.clone());
        self.clear();
        text
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.draft.clear();
        self.pastes.clear();
        (self.cursor, self.place) = (0, None);
    }

    /// Adds a line to the history.
    pub(crate) fn remember(&mut self, text: String) {
        if self.history.last() != Some(&text) && !text.trim().is_empty() {
            self.history.push(text);
        }
        if self.history.len() > MAX_HISTORY {
            self.history.remove(0);
        }
    }

    /// Inserts a pasted text; a long one is shown as one word.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_text = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let text: String = text.chars().filter(is_text).collect();
        let lines = text.lines().count();
        if lines <= MAX_PASTED_LINES && text.len() <= MAX_PASTED_BYTES {
            return self.insert(&text);
        }
        if self.pastes.iter().map(|(_, text)| text.len()).sum::<usize>() + text.len() > MAX_TEXT {
            return;
        }
        let word = format!("[pasted text {}: {lines} lines]", self.pastes.len() + 1);
        self.insert(&word);
        self.pastes.push((word, text));
    }

    /// Handles a key; false if it means nothing here.
    pub(crate) fn key(&mut self, key: Key, width: usize) -> bool {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.insert("\n"),
            Key::Backspace => self.backspace(),
            Key::Delete => {
                let end = self.next();
                self.text.replace_range(self.cursor..end, "");
            }
            Key::Left => self.cursor = self.previous(),
            Key::Right => self.cursor = self.next(),
            Key::WordLeft => self.cursor = self.word_start(),
            Key::WordRight => self.cursor = self.word_end(),
            Key::Home => self.cursor = self.line_start(),
            Key::End => self.cursor = self.line_end(),
            Key::DeleteWord => self.replace(self.word_start(), ""),
            Key::DeleteToStart => self.replace(self.line_start(), ""),
            Key::DeleteToEnd => {
                let end = self.line_end();
                self.text.replace_range(self.cursor..end, "");
            }
            Key::Up => return self.up(width),
            Key::Down => return self.down(width),
            Key::Enter
            | Key::Esc
            | Key::Tab
            | Key::BackTab
            | Key::PageUp
            | Key::PageDown
            | Key::First
            | Key::Last
            | Key::Interrupt
            | Key::EndOfInput
            | Key::Redraw => return false,
        }
        true
    }

    /// The rows of the text at a width.
    pub(crate) fn rows(&self, width: usize) -> Rows {
        let width = width.max(2);
        let mut layout = Rows { lines: vec![String::new()], row: 0, column: 0 };
        let mut used = 0;
        let mut at = 0;
        for letter in self.text.graphemes(true) {
            let is_end = letter == "\n" || letter == "\r\n";
            let shown = if letter == "\t" { " " } else { letter };
            if !is_end && used + shown.width() > width {
                layout.lines.push(String::new());
                used = 0;
            }
            if at == self.cursor {
                (layout.row, layout.column) = (layout.lines.len() - 1, used);
            }
            if is_end {
                layout.lines.push(String::new());
                used = 0;
            } else if let Some(row) = layout.lines.last_mut() {
                row.push_str(shown);
                used += shown.width();
            }
            at += letter.len();
        }
        if at == self.cursor {
            if used >= width {
                layout.lines.push(String::new());
                used = 0;
            }
            (layout.row, layout.column) = (layout.lines.len() - 1, used);
        }
        layout
    }

    fn insert(&mut self, text: &str) {
        if self.text.len() + text.len() <= MAX_TEXT {
            self.text.insert_str(self.cursor, text);
            self.cursor += text.len();
        }
    }

    /// Removes the letter before the cursor, or a folded paste as a whole.
    fn backspace(&mut self) {
        let before = self.text.get(..self.cursor).unwrap_or_default();
        let folded = self.pastes.iter().find(|(word, _)| before.ends_with(word.as_str()));
        let start = match folded {
            Some((word, _)) => self.cursor - word.len(),
            None => self.previous(),
        };
        self.replace(start, "");
    }

    fn unfolded(&self) -> String {
        let mut text = String::new();
        let mut rest = self.text.as_str();
        let first = |rest: &str| {
            let places = self.pastes.iter().filter_map(|(word, full)| {
                Some((rest.find(word.as_str())?, word.len(), full.clone()))
            });
            places.min_by_key(|(at, ..)| *at)
        };
        while let Some((at, length, full)) = first(rest) {
            text.push_str(rest.get(..at).unwrap_or_default());
            text.push_str(&full);
            rest = rest.get(at + length..).unwrap_or_default();
        }
        text.push_str(rest);
        text
    }

    fn up(&mut self, width: usize) -> bool {
        let Rows { row, column, .. } = self.rows(width);
        if let Some(above) = row.checked_sub(1) {
            self.go_to(above, column, width);
            return true;
        }
        let place = self.place.unwrap_or(self.history.len());
        let Some(earlier) = place.checked_sub(1) else { return false };
        let Some(text) = self.history.get(earlier).cloned() else { return false };
        if self.place.is_none() {
            self.draft = std::mem::take(&mut self.text);
        }
        self.place = Some(earlier);
        self.set(text);
        true
    }

    fn down(&mut self, width: usize) -> bool {
        let Rows { lines, row, column } = self.rows(width);
        if row + 1 < lines.len() {
            self.go_to(row + 1, column, width);
            return true;
        }
        let Some(place) = self.place else { return false };
        if let Some(text) = self.history.get(place + 1).cloned() {
            self.place = Some(place + 1);
            self.set(text);
        } else {
            self.place = None;
            let draft = std::mem::take(&mut self.draft);
            self.set(draft);
        }
        true
    }

    /// Moves the cursor to the place of a row that is nearest to a column.
    fn go_to(&mut self, row: usize, column: usize, width: usize) {
        let mut best = self.cursor;
        let mut distance = usize::MAX;
        let places = self.text.grapheme_indices(true).map(|(at, _)| at);
        let places: Vec<usize> = places.chain([self.text.len()]).collect();
        for at in places {
            self.cursor = at;
            let rows = self.rows(width);
            if rows.row == row && rows.column.abs_diff(column) < distance {
                (best, distance) = (at, rows.column.abs_diff(column));
            }
            if rows.row > row {
                break;
            }
        }
        self.cursor = best;
    }

    fn previous(&self) -> usize {
        let before = self.text.get(..self.cursor).unwrap_or_default();
        before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        let after = self.text.get(self.cursor..).unwrap_or_default();
        self.cursor + after.graphemes(true).next().map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let before = self.text.get(..self.cursor).unwrap_or_default();
        let trimmed = before.trim_end();
        trimmed.rfind(char::is_whitespace).map_or(0, |at| {
            at + trimmed.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        })
    }

    fn word_end(&self) -> usize {
        let after = self.text.get(self.cursor..).unwrap_or_default();
        let blanks = after.len() - after.trim_start().len();
        let word = after.trim_start();
        self.cursor + blanks + word.find(char::is_whitespace).unwrap_or(word.len())
    }

    fn line_start(&self) -> usize {
        let before = self.text.get(..self.cursor).unwrap_or_default();
        before.rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let after = self.text.get(self.cursor..).unwrap_or_default();
        self.cursor + after.find('\n').unwrap_or(after.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        text.chars().for_each(|c| {
            editor.key(if c == '\n' { Key::NewLine } else { Key::Char(c) }, 20);
        });
        editor
    }

    fn press(editor: &mut Editor, keys: &[Key]) {
        for key in keys {
            editor.key(*key, 20);
        }
    }

    #[test]
    fn letters_are_edited_as_they_are_seen() {
        let mut editor = typed("ae\u{301}世b");
        press(&mut editor, &[Key::Left, Key::Backspace, Key::Backspace]);
        assert_eq!(editor.text(), "ab");
        press(&mut editor, &[Key::Home, Key::Delete, Key::Char('x'), Key::End, Key::Char('y')]);
        assert_eq!(editor.text(), "xby");
    }

    #[test]
    fn words_and_lines_are_deleted() {
        let mut editor = typed("one two\nthree four");
        press(&mut editor, &[Key::DeleteWord]);
        assert_eq!(editor.text(), "one two\nthree ");
        press(&mut editor, &[Key::DeleteToStart]);
        assert_eq!(editor.text(), "one two\n");
        press(&mut editor, &[Key::Up, Key::WordRight, Key::DeleteToEnd]);
        assert_eq!(editor.text(), "one\n");
    }

    #[test]
    fn rows_wrap_and_the_cursor_moves_between_them() {
        let mut editor = typed("abcdef");
        assert_eq!(editor.rows(4).lines, ["abcd", "ef"]);
        assert_eq!((editor.rows(4).row, editor.rows(4).column), (1, 2));
        editor.key(Key::Up, 4);
        assert_eq!(editor.cursor(), 2);
        editor.key(Key::Down, 4);
        assert_eq!(editor.cursor(), 6);
        // A full row leaves the cursor a row of its own.
        assert_eq!(typed("abcd").rows(4).lines, ["abcd", ""]);
    }

    #[test]
    fn the_history_comes_back_and_the_draft_too() {
        let mut editor = Editor::default();
        for text in ["first", "second"] {
            editor.set(text.to_owned());
            assert_eq!(editor.take(), text);
        }
        editor.set("draft".to_owned());
        press(&mut editor, &[Key::Up]);
        assert_eq!(editor.text(), "second");
        press(&mut editor, &[Key::Up, Key::Up]);
        assert_eq!(editor.text(), "first");
        press(&mut editor, &[Key::Down, Key::Down]);
        assert_eq!(editor.text(), "draft");
    }

    #[test]
    fn a_long_paste_is_folded_and_sent_in_full() {
        let mut editor = Editor::default();
        editor.paste("a\r\nb\u{1b}[31m");
        assert_eq!(editor.text(), "a\nb[31m");
        editor.clear();
        let long = "line\n".repeat(40);
        editor.paste(&long);
        press(&mut editor, &[Key::Char('!')]);
        assert_eq!(editor.text(), "[pasted text 1: 40 lines]!");
        assert_eq!(editor.take(), format!("{long}!"));
        editor.paste(&long);
        press(&mut editor, &[Key::Backspace]);
        assert_eq!(editor.take(), "");
    }
}
