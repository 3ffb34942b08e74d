//! Reads a log from its end, so that the newest entries are found without reading the rest.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::row::MAX_LINE;

/// Read size, in bytes.
const CHUNK: u64 = 64 * 1024;

/// The lines of one file, last line first.
pub(crate) struct Backwards {
    file: File,
    /// Offset of the first byte that was read.
    begin: u64,
    /// Bytes that were read and not returned yet; they end at the end of a line.
    rest: Vec<u8>,
    state: State,
}

/// The kind of text at the end of `rest`.
enum State {
    /// Possibly an incomplete line, which is skipped.
    Tail,
    /// A line.
    Line,
    /// The end of an oversized line.
    TooLong,
}

/// A line, or a marker for an oversized one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line, without its newline.
    Line(Vec<u8>),
    /// A line that exceeds the maximum length.
    TooLong,
}

// === impl Backwards ===

impl Backwards {
    pub(crate) fn new(file: File, len: u64) -> Self {
        Self { file, begin: len, rest: Vec::new(), state: State::Tail }
    }

    /// The line before the last returned one; `None` at the beginning.
    pub(crate) fn next(&mut self) -> io::Result<Option<Found>> {
        loop {
            let newline = self.rest.iter().rposition(|byte| *byte == b'\n');
            let line = match newline {
                Some(at) => self.rest.split_off(at + 1),
                None if self.begin > 0 => {
                    if self.rest.len() > MAX_LINE {
                        self.rest.clear();
                        self.state = match self.state {
                            State::Tail => State::Tail,
                            State::Line | State::TooLong => State::TooLong,
                        };
                    }
                    self.read_more()?;
                    continue;
                }
                None => std::mem::take(&mut self.rest),
            };
            // The newline of the previous line.
            self.rest.pop();
            let is_over = newline.is_none();
            match std::mem::replace(&mut self.state, State::Line) {
                State::Tail if is_over => return Ok(None),
                State::Tail => {}
                State::TooLong => return Ok(Some(Found::TooLong)),
                State::Line if is_over && line.is_empty() => return Ok(None),
                State::Line if line.len() > MAX_LINE => return Ok(Some(Found::TooLong)),
                State::Line => return Ok(Some(Found::Line(line))),
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let begin = self.begin.saturating_sub(CHUNK);
        let mut chunk = vec![0; usize::try_from(self.begin - begin).unwrap_or(0)];
        self.file.read_exact_at(&mut chunk, begin)?;
        chunk.append(&mut self.rest);
        (self.begin, self.rest) = (begin, chunk);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut lines = Backwards::new(file, text.len() as u64);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Found::Line(line) => String::from_utf8(line).unwrap(),
                Found::TooLong => "too long".to_owned(),
            });
        }
        assert!(lines.next().unwrap().is_none());
        found
    }

    #[test]
    fn lines_come_last_first_and_what_has_no_end_does_not_come() {
        for (text, expected) in [
            ("", &[][..]),
            ("torn", &[]),
            ("one\n", &["one"]),
            ("one\ntwo\n", &["two", "one"]),
            ("one\n\nthree\nto", &["three", "", "one"]),
            ("eins ü\nzwei 🦀\n", &["zwei 🦀", "eins ü"]),
        ] {
            assert_eq!(lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_may_go_over_the_edges_of_what_is_read_at_once_but_not_be_endless() {
        let line = |length: usize| "ü".repeat(length / 2);
        let (short, long) = (line(1000), line(MAX_LINE + 2));
        let text =
            [&short, &long, &short, &line(5 * MAX_LINE), &short].map(|line| format!("{line}\n"));
        let torn = line(3 * MAX_LINE);
        assert_eq!(
            lines(&format!("{}{torn}", text.concat())),
            [&short, "too long", &short, "too long", &short]
        );
        let many = format!("{short}\n").repeat(500);
        assert_eq!(lines(&many), vec![short; 500]);
    }
}
