//! Caches the discovered commands of a program, so that the next start needs no discovery.
//!
//! An entry is valid only for the same program file and the same settings. All functions block.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::discover::Found;
use crate::settings::CommandSettings;

/// Format version; changes whenever the same help would be parsed differently.
const FORMAT: u32 = 2;

/// Number of bytes of the program file that are hashed.
const LOOKED_AT: u64 = 1024 * 1024;

/// Maximum size of a cache file.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// A cache file.
#[derive(Clone, Debug)]
pub(crate) struct Entry(PathBuf);

#[derive(Serialize, Deserialize)]
struct CacheFile {
    format: u32,
    /// The program, for people who read the file.
    program: String,
    found: Found,
}

// === impl Entry ===

impl Entry {
    /// The entry of a program; `None` if caching is off or the program cannot be read.
    pub(crate) fn of(settings: &CommandSettings) -> Option<Self> {
        let folder = settings.cache.as_ref()?;
        let program = settings.program.find().ok()?;
        let key = key(&program, settings).ok()?;
        Some(Self(folder.join("commands").join(format!("{key}.json"))))
    }

    /// Loads the cached commands, if there are any.
    pub(crate) fn load(&self) -> Option<Found> {
        let mut text = Vec::new();
        File::open(&self.0).ok()?.take(MAX_FILE).read_to_end(&mut text).ok()?;
        let kept: CacheFile = serde_json::from_slice(&text).ok()?;
        (kept.format == FORMAT).then_some(kept.found)
    }

    /// Stores the commands. Concurrent readers see the old file or the new one.
    pub(crate) fn store(&self, program: &str, found: &Found) -> std::io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let kept = CacheFile { format: FORMAT, program: program.to_owned(), found: found.clone() };
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        file.persist(&self.0).map_err(|error| error.error)?;
        Ok(())
    }
}

/// The cache key: a digest of the program file and the settings.
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
