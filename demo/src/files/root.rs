//! The folder nothing may leave.
//!
//! Every path a client names goes through [`Root::file`] or [`Root::folder`], which follow all
//! links first and then ask whether the result is still below the folder. The check and the
//! opening are two steps: whoever may replace folders below the root by links in between is not
//! held back.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::fault::Fault;

/// A folder without links in its own path.
pub(super) struct Root {
    path: PathBuf,
}

// === impl Root ===

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path from the folder to something in it, with `/` between its parts.
    pub(super) fn relative(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.path).unwrap_or(path);
        let parts: Vec<_> =
            below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        parts.join("/")
    }

    /// A regular file. Anything else, such as a pipe, could keep a reader waiting for ever.
    pub(super) fn file(&self, asked: &str) -> Result<PathBuf, Fault> {
        let path = self.resolve(asked)?;
        let about = fs::metadata(&path).map_err(Fault::io("read", asked))?;
        if about.is_dir() {
            return Err(Fault::refused(format!("`{asked}` is a folder")));
        }
        if !about.is_file() {
            return Err(Fault::refused(format!("`{asked}` is not a regular file")));
        }
        Ok(path)
    }

    pub(super) fn folder(&self, asked: &str) -> Result<PathBuf, Fault> {
        let path = self.resolve(asked)?;
        if !path.is_dir() {
            return Err(Fault::refused(format!("`{asked}` is not a folder")));
        }
        Ok(path)
    }

    fn resolve(&self, asked: &str) -> Result<PathBuf, Fault> {
        if asked.contains('\0') {
            return Err(Fault::refused("a path cannot contain a NUL"));
        }
        let asked_path = Path::new(asked);
        if asked_path.components().any(|part| part == Component::ParentDir) {
            return Err(Fault::refused(format!("`{asked}` contains `..`, which is not allowed")));
        }
        // `join` takes an absolute path as it is.
        let path = self.path.join(asked_path);
        if !path.starts_with(&self.path) {
            return Err(Fault::refused(format!("`{asked}` is outside of the folder")));
        }
        let path = path.canonicalize().map_err(|cause| {
            if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                return Fault::Missing { asked: asked.to_owned() };
            }
            Fault::io("open", asked)(cause)
        })?;
        if !path.starts_with(&self.path) {
            return Err(Fault::refused(format!("`{asked}` is a link that leaves the folder")));
        }
        Ok(path)
    }
}
