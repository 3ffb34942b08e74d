//! The paths of one log's files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Readable and writable by its owner only.
pub(crate) const PRIVATE: u32 = 0o600;

/// The path of a log, and the names of the files around it.
#[derive(Clone, Debug)]
pub(crate) struct LogFiles {
    log: PathBuf,
}

// === impl LogFiles ===

impl LogFiles {
    pub(crate) fn new(log: &Path) -> Self {
        Self { log: log.to_owned() }
    }

    /// The current log.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The lock, and the last written entry.
    pub(crate) fn head(&self) -> PathBuf {
        self.log.with_extension("head")
    }

    /// Incomplete lines that crashes left.
    pub(crate) fn torn(&self) -> PathBuf {
        self.log.with_extension("torn")
    }

    /// The time that has provably passed.
    pub(crate) fn clock(&self) -> PathBuf {
        self.log.with_extension("clock")
    }

    /// The folder of the markers of processes that write in the background.
    pub(crate) fn open_markers(&self) -> PathBuf {
        self.log.with_extension("open")
    }

    /// The `number`th older log; 1 is the newest.
    pub(crate) fn older(&self, number: u32) -> PathBuf {
        let mut ending = number.to_string();
        if let Some(extension) = self.log.extension() {
            ending.push('.');
            ending.push_str(&extension.to_string_lossy());
        }
        self.log.with_extension(ending)
    }

    /// The numbers of the existing older logs, newest first.
    ///
    /// A crash during renaming may leave a gap.
    pub(crate) fn older_numbers(&self) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(self.folder())? {
            numbers.extend(self.number_of(&entry?.path()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Creates the folder if it does not exist.
    pub(crate) fn create_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder())
    }

    /// Makes renames and removals survive a power cut.
    pub(crate) fn sync_folder(&self) -> io::Result<()> {
        File::open(self.folder())?.sync_all()
    }

    pub(crate) fn folder(&self) -> &Path {
        match self.log.parent() {
            Some(folder) if folder != Path::new("") => folder,
            Some(_) | None => Path::new("."),
        }
    }

    /// The number in the name of an older log.
    fn number_of(&self, path: &Path) -> Option<u32> {
        let rest = path.file_name()?.to_str()?.strip_prefix(self.log.file_stem()?.to_str()?)?;
        let number = rest.strip_prefix('.')?.split('.').next()?.parse().ok()?;
        (self.older(number).file_name() == path.file_name()).then_some(number)
    }
}

/// Opens a file for appending, for its owner only; fixes the permissions of an existing file.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE).open(path)?;
    let mut mode = file.metadata()?.permissions();
    if mode.mode() & 0o077 != 0 {
        mode.set_mode(PRIVATE);
        file.set_permissions(mode)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_logs_are_known_by_their_numbers_and_nothing_else_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let files = LogFiles::new(&folder.path().join("audit.jsonl"));
        let others =
            ["audit.jsonl", "audit.head", "audit.x.jsonl", "audit.01.jsonl", "audit.1.txt"];
        for name in others.iter().chain(&["audit.10.jsonl", "audit.2.jsonl", "other.3.jsonl"]) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(files.older_numbers().unwrap(), [2, 10]);
    }
}
