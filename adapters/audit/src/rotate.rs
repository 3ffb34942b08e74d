//! Putting a full log aside and dropping the oldest ones.
//!
//! A process may die between any two steps: the numbers then have a gap, or a log that should be
//! gone is still there. Readers put up with both.

use std::fs::{self, File};
use std::path::Path;

use crate::AuditError;
use crate::head::HeadFile;
use crate::lines::{Line, Lines};
use crate::place::Place;
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

/// Removes all but the `keep` newest older logs, after noting in the head where the chain then
/// begins; `last` is the last entry written.
pub(crate) fn drop_oldest(
    place: &Place,
    head: &HeadFile,
    keep: u32,
    last: &Link,
) -> Result<(), AuditError> {
    let numbers = place.older_numbers().map_err(AuditError::read(place.folder()))?;
    let (kept, surplus): (Vec<u32>, Vec<u32>) =
        numbers.into_iter().partition(|number| *number <= keep);
    if surplus.is_empty() {
        return Ok(());
    }
    let start = match kept.last() {
        Some(oldest) => place_before_first(place, *oldest)?.unwrap_or_else(|| last.clone()),
        None => last.clone(),
    };
    head.write_start(&start)?;
    for number in surplus.iter().rev() {
        let path = place.older(*number);
        fs::remove_file(&path).map_err(AuditError::write(&path))?;
    }
    Ok(())
}

/// The place in the chain before the first line of an older log.
fn place_before_first(place: &Place, number: u32) -> Result<Option<Link>, AuditError> {
    let path = place.older(number);
    let read = || {
        let file = File::open(&path)?;
        let len = file.metadata()?.len();
        let mut lines = Lines::new(file, 0, len)?;
        match lines.next()? {
            Some(Line::Whole(line)) => Ok(Row::parse(line).map(|row| row.link_before())),
            Some(Line::TooLong | Line::Torn) | None => Ok(None),
        }
    };
    read().map_err(AuditError::read(&path))
}

fn rename(from: &Path, to: &Path) -> Result<(), AuditError> {
    fs::rename(from, to).map_err(AuditError::write(from))
}
