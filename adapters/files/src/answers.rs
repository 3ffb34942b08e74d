//! Files of long answers: one per answer, closed to other users.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The longest time in which a file is written.
const MAX_WRITING: Duration = Duration::from_hours(1);

/// A folder of files that are written once.
#[derive(Clone, Debug)]
pub struct AnswerFolder {
    folder: PathBuf,
}

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFile {
    /// Its name.
    pub name: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The time at which it was written.
    pub written: SystemTime,
}

// === impl AnswerFolder ===

impl AnswerFolder {
    /// Uses a folder, which is created for the first file.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Writes a file and returns its path. Readers see all of it or nothing.
    ///
    /// # Errors
    /// If the name is invalid, or the file system fails.
    pub fn save(&self, name: &str, text: &[u8]) -> io::Result<PathBuf> {
        let path = self.path(name)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(text)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    /// Lists the files. There are none before the first one is written.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<AnswerFile>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let file = |entry: fs::DirEntry| {
            // Another process may have removed it.
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let name = entry.file_name().into_string().ok()?;
            if name.starts_with('.') {
                remove_partial(&entry.path(), &about);
                return None;
            }
            Some(AnswerFile { name, bytes: about.len(), written: about.modified().ok()? })
        };
        Ok(entries.filter_map(|entry| file(entry.ok()?)).collect())
    }

    /// Reads a file; `None` if there is none of this name.
    ///
    /// # Errors
    /// If the file has more than `max_size` bytes, or cannot be read.
    pub fn load(&self, name: &str, max_size: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.path(name)?) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(max_size.saturating_add(1)).read_to_end(&mut text)?;
        if u64::try_from(text.len()).is_ok_and(|size| size > max_size) {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
        }
        Ok(Some(text))
    }

    /// Removes a file, if it is still there.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path(name)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Names cannot lead out of the folder.
    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return Err(io::Error::other("invalid name"));
        }
        Ok(self.folder.join(name))
    }
}

/// Removes a file that was never completed, because its process ended.
fn remove_partial(path: &Path, about: &fs::Metadata) {
    let age = about.modified().ok().and_then(|written| written.elapsed().ok());
    if age.is_some_and(|age| age > MAX_WRITING) {
        // Another process may have removed it.
        drop(fs::remove_file(path));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_written_for_its_owner_alone_and_found_until_it_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = AnswerFolder::new(home.path().join("a/b"));
        assert_eq!(folder.list().unwrap(), []);
        let path = folder.save("k1.x.json", b"one").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let listed = folder.list().unwrap();
        let [file] = listed.as_slice() else { panic!("{listed:?}") };
        assert_eq!((file.name.as_str(), file.bytes), ("k1.x.json", 3));
        assert_eq!(folder.load("k1.x.json", 3).unwrap().as_deref(), Some(&b"one"[..]));
        assert!(folder.load("k1.x.json", 2).is_err());
        folder.remove("k1.x.json").unwrap();
        folder.remove("k1.x.json").unwrap();
        assert_eq!(folder.load("k1.x.json", 3).unwrap(), None);
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let home = tempfile::tempdir().unwrap();
        let folder = AnswerFolder::new(home.path());
        for odd in ["", ".", "..", ".k", "../k", "a/b", "a b", "a\0"] {
            assert!(folder.save(odd, b"x").is_err(), "{odd}");
            assert!(folder.load(odd, 9).is_err() && folder.remove(odd).is_err(), "{odd}");
        }
    }
}
