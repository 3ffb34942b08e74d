//! Reads a whole file, within a bound.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Access, OFlags};

use crate::FileError;

/// Maximum size of a configuration file, in bytes.
pub const MAX_SIZE: u64 = 1024 * 1024;

/// True if an existing file or folder is writable.
pub fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

/// Reads a text file of at most `max` bytes; `None` if it does not exist.
pub fn read_bounded(path: &Path, max: u64) -> Result<Option<String>, FileError> {
    let Some(bytes) = read_bytes(path, max)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|error| FileError::NotUtf8 {
        path: path.to_owned(),
        offset: error.utf8_error().valid_up_to(),
    })?;
    Ok(Some(text))
}

/// Reads a file of at most `max` bytes; `None` if it does not exist.
pub(crate) fn read_bytes(path: &Path, max: u64) -> Result<Option<Vec<u8>>, FileError> {
    let failed = |cause| FileError::Read { path: path.to_owned(), cause };
    let file = match open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(failed(cause)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(FileError::NotAFile { path: path.to_owned() });
    }
    // Reading one more byte distinguishes "full" from "too large", also if the file grows
    // meanwhile.
    let mut bytes = Vec::new();
    let read = file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if read as u64 > max {
        return Err(FileError::TooLarge { path: path.to_owned(), max });
    }
    Ok(Some(bytes))
}

/// Opens a file without blocking.
///
/// A project could contain a pipe with an expected name, and opening a pipe blocks until it has a
/// writer.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_absent_file_is_none_and_a_present_one_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        assert_eq!(read_bounded(&path, 10).unwrap(), None);
        fs::write(&path, "x = 1\n").unwrap();
        assert_eq!(read_bounded(&path, 10).unwrap().as_deref(), Some("x = 1\n"));
    }

    #[test]
    fn a_file_may_be_as_large_as_the_bound_and_not_a_byte_larger() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        fs::write(&path, "0123456789").unwrap();
        assert!(read_bounded(&path, 10).is_ok());
        let error = read_bounded(&path, 9).unwrap_err();
        assert!(matches!(error, FileError::TooLarge { max: 9, .. }), "{error:?}");
    }

    #[test]
    fn the_first_byte_that_is_not_text_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        fs::write(&path, b"ok \xff\xfe").unwrap();
        let error = read_bounded(&path, 10).unwrap_err();
        assert!(matches!(error, FileError::NotUtf8 { offset: 3, .. }), "{error:?}");
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused_without_waiting_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [folder.path(), &pipe, Path::new("/dev/null")] {
            let error = read_bounded(path, 10).unwrap_err();
            assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
        }
    }

    #[test]
    fn a_path_through_a_file_is_an_error_and_not_an_absent_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "").unwrap();
        let error = read_bounded(&path.join("b"), 10).unwrap_err();
        assert!(matches!(error, FileError::Read { .. }), "{error:?}");
    }
}
