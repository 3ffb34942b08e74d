//! Cache of texts that can be recreated: one file per text, by key.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, IntoInnerError, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder of cached texts.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    max_size: u64,
    max_files: usize,
}

// === impl Cache ===

impl Cache {
    /// Creates a cache in a folder: at most `max_files` texts of at most `max_size` bytes each.
    ///
    /// The folder is created for the first text.
    pub fn new(folder: impl Into<PathBuf>, max_size: u64, max_files: usize) -> Self {
        Self { folder: folder.into(), max_size, max_files }
    }

    /// The text with this key, and the time at which it was last saved or touched; `None` if it is
    /// missing or unreadable.
    pub fn load(&self, key: &str) -> Option<(Vec<u8>, SystemTime)> {
        let file = File::open(self.file(key)?).ok()?;
        let about = file.metadata().ok()?;
        if !about.is_file() || about.len() > self.max_size {
            return None;
        }
        let mut text = Vec::with_capacity(usize::try_from(about.len()).ok()?);
        file.take(self.max_size).read_to_end(&mut text).ok()?;
        Some((text, about.modified().ok()?))
    }

    /// Sets the time of a text to now.
    ///
    /// # Errors
    /// If there is no such text, or the file system fails.
    pub fn touch(&self, key: &str) -> io::Result<()> {
        let path = self.file(key).ok_or_else(|| io::Error::other("invalid key"))?;
        File::options().write(true).open(path)?.set_modified(SystemTime::now())
    }

    /// Stores the text that `text` writes.
    ///
    /// Concurrent readers see the old text or the new one; a crash may lose it.
    ///
    /// # Errors
    /// If the key is invalid, or the file system fails.
    pub fn save(
        &self,
        key: &str,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.file(key).ok_or_else(|| io::Error::other("invalid key"))?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        if !path.exists() {
            self.make_room();
        }
        let mut file = BufWriter::new(tempfile::NamedTempFile::new_in(&self.folder)?);
        text(&mut file)?;
        let file = file.into_inner().map_err(IntoInnerError::into_error)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the oldest files if there are too many.
    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<_> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let extra = (files.len() + 1).saturating_sub(self.max_files);
        for (_, path) in files.iter().take(extra) {
            // Another process may have removed it.
            drop(fs::remove_file(path));
        }
    }

    /// Keys are alphanumeric only, so that none leads out of the folder.
    fn file(&self, key: &str) -> Option<PathBuf> {
        let fits = !key.is_empty() && key.len() <= 128;
        (fits && key.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .then(|| Path::new(&self.folder).join(key))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    fn keep(cache: &Cache, key: &str, text: &str) -> io::Result<()> {
        cache.save(key, |to| to.write_all(text.as_bytes()))
    }

    #[test]
    fn what_is_kept_is_found_by_its_key_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a/b");
        let cache = Cache::new(&inside, 10, 5);
        assert_eq!(cache.load("k1"), None);
        keep(&cache, "k1", "one").unwrap();
        keep(&cache, "k1", "two").unwrap();
        let (text, saved) = cache.load("k1").unwrap();
        assert_eq!(text, b"two");
        let past = saved - Duration::from_hours(1);
        File::options().write(true).open(inside.join("k1")).unwrap().set_modified(past).unwrap();
        assert_eq!(cache.load("k1").unwrap().1, past);
        cache.touch("k1").unwrap();
        assert!(cache.load("k1").unwrap().1 >= saved, "it is as new as when it was saved");
        assert_eq!(cache.load("k2"), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inside), mode(&inside.join("k1"))), (0o700, 0o600));
    }

    #[test]
    fn what_is_too_large_is_not_read_and_what_is_no_key_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 3, 5);
        keep(&cache, "k", "four").unwrap();
        assert_eq!(cache.load("k"), None);
        for odd in ["", ".", "..", "a/b", "../x", "a b", &"k".repeat(129)] {
            assert!(keep(&cache, odd, "x").is_err() && cache.load(odd).is_none(), "{odd}");
        }
        fs::create_dir(folder.path().join("dir")).unwrap();
        assert_eq!(cache.load("dir"), None);
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 10, 3);
        for number in 0..10 {
            keep(&cache, &format!("k{number}"), "x").unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        assert!(cache.load("k9").is_some());
    }
}
