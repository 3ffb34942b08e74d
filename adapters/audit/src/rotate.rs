//! Putting a full log aside and dropping the oldest ones.
//!
//! A process may die between any two steps: the numbers then have a gap, or a log that should be
//! gone is still there. Readers put up with both.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use jiff::Timestamp;

use crate::AuditError;
use crate::head::HeadFile;
use crate::limits::Limits;
use crate::lines;
use crate::place::Place;
use crate::recover::Tail;
use crate::row::{Link, Row};

/// Renames the log to be the first of the older ones, which move up by one.
pub(crate) fn put_aside(place: &Place) -> Result<(), AuditError> {
    let numbers = place.older_numbers().map_err(AuditError::read(place.folder()))?;
    // Up to the first gap: what is behind it need not move.
    let in_the_way = (1..).zip(&numbers).take_while(|(wanted, number)| wanted == *number).count();
    for number in numbers.iter().take(in_the_way).rev() {
        rename(&place.older(*number), &place.older(number + 1))?;
    }
    rename(place.log(), &place.older(1))?;
    place.sync_folder().map_err(AuditError::write(place.folder()))
}

/// Removes the oldest logs as far as the limits say, after noting in the head where the chain then
/// begins; `last` is the last entry written, `now` its time.
///
/// Only ever the oldest ones, so that what is kept has no gap.
pub(crate) fn drop_oldest(
    place: &Place,
    head: &HeadFile,
    limits: &Limits,
    (last, now): (&Link, Timestamp),
) -> Result<(), AuditError> {
    let numbers = place.older_numbers().map_err(AuditError::read(place.folder()))?;
    let kept = how_many_fit(place, limits, &numbers)?;
    let (mut kept, _) = numbers.split_at_checked(kept).unwrap_or((&numbers, &[]));
    while let Some((oldest, newer)) = kept.split_last()
        && is_too_old(&place.older(*oldest), limits, now)?
    {
        kept = newer;
    }
    let surplus = numbers.get(kept.len()..).unwrap_or_default();
    if surplus.is_empty() {
        return Ok(());
    }
    let first = match kept.last() {
        Some(oldest) => first_row(&place.older(*oldest))?,
        None => first_row(place.log())?,
    };
    let start = first.map_or_else(|| last.clone(), |row| row.link_before());
    head.write_start(&start)?;
    for number in surplus.iter().rev() {
        let path = place.older(*number);
        fs::remove_file(&path).map_err(AuditError::write(&path))?;
    }
    Ok(())
}

/// How many of these logs, newest first, there is room for beside the one that is written to.
fn how_many_fit(place: &Place, limits: &Limits, numbers: &[u32]) -> Result<usize, AuditError> {
    let mut room = limits.max_total.saturating_sub(limits.max_size);
    for (count, number) in numbers.iter().enumerate() {
        let path = place.older(*number);
        let size = fs::metadata(&path).map_err(AuditError::read(&path))?.len();
        match room.checked_sub(size) {
            Some(left) => room = left,
            None => return Ok(count),
        }
    }
    Ok(numbers.len())
}

/// Whether all entries of a log are too old. One whose end cannot be read has no age; it goes when
/// there is no room for it.
fn is_too_old(path: &Path, limits: &Limits, now: Timestamp) -> Result<bool, AuditError> {
    let end = || {
        let file = File::open(path)?;
        Ok(Tail::of(&file, file.metadata()?.len())?.time)
    };
    let end = end().map_err(AuditError::read(path))?;
    Ok(end.is_some_and(|end| limits.is_too_old(end, now)))
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
