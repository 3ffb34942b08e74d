//! Reads the log, filtered or as it grows.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::AuditError;
use crate::files::head::{Head, HeadFile};
use crate::files::lines::{Line, Lines};
use crate::files::log_files::LogFiles;
use crate::files::open_marker::Unclosed;
use crate::files::reverse_reader::{Backwards, Found};
use crate::row::Row;
use crate::writing::recover::{LastLine, Tail};

/// Maximum number of rows that [`Reader::rows_since`] returns at once.
pub(crate) const MAX_ROWS: usize = 1000;

/// Maximum lag of file times behind the clock.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// Reads the log at a path, together with its older logs. Writers may continue meanwhile.
#[derive(Clone, Debug)]
pub struct Reader {
    files: LogFiles,
}

/// A filter for rows; `None` matches all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The server.
    pub server: Option<String>,
    /// The tool, resource or prompt, by its own name at the server.
    pub item: Option<String>,
    /// The caller.
    pub caller: Option<String>,
    /// The front; `stdio` is the part of `gateway` that is not HTTP.
    pub front: Option<String>,
    /// The kind: `tool`, `resource`, `prompt`, `break` or `retention`.
    pub kind: Option<String>,
    /// Only calls that did not end in a plain answer.
    pub errors_only: bool,
    /// The start time, inclusive.
    pub since: Option<Timestamp>,
    /// The end time, exclusive.
    pub until: Option<Timestamp>,
    /// The maximum number of rows; the newest are returned.
    pub limit: usize,
}

/// A position in the log; the default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The last entry read.
    seq: u64,
    /// The file of that entry; `offset` is the position of the next one in it.
    inode: u64,
    offset: u64,
}

/// A snapshot of the files of a log, oldest first.
pub(crate) struct Snapshot {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) head: Option<Head>,
}

/// One file, with its length at the time of the snapshot.
pub(crate) struct Piece {
    pub(crate) path: PathBuf,
    file: File,
    inode: u64,
    len: u64,
    /// Time of the last write, if the system provides it.
    written: Option<Timestamp>,
}

// === impl Reader ===

impl Reader {
    /// Creates a reader for the log at `path`. A missing log has no rows.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let reader = Self { files: LogFiles::new(path) };
        reader.snapshot()?;
        Ok(reader)
    }

    /// The newest rows that match the query, newest last.
    ///
    /// Reads from the end, and no further than needed.
    pub fn query(&self, query: &Query) -> Result<Vec<Row>, AuditError> {
        let mut found = Vec::new();
        for piece in self.snapshot()?.pieces.into_iter().rev() {
            // Entries are written after their calls: a file that was not modified since that time,
            // and all older files, have no newer entries.
            let touched = piece.written.and_then(|time| time.checked_add(CLOCK_SLACK).ok());
            let is_before = |since: Timestamp| touched.is_some_and(|time| time < since);
            if found.len() >= query.limit || query.since.is_some_and(is_before) {
                break;
            }
            piece.newest(query, &mut found)?;
        }
        found.reverse();
        Ok(found)
    }

    /// The number of the last written entry, if all entries that should exist are gone.
    pub fn gone(&self) -> Result<Option<u64>, AuditError> {
        let snapshot = self.snapshot()?;
        let is_empty = snapshot.pieces.iter().all(|piece| piece.len == 0);
        let head = snapshot.head.filter(|head| is_empty && head.last.seq > head.start.seq);
        Ok(head.map(|head| head.last.seq))
    }

    /// The rows after `position`, at most `MAX_ROWS`, and the position after them.
    pub fn rows_since(&self, position: Position) -> Result<(Vec<Row>, Position), AuditError> {
        let (rows, reached) = self.read_from(position)?;
        let expected = position.seq.saturating_add(1);
        if position.inode == 0 || rows.first().is_none_or(|row| row.seq == expected) {
            return Ok((rows, reached));
        }
        // The file is gone and another has its inode; search by the number of the entry instead.
        self.read_from(Position { inode: 0, offset: 0, ..position })
    }

    /// The position after the last row.
    pub fn end(&self) -> Result<Position, AuditError> {
        let mut snapshot = self.snapshot()?;
        let Some(piece) = snapshot.pieces.pop() else { return Ok(Position::default()) };
        let tail = Tail::of(&piece.file, piece.len).map_err(AuditError::read(&piece.path))?;
        let seq = match tail.last {
            Some(LastLine::Sound(link)) => link.seq,
            Some(LastLine::Damaged) | None => snapshot.head.map_or(0, |head| head.last.seq),
        };
        Ok(Position { seq, inode: piece.inode, offset: tail.whole })
    }

    fn read_from(&self, mut position: Position) -> Result<(Vec<Row>, Position), AuditError> {
        let pieces = self.snapshot()?.pieces;
        // The file of the last read is found by its inode, also after a rename. If it is gone, all
        // files are searched for newer entries.
        let resumed = pieces.iter().position(|piece| piece.holds(position));
        let mut rows = Vec::new();
        for (index, piece) in pieces.into_iter().enumerate().skip(resumed.unwrap_or(0)) {
            let offset = if resumed == Some(index) { position.offset } else { 0 };
            position = piece.rows_after(Position { offset, ..position }, &mut rows)?;
            if rows.len() >= MAX_ROWS {
                break;
            }
        }
        Ok((rows, position))
    }

    /// The number of markers left behind by killed processes.
    pub(crate) fn unclosed(&self) -> Result<u64, AuditError> {
        let head = HeadFile::open(&self.files.head())?;
        let _lock = head.as_ref().map(HeadFile::lock_shared).transpose()?;
        let found = Unclosed::find(&self.files);
        found.map(|found| found.len() as u64).map_err(AuditError::read(&self.files.open_markers()))
    }

    /// Opens all files under the lock, so that no writer can rename them.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, AuditError> {
        let head_file = HeadFile::open(&self.files.head())?;
        let lock = head_file.as_ref().map(HeadFile::lock_shared).transpose()?;
        let head = head_file.as_ref().map(HeadFile::read).transpose()?.flatten();
        let numbers = match self.files.older_numbers() {
            Ok(numbers) => numbers,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(AuditError::read(self.files.folder())(cause)),
        };
        let older = numbers.iter().rev().map(|number| self.files.older(*number));
        let paths = older.chain([self.files.log().to_owned()]);
        let pieces: Result<Vec<Option<Piece>>, AuditError> = paths.map(Piece::open).collect();
        drop(lock);
        Ok(Snapshot { pieces: pieces?.into_iter().flatten().collect(), head })
    }
}

