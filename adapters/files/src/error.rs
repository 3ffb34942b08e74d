//! Errors of reading or replacing files, with hints.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Failure to read or replace a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The path names a folder, a pipe or a device.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is too large.
    #[error("`{}` has more than {max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The maximum size.
        max: u64,
    },
    /// The file is not UTF-8.
    #[error("`{}` is not UTF-8 at byte {offset}", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first bad byte, from 0.
        offset: usize,
    },
    /// The path is an endless chain of links.
    #[error("`{}` is a chain of too many links", path.display())]
    TooManyLinks {
        /// The path as given.
        path: PathBuf,
    },
    /// Another process is changing files in the same folder.
    #[error("`{}` is locked{}, waited {waited:?}", folder.display(), by(*holder))]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process that holds the lock, if the system provides it.
        holder: Option<u32>,
        /// The time waited.
        waited: Duration,
    },
    /// The folder cannot be locked.
    #[error("cannot lock `{}`", folder.display())]
    Lock {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The folder of the file does not exist and cannot be created.
    #[error("cannot create the folder `{}`", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The file's mode allows no writes.
    #[error("`{}` is marked read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The owner of the old file could not be set on the new one.
    #[error("cannot replace `{}` and keep its owner", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The new text could not be written; the old one is unchanged.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The new text is in place, but the system did not confirm that it survives a power cut.
    #[error("`{}` is written, but not confirmed by the disk", path.display())]
    Sync {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
}

// === impl FileError ===

impl FileError {
    /// A hint how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, cause } | Self::Write { path, cause } => {
                remedy(cause.kind(), &path.display().to_string())
            }
            Self::Lock { folder, cause } | Self::Folder { folder, cause } => {
                remedy(cause.kind(), &folder.display().to_string())
            }
            Self::NotAFile { .. } => Some("name a regular file".to_owned()),
            Self::TooLarge { path, .. } => {
                Some(format!("check that `{}` is the file you mean", path.display()))
            }
            Self::NotUtf8 { path, .. } => {
                Some(format!("save `{}` as UTF-8 in an editor", path.display()))
            }
            Self::TooManyLinks { path } => {
                Some(format!("`readlink -f {}` shows its target", path.display()))
            }
            Self::Locked { holder: Some(pid), .. } => {
                Some(format!("try again when process {pid} has ended"))
            }
            Self::Locked { holder: None, .. } => {
                Some("try again when the other program is done".to_owned())
            }
            Self::ReadOnly { path } => {
                Some(format!("to allow changes, run `chmod u+w {}`", path.display()))
            }
            Self::Owner { .. } => Some("run the command as the owner of the file".to_owned()),
            Self::Sync { .. } => Some("check the health of the disk".to_owned()),
        }
    }
}

fn by(holder: Option<u32>) -> String {
    holder.map(|pid| format!(" by process {pid}")).unwrap_or_default()
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds are the standard library's, and many"
)]
fn remedy(kind: io::ErrorKind, path: &str) -> Option<String> {
    match kind {
        io::ErrorKind::PermissionDenied => {
            Some(format!("check the permissions of `{path}` and of its folder"))
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some(format!("`{path}` is on a read-only file system; name a file elsewhere"))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some(format!("free some space where `{path}` is"))
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            Some(format!("a part of `{path}` is a file where a folder should be"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_comes_with_a_remedy_that_names_the_path() {
        let kinds = [
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::NotADirectory,
        ];
        for kind in kinds {
            let error = FileError::Write { path: "/a/b".into(), cause: kind.into() };
            assert!(error.to_string().contains("`/a/b`"), "{kind:?}");
            assert!(error.hint().is_some_and(|hint| hint.contains("/a/b")), "{kind:?}");
        }
    }
}
