//! Reading the log: filtered, or as it grows.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::AuditError;
use crate::backwards::{Backwards, Found};
use crate::head::{Head, HeadFile};
use crate::lines::{Line, Lines};
use crate::open_marker::Unclosed;
use crate::place::Place;
use crate::recover::{LastLine, Tail};
use crate::row::Row;

/// The most rows [`Reader::rows_since`] gives at once.
pub const MAX_ROWS: usize = 1000;

/// How far the times of a file system may be behind the clock.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// Reads the log at a path, together with the older logs beside it. Writers may go on meanwhile.
#[derive(Clone, Debug)]
pub struct Reader {
    place: Place,
}

/// Which rows are wanted; a `None` lets all pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Of this server.
    pub server: Option<String>,
    /// Of this tool, resource or prompt, by its own name at the server.
    pub item: Option<String>,
    /// Of this caller.
    pub caller: Option<String>,
    /// Through this front; `stdio` is the part of `gateway` that is not HTTP.
    pub front: Option<String>,
    /// Of this kind: `tool`, `resource`, `prompt`, `break` or `retention`.
    pub kind: Option<String>,
    /// Only calls that did not end in a plain answer.
    pub errors_only: bool,
    /// Of this time or later.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// The newest so many.
    pub limit: usize,
}

/// How far somebody has read; the default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The last entry read.
    seq: u64,
    /// The file it was in, and where in that file the next one begins.
    inode: u64,
    offset: u64,
}

/// The files of a log at one moment, oldest first.
pub(crate) struct Snapshot {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) head: Option<Head>,
}

/// One file, as long as it was at that moment.
pub(crate) struct Piece {
    pub(crate) path: PathBuf,
    file: File,
    inode: u64,
    len: u64,
    /// When it was last written to, as far as the system knows.
    written: Option<Timestamp>,
}

// === impl Reader ===

impl Reader {
    /// A reader for the log at `path`. Where there is none, there are no rows.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let reader = Self { place: Place::new(path) };
        reader.snapshot()?;
        Ok(reader)
    }

    /// The newest rows that the query lets pass, newest last. Reads from the end, and no further
    /// than it must.
    pub fn query(&self, query: &Query) -> Result<Vec<Row>, AuditError> {
        let mut found = Vec::new();
        for piece in self.snapshot()?.pieces.into_iter().rev() {
            // Entries are written after their calls came in: what was not touched since then has
            // none that are newer, nor has anything older.
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

    /// The last entry that was written, where none is left of what should be here.
    pub fn gone(&self) -> Result<Option<u64>, AuditError> {
        let snapshot = self.snapshot()?;
        let is_empty = snapshot.pieces.iter().all(|piece| piece.len == 0);
        let head = snapshot.head.filter(|head| is_empty && head.last.seq > head.start.seq);
        Ok(head.map(|head| head.last.seq))
    }

    /// The rows after `position`, at most [`MAX_ROWS`], and the position behind them.
    pub fn rows_since(&self, position: Position) -> Result<(Vec<Row>, Position), AuditError> {
        let (rows, reached) = self.read_from(position)?;
        let expected = position.seq.saturating_add(1);
        if position.inode == 0 || rows.first().is_none_or(|row| row.seq == expected) {
            return Ok((rows, reached));
        }
        // The file is gone and another has got its inode; the number of the entry still counts.
        self.read_from(Position { inode: 0, offset: 0, ..position })
    }

    /// The position behind the last row.
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
        // Known by its inode, the file of the last time is found also when it was renamed. When
        // it is gone, everything is looked through for newer entries.
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

    /// How many markers killed processes have left behind.
    pub(crate) fn unclosed(&self) -> Result<u64, AuditError> {
        let head = HeadFile::open(&self.place.head())?;
        let _lock = head.as_ref().map(HeadFile::lock_shared).transpose()?;
        let found = Unclosed::find(&self.place);
        found.map(|found| found.len() as u64).map_err(AuditError::read(&self.place.open_markers()))
    }

    /// Opens all files while no writer can rename them.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, AuditError> {
        let head_file = HeadFile::open(&self.place.head())?;
        let lock = head_file.as_ref().map(HeadFile::lock_shared).transpose()?;
        let head = head_file.as_ref().map(HeadFile::read).transpose()?.flatten();
        let numbers = match self.place.older_numbers() {
            Ok(numbers) => numbers,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(AuditError::read(self.place.folder())(cause)),
        };
        let older = numbers.iter().rev().map(|number| self.place.older(*number));
        let paths = older.chain([self.place.log().to_owned()]);
        let pieces: Result<Vec<Option<Piece>>, AuditError> = paths.map(Piece::open).collect();
        drop(lock);
        Ok(Snapshot { pieces: pieces?.into_iter().flatten().collect(), head })
    }
}

// === impl Query ===

impl Query {
    /// Whether a row is one that is wanted.
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
    /// The gateway has two ways in. Who is not bound by access rules came over standard input.
    fn lets_front_pass(&self, row: &Row) -> bool {
        match self.front.as_deref() {
            None => true,
            Some("stdio") => row.front.as_deref() == Some("gateway") && !row.bound,
            wanted => row.front.as_deref() == wanted,
        }
    }
}

impl Default for Query {
    /// The newest rows of all kinds.
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
    /// `None` where there is no such file.
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

    /// Whether a position can be in this file.
    fn holds(&self, position: Position) -> bool {
        self.inode == position.inode && position.offset <= self.len
    }

    /// Adds the rows that the query lets pass, newest first, as long as more are wanted.
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

    /// Adds the rows after a position in this file; gives the position behind the last one.
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

    /// Calls `each` with every row from `offset` on and the offset behind it; gives the offset
    /// where it ended.
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
                // A line without an end may still get one.
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

/// Whether to read on.
enum Go {
    On,
    Stop,
}