// === impl Query ===

impl Query {
    /// True if a row matches.
    pub fn lets_pass(&self, row: &Row) -> bool {
        let is = |wanted: &Option<String>, found: Option<&String>| {
            wanted.is_none() || wanted.as_ref() == found
        };
        is(&self.server, row.server.as_ref())
            && is(&self.item, Some(&row.item))
            && is(&self.caller, Some(&row.caller))
            && self.lets_front_pass(row)
            && is(&self.kind, Some(&row.kind))
            && self.since.is_none_or(|since| row.time >= since)
            && self.until.is_none_or(|until| row.time < until)
            && (!self.errors_only || row.is_error())
    }
}

impl Query {
    /// Matches the front. Calls of the gateway that are not bound by access rules came over stdio.
    fn lets_front_pass(&self, row: &Row) -> bool {
        match self.front.as_deref() {
            None => true,
            Some("stdio") => row.front.as_deref() == Some("gateway") && !row.bound,
            wanted => row.front.as_deref() == wanted,
        }
    }
}

impl Default for Query {
    /// Matches the newest rows of all kinds.
    fn default() -> Self {
        Self {
            server: None,
            item: None,
            caller: None,
            front: None,
            kind: None,
            errors_only: false,
            since: None,
            until: None,
            limit: MAX_ROWS,
        }
    }
}

// === impl Piece ===

impl Piece {
    /// Opens a file; `None` if it does not exist.
    fn open(path: PathBuf) -> Result<Option<Self>, AuditError> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(AuditError::open(&path)(cause)),
        };
        let meta = file.metadata().map_err(AuditError::read(&path))?;
        let written = meta.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        Ok(Some(Self { path, file, inode: meta.ino(), len: meta.len(), written }))
    }

    /// Its lines from `offset` on.
    pub(crate) fn lines(self, offset: u64) -> Result<Lines, AuditError> {
        Lines::new(self.file, offset, self.len).map_err(AuditError::read(&self.path))
    }

    /// True if a position can be in this file.
    fn holds(&self, position: Position) -> bool {
        self.inode == position.inode && position.offset <= self.len
    }

    /// Appends the rows that match the query, newest first, up to its limit.
    fn newest(self, query: &Query, found: &mut Vec<Row>) -> Result<(), AuditError> {
        let Self { path, file, len, .. } = self;
        let mut lines = Backwards::new(file, len);
        let mut unreadable: u64 = 0;
        while found.len() < query.limit {
            let row = match lines.next().map_err(AuditError::read(&path))? {
                Some(Found::Line(line)) => Row::parse(&line),
                Some(Found::TooLong) => None,
                None => break,
            };
            match row {
                Some(row) if query.lets_pass(&row) => found.push(row),
                Some(_) => {}
                None => unreadable += 1,
            }
        }
        warn_of(&path, unreadable);
        Ok(())
    }

    /// Appends the rows after a position in this file; returns the position after the last one.
    fn rows_after(self, from: Position, rows: &mut Vec<Row>) -> Result<Position, AuditError> {
        let mut reached = Position { inode: self.inode, ..from };
        let offset = self.each_row(from.offset, |row, offset| {
            if row.seq > reached.seq {
                reached = Position { seq: row.seq, offset, ..reached };
                rows.push(row);
            }
            if rows.len() >= MAX_ROWS { Go::Stop } else { Go::On }
        })?;
        Ok(Position { offset, ..reached })
    }

    /// Calls `each` with every row from `offset` on and the offset after it; returns the last
    /// offset.
    fn each_row(
        self,
        offset: u64,
        mut each: impl FnMut(Row, u64) -> Go,
    ) -> Result<u64, AuditError> {
        let path = self.path.clone();
        let mut lines = self.lines(offset)?;
        let mut unreadable: u64 = 0;
        loop {
            let row = match lines.next().map_err(AuditError::read(&path))? {
                Some(Line::Whole(line)) => Row::parse(line),
                Some(Line::TooLong) => None,
                // An incomplete line may still be completed.
                Some(Line::Torn(_)) | None => break,
            };
            let Some(row) = row else {
                unreadable += 1;
                continue;
            };
            match each(row, lines.offset) {
                Go::On => {}
                Go::Stop => break,
            }
        }
        warn_of(&path, unreadable);
        Ok(lines.offset)
    }
}

fn warn_of(path: &Path, unreadable: u64) {
    if unreadable > 0 {
        tracing::warn!(path = %path.display(), unreadable, "the audit log has damaged lines");
    }
}

/// Continue or stop reading.
enum Go {
    On,
    Stop,
}
