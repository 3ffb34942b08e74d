//! Keeps what was found out about a program, so that the next start costs nothing.
//!
//! What is kept is found again only for the same program file and the same settings. Everything
//! here blocks.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::discover::Found;
use crate::settings::CommandSettings;

/// Changes whenever the same help would be read differently.
const FORMAT: u32 = 1;

/// How much of the program file counts.
const LOOKED_AT: u64 = 1024 * 1024;

/// The largest file that is read.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// A file in which something may be kept.
#[derive(Clone, Debug)]
pub(crate) struct Entry(PathBuf);

#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    /// The program, for whoever looks into the file.
    program: String,
    found: Found,
}

// === impl Entry ===

impl Entry {
    /// The entry of a program; `None` when nothing is to be kept, or the program cannot be read.
    pub(crate) fn of(settings: &CommandSettings) -> Option<Self> {
        let folder = settings.cache.as_ref()?;
        let program = settings.program.find().ok()?;
        let key = key(&program, settings).ok()?;
        Some(Self(folder.join("commands").join(format!("{key}.json"))))
    }

    /// What is kept, if anything.
    pub(crate) fn load(&self) -> Option<Found> {
        let mut text = Vec::new();
        File::open(&self.0).ok()?.take(MAX_FILE).read_to_end(&mut text).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        (kept.format == FORMAT).then_some(kept.found)
    }

    /// Keeps something. Whoever reads meanwhile sees the old file or the new one.
    pub(crate) fn store(&self, program: &str, found: &Found) -> std::io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let kept = Kept { format: FORMAT, program: program.to_owned(), found: found.clone() };
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        file.persist(&self.0).map_err(|error| error.error)?;
        Ok(())
    }
}

/// What the program is and how it is asked.
fn key(program: &Path, settings: &CommandSettings) -> std::io::Result<String> {
    let whole = fs::canonicalize(program)?;
    let about = fs::metadata(&whole)?;
    let changed = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mut begin = Vec::new();
    File::open(&whole)?.take(LOOKED_AT).read_to_end(&mut begin)?;
    let command = &settings.program.command;
    let asked = (command, &settings.args, &settings.help, settings.depth, &settings.only);
    let about = (env!("CARGO_PKG_VERSION"), FORMAT, &whole, about.len(), changed, asked);
    let mut hash = Sha256::new();
    hash.update(serde_json::to_vec(&about)?);
    hash.update([0]);
    hash.update(&begin);
    let mut key = String::new();
    for byte in hash.finalize() {
        let _ = write!(key, "{byte:02x}");
    }
    Ok(key)
}
