//! Keeps unusable databases under another name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Maximum number of kept databases; the oldest are removed first.
const MOST: usize = 5;

/// The part of the name between that of the database and the time.
const DAMAGED: &str = ".damaged-";

/// Suffixes of the files that `SQLite` keeps next to a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Renames a database with its files; returns the new name if there was anything to keep.
pub(crate) fn keep_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let aside = free_name(path)?;
    let mut kept = None;
    for ending in ["", BESIDE[0], BESIDE[1]] {
        let (from, to) = (with_ending(path, ending), with_ending(&aside, ending));
        match fs::metadata(&from) {
            // An empty file is worthless.
            Ok(meta) if meta.len() == 0 => fs::remove_file(&from)?,
            Ok(_) => {
                fs::rename(&from, &to)?;
                kept = Some(aside.clone());
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(cause),
        }
    }
    for old in all(path).iter().rev().skip(MOST) {
        for ending in ["", BESIDE[0], BESIDE[1]] {
            // A file that cannot be removed is harmless.
            drop(fs::remove_file(with_ending(old, ending)));
        }
    }
    Ok(kept)
}

/// The kept databases, oldest first.
pub(crate) fn all(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let prefix = format!("{}{DAMAGED}", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let time = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix(&prefix)?.to_owned();
        let name = BESIDE.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
        Some(folder.join(format!("{prefix}{name}")))
    };
    let mut kept: Vec<PathBuf> = entries.flatten().filter_map(|entry| time(entry.path())).collect();
    kept.sort();
    kept.dedup();
    kept
}

/// An unused name with the current time, or soon after.
fn free_name(path: &Path) -> io::Result<PathBuf> {
    let taken = all(path);
    let mut time = Timestamp::try_from(SystemTime::now()).map_err(io::Error::other)?;
    for _ in 0..=taken.len() {
        let stamp = time.strftime("%Y%m%dT%H%M%S.%3fZ");
        let name = with_ending(path, &format!("{DAMAGED}{stamp}"));
        if !taken.contains(&name) {
            return Ok(name);
        }
        time = time.checked_add(Duration::from_millis(1)).map_err(io::Error::other)?;
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
