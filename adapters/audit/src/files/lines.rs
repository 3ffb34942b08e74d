//! Reads a log line by line, with a bound on the length of a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};
use std::os::unix::fs::FileExt;

use crate::row::{MAX_LINE, Row};

/// Length that most lines do not exceed.
const FIRST: usize = 1024;

/// The lines of one file, from an offset up to the length at the time of the snapshot.
pub(crate) struct Lines {
    reader: BufReader<Take<File>>,
    buffer: Vec<u8>,
    /// Number of lines read so far.
    pub(crate) number: u64,
    /// Offset of the next line.
    pub(crate) offset: u64,
}

/// A line, or the reason why there is none.
pub(crate) enum Line<'a> {
    /// A line, without its newline.
    Whole(&'a [u8]),
    /// A line that exceeds the maximum length.
    TooLong,
    /// The last line, which is incomplete.
    Torn(&'a [u8]),
}

/// The first row of a file; `None` if it is missing or unreadable.
pub(crate) fn first_row(file: &File) -> io::Result<Option<Row>> {
    let mut start = Vec::new();
    let mut chunk = [0; FIRST];
    while !start.contains(&b'\n') && start.len() < MAX_LINE {
        match file.read_at(&mut chunk, start.len() as u64)? {
            0 => break,
            read => start.extend(chunk.iter().take(read)),
        }
    }
    let line = start.split_inclusive(|byte| *byte == b'\n').next();
    Ok(line.and_then(|line| line.strip_suffix(b"\n")).and_then(Row::parse))
}

// === impl Lines ===

impl Lines {
    pub(crate) fn new(mut file: File, offset: u64, len: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        let reader = BufReader::new(file.take(len.saturating_sub(offset)));
        Ok(Self { reader, buffer: Vec::new(), number: 0, offset })
    }

    /// The next line; `None` at the end.
    ///
    /// A torn line does not advance the offset, so a later read finds it complete.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let bound = MAX_LINE as u64;
        let read = (&mut self.reader).take(bound).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if let Some(line) = self.buffer.strip_suffix(b"\n") {
            self.offset += read as u64;
            return Ok(Some(Line::Whole(line)));
        }
        if (read as u64) < bound {
            return Ok(Some(Line::Torn(&self.buffer)));
        }
        self.offset += bound + self.reader.skip_until(b'\n')? as u64;
        Ok(Some(Line::TooLong))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_too_long_is_passed_over_and_a_torn_one_not_taken() {
        let mut file = tempfile::tempfile().unwrap();
        let long = "x".repeat(MAX_LINE + 5);
        write!(file, "one\n{long}\nthree\nto").unwrap();
        let len = file.metadata().unwrap().len();
        let mut lines = Lines::new(file, 0, len).unwrap();
        assert!(matches!(lines.next().unwrap(), Some(Line::Whole(b"one"))));
        assert!(matches!(lines.next().unwrap(), Some(Line::TooLong)));
        assert!(matches!(lines.next().unwrap(), Some(Line::Whole(b"three"))));
        assert!(matches!(lines.next().unwrap(), Some(Line::Torn(b"to"))));
        assert_eq!((lines.number, lines.offset), (4, len - 2));
        assert!(lines.next().unwrap().is_none());
    }
}
