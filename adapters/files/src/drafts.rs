//! Texts that are being edited, in files that only the user can read.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, TempPath};

/// The age from which forgotten drafts are removed.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// The ending of the names of drafts.
const SUFFIX: &str = ".toml";

/// A folder of drafts.
#[derive(Clone, Debug)]
pub struct DraftFolder(PathBuf);

/// A file with a draft. It is removed when this is dropped, also if an editor has replaced it.
#[derive(Debug)]
pub struct DraftFile(TempPath);

// === impl DraftFolder ===

impl DraftFolder {
    /// Uses a folder, which is created for the first draft.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Creates a file with a text; `name` is the beginning of its name.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn create(&self, name: &str, text: &str) -> io::Result<DraftFile> {
        self.prepare()?;
        let mut file =
            Builder::new().prefix(&format!("{name}-")).suffix(SUFFIX).tempfile_in(&self.0)?;
        file.write_all(text.as_bytes())?;
        Ok(DraftFile(file.into_temp_path()))
    }

    /// Keeps a text under a name; replaces the one that was kept under it before.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn keep(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let draft = self.create(name, text)?;
        let path = self.0.join(format!("{name}{SUFFIX}"));
        draft.0.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    /// Creates the folder, and removes drafts that were forgotten.
    fn prepare(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        for entry in fs::read_dir(&self.0)?.flatten() {
            let is_draft = entry.file_name().to_str().is_some_and(|name| name.ends_with(SUFFIX));
            let age = entry.metadata().and_then(|facts| facts.modified());
            let age = age.ok().and_then(|time| time.elapsed().ok());
            if is_draft && age.is_some_and(|age| age > MAX_AGE) {
                // Another process may have removed it.
                drop(fs::remove_file(entry.path()));
            }
        }
        Ok(())
    }
}

// === impl DraftFile ===

impl DraftFile {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn drafts_are_private_and_go_with_their_owner() {
        let home = tempfile::tempdir().unwrap();
        let drafts = DraftFolder::new(home.path().join("state/drafts"));
        let draft = drafts.create("github", "a = 1\n").unwrap();
        let path = draft.path().to_owned();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a = 1\n");
        for (path, mode) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
        drop(draft);
        assert!(!path.exists());

        let first = drafts.keep("github", "a").unwrap();
        assert_eq!(drafts.keep("github", "b").unwrap(), first);
        assert_eq!(fs::read_to_string(&first).unwrap(), "b");
        let old = fs::File::options().write(true).open(&first).unwrap();
        old.set_modified(std::time::SystemTime::now() - 2 * MAX_AGE).unwrap();
        drop(drafts.create("other", "").unwrap());
        assert!(!first.exists(), "a forgotten draft stays");
    }
}
