//! Rotates a full log and removes the oldest ones.
//!
//! A process may die between any two steps: the numbers then have a gap, or a log that should be
//! removed still exists. Readers tolerate both.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use jiff::Timestamp;

use crate::AuditError;
use crate::files::head::HeadFile;
use crate::files::lines;
use crate::files::log_files::LogFiles;
use crate::retention::age::Age;
use crate::retention::limits::Limits;
use crate::row::{ChainLink, Fault, Row};
use crate::writing::recover::{LastLine, Tail};

/// Renames the log to the first older one, and increments the numbers of the others.
pub(crate) fn put_aside(files: &LogFiles) -> Result<(), AuditError> {
    let numbers = files.older_numbers().map_err(AuditError::read(files.folder()))?;
    // Only up to the first gap.
    let in_the_way = (1..).zip(&numbers).take_while(|(wanted, number)| wanted == *number).count();
    for number in numbers.iter().take(in_the_way).rev() {
        rename(&files.older(*number), &files.older(number + 1))?;
    }
    rename(files.log(), &files.older(1))?;
    files.sync_folder().map_err(AuditError::write(files.folder()))
}

/// Removes the oldest logs that exceed the size limit; `last` is the last written entry.
pub(crate) fn make_room(
    files: &LogFiles,
    head: &HeadFile,
    limits: &Limits,
    last: &ChainLink,
) -> Result<(), AuditError> {
    let numbers = files.older_numbers().map_err(AuditError::read(files.folder()))?;
    let kept = how_many_fit(files, limits, &numbers)?;
    drop_all_but(files, head, &numbers, kept, last)
}

/// The fault that records the removal of the oldest log, if it must be removed.
///
/// All of its entries must be too old, and none among the newest [`Limits::KEEP_NEWEST`]. A log
/// with an unreadable end has no age; it is removed only for the size limit.
pub(crate) fn expired(
    files: &LogFiles,
    limits: &Limits,
    age: &Age,
    last: &ChainLink,
    now: Timestamp,
) -> Result<Option<Fault>, AuditError> {
    let numbers = files.older_numbers().map_err(AuditError::read(files.folder()))?;
    let Some(oldest) = numbers.last() else { return Ok(None) };
    let path = files.older(*oldest);
    let end = || {
        let file = File::open(&path)?;
        Tail::of(&file, file.metadata()?.len())
    };
    let Tail { last: Some(LastLine::Sound(end)), time: Some(time), .. } =
        end().map_err(AuditError::read(&path))?
    else {
        return Ok(None);
    };
    let is_among_newest = last.seq.saturating_sub(end.seq) < Limits::KEEP_NEWEST;
    if is_among_newest || !limits.is_too_old(time, now, age.since(end.seq)) {
        return Ok(None);
    }
    let first = first_row(&path)?.map_or(end.seq, |row| row.seq);
    Ok(Some(Fault::Expired { first, last: end.seq }))
}

/// Removes the oldest log.
pub(crate) fn drop_oldest(
    files: &LogFiles,
    head: &HeadFile,
    last: &ChainLink,
) -> Result<(), AuditError> {
    let numbers = files.older_numbers().map_err(AuditError::read(files.folder()))?;
    drop_all_but(files, head, &numbers, numbers.len().saturating_sub(1), last)
}

/// Removes all older logs except the newest `kept`.
///
/// The new start of the chain is written to the head first. Always the oldest ones, so that the
/// rest has no gap.
fn drop_all_but(
    files: &LogFiles,
    head: &HeadFile,
    numbers: &[u32],
    kept: usize,
    last: &ChainLink,
) -> Result<(), AuditError> {
    let (kept, surplus) = numbers.split_at_checked(kept).unwrap_or((numbers, &[]));
    if surplus.is_empty() {
        return Ok(());
    }
    let first = match kept.last() {
        Some(oldest) => first_row(&files.older(*oldest))?,
        None => first_row(files.log())?,
    };
    let start = first.map_or_else(|| last.clone(), |row| row.link_before());
    head.write_start(&start)?;
    for number in surplus.iter().rev() {
        let path = files.older(*number);
        fs::remove_file(&path).map_err(AuditError::write(&path))?;
        tracing::info!("`{}` was removed: see `capstan audit --verify`", path.display());
    }
    Ok(())
}

/// The number of these logs, newest first, that fit next to the current one.
fn how_many_fit(files: &LogFiles, limits: &Limits, numbers: &[u32]) -> Result<usize, AuditError> {
    let mut room = limits.max_total.saturating_sub(limits.max_size);
    for (count, number) in numbers.iter().enumerate() {
        let path = files.older(*number);
        let size = fs::metadata(&path).map_err(AuditError::read(&path))?.len();
        match room.checked_sub(size) {
            Some(left) => room = left,
            None => return Ok(count),
        }
    }
    Ok(numbers.len())
}

/// The first row of a log, if there is one.
fn first_row(path: &Path) -> Result<Option<Row>, AuditError> {
    match File::open(path) {
        Ok(file) => lines::first_row(&file).map_err(AuditError::read(path)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(AuditError::read(path)(cause)),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), AuditError> {
    fs::rename(from, to).map_err(AuditError::write(from))
}
