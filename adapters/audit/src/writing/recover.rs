//! Finds the end of the chain in a log that another process, or a crash, has left.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use jiff::Timestamp;

use crate::AuditError;
use crate::files::head::Head;
use crate::files::log_files::{LogFiles, open_private};
use crate::row::{ChainLink, Fault, MAX_LINE, Row};

/// Read size for the search of a newline, in bytes.
const CHUNK: u64 = 64 * 1024;

/// The end of a log.
pub(crate) struct Tail {
    /// The last complete line; `None` if there is none.
    pub(crate) last: Option<LastLine>,
    /// Length up to and including the last complete line.
    pub(crate) whole: u64,
    /// The time of the last complete line, if it is readable.
    pub(crate) time: Option<Timestamp>,
}

/// The last complete line of a log.
pub(crate) enum LastLine {
    /// It is intact.
    Sound(ChainLink),
    /// It was changed.
    Damaged,
}

/// The link for the next entry, and the faults to record first.
pub(crate) struct Recovered {
    pub(crate) last: ChainLink,
    pub(crate) faults: Vec<Fault>,
}

/// Finds the end of the chain, and moves an incomplete last line of `log` to another file.
///
/// If log and head disagree, the head is used: then the chain visibly breaks at the next entry, and
/// every later verification finds it.
pub(crate) fn recover(
    files: &LogFiles,
    log: &File,
    head: Option<&Head>,
) -> Result<Recovered, AuditError> {
    let mut faults = Vec::new();
    let len = log.metadata().map_err(AuditError::read(files.log()))?.len();
    let tail = Tail::of(log, len).map_err(AuditError::read(files.log()))?;
    if tail.whole < len {
        if is_blank(log, tail.whole, len).map_err(AuditError::read(files.log()))? {
            // A probe for free space was not removed.
            log.set_len(tail.whole).map_err(AuditError::write(files.log()))?;
        } else {
            move_aside(files, log, tail.whole, len)?;
            faults.push(Fault::Torn { size: len - tail.whole });
        }
    }
    let found = match tail.last {
        Some(last) => last,
        // All entries were removed, and the chain continues at the start in the head.
        None => last_of_older(files)?.unwrap_or_else(|| {
            LastLine::Sound(head.map_or_else(ChainLink::start, |head| head.start.clone()))
        }),
    };
    let known = head.map(|head| &head.last);
    let last = match (found, known) {
        (LastLine::Damaged, _) => {
            faults.push(Fault::Damaged);
            known.cloned().unwrap_or_else(ChainLink::start)
        }
        (LastLine::Sound(link), Some(known)) if known.seq > link.seq => {
            faults.push(Fault::Cut);
            known.clone()
        }
        (LastLine::Sound(link), Some(known)) if known.seq == link.seq && *known != link => {
            faults.push(Fault::Damaged);
            known.clone()
        }
        (LastLine::Sound(link), None) if link.seq > 0 => {
            faults.push(Fault::Unanchored);
            link
        }
        (LastLine::Sound(link), _) => link,
    };
    Ok(Recovered { last, faults })
}

/// The last line of the newest older log: a process may die between renaming and writing.
fn last_of_older(files: &LogFiles) -> Result<Option<LastLine>, AuditError> {
    let numbers = files.older_numbers().map_err(AuditError::read(files.folder()))?;
    let Some(newest) = numbers.first() else { return Ok(None) };
    let path = files.older(*newest);
    let file = File::open(&path).map_err(AuditError::read(&path))?;
    let len = file.metadata().map_err(AuditError::read(&path))?.len();
    let tail = Tail::of(&file, len).map_err(AuditError::read(&path))?;
    Ok(Some(tail.last.unwrap_or_else(|| LastLine::Sound(ChainLink::start()))))
}

/// Appends the incomplete line to the `.torn` file, and only then removes it from the log.
fn move_aside(files: &LogFiles, log: &File, whole: u64, len: u64) -> Result<(), AuditError> {
    let path = files.torn();
    let mut aside = open_private(&path).map_err(AuditError::open(&path))?;
    let mut copy = || {
        let mut log = log;
        log.seek(SeekFrom::Start(whole))?;
        io::copy(&mut log.take(len - whole), &mut aside)?;
        aside.write_all(b"\n")?;
        aside.sync_all()
    };
    copy().map_err(AuditError::write(&path))?;
    log.set_len(whole).map_err(AuditError::write(files.log()))
}

// === impl Tail ===

impl Tail {
    /// Reads the end of a file of this length. Reads no more than the last line.
    pub(crate) fn of(file: &File, len: u64) -> io::Result<Self> {
        let Some(end) = newline_before(file, len)? else {
            return Ok(Self { last: None, whole: 0, time: None });
        };
        let begin = newline_before(file, end)?.map_or(0, |newline| newline + 1);
        let row = read_row(file, begin, end)?;
        let time = row.as_ref().map(|row| row.time);
        let last = row.map_or(LastLine::Damaged, |row| LastLine::Sound(row.link()));
        Ok(Self { last: Some(last), whole: end + 1, time })
    }
}

fn read_row(file: &File, begin: u64, end: u64) -> io::Result<Option<Row>> {
    if end - begin > MAX_LINE as u64 {
        return Ok(None);
    }
    let line = read_range(file, begin, end)?;
    Ok(Row::unseal(&line).ok())
}

/// The position of the last newline before `end`.
fn newline_before(file: &File, mut end: u64) -> io::Result<Option<u64>> {
    while end > 0 {
        let begin = end.saturating_sub(CHUNK);
        let chunk = read_range(file, begin, end)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(begin + at as u64));
        }
        end = begin;
    }
    Ok(None)
}

/// True if there are only blanks.
fn is_blank(file: &File, begin: u64, end: u64) -> io::Result<bool> {
    if end - begin > CHUNK {
        return Ok(false);
    }
    Ok(read_range(file, begin, end)?.iter().all(|byte| *byte == b' '))
}

fn read_range(mut file: &File, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(begin))?;
    file.take(end - begin).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::head::HeadFile;

    /// The result for an empty log with a head with these two ends.
    fn faults(start: u64, last: u64) -> (u64, usize) {
        let folder = tempfile::tempdir().unwrap();
        let files = LogFiles::new(&folder.path().join("audit.jsonl"));
        let head = HeadFile::create(files.head()).unwrap();
        let link = |seq| ChainLink { seq, ..ChainLink::start() };
        head.write_start(&link(start)).unwrap();
        head.write_last(&link(last)).unwrap();
        let log = open_private(files.log()).unwrap();
        let found = recover(&files, &log, head.read().unwrap().as_ref()).unwrap();
        (found.last.seq, found.faults.len())
    }

    #[test]
    fn a_log_that_was_dropped_whole_is_not_cut_and_one_that_is_gone_is() {
        assert_eq!(faults(7, 7), (7, 0));
        assert_eq!(faults(0, 0), (0, 0));
        assert_eq!(faults(3, 7), (7, 1));
        assert_eq!(faults(0, 7), (7, 1));
    }
}
