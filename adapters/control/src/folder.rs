//! The sockets of running gateways.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::ControlError;

/// Maximum number of sockets that are examined.
const MAX_SOCKETS: usize = 64;

/// The path of a process's socket.
pub(crate) fn socket(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("gateway-{process}.sock"))
}

/// The process that a socket belongs to; `None` for other files.
pub(crate) fn process(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("gateway-")?.strip_suffix(".sock")?.parse().ok()
}

/// Creates the folder, for its owner only.
///
/// An existing one must belong to us, and is closed to others.
pub(crate) fn prepare(folder: &Path) -> Result<(), ControlError> {
    let failed = |cause| ControlError::Io { path: folder.to_owned(), cause };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    check(folder)?;
    let mode = fs::symlink_metadata(folder).map_err(failed)?.mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// Refuses a folder that others could have written to.
fn check(folder: &Path) -> Result<(), ControlError> {
    let failed = |cause| ControlError::Io { path: folder.to_owned(), cause };
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(ControlError::Foreign { path: folder.to_owned() });
    }
    Ok(())
}

/// The sockets in a folder; none if it is missing, or others can write to it.
pub(crate) fn sockets(folder: &Path) -> Vec<PathBuf> {
    let ours = check(folder).is_ok();
    let open = fs::symlink_metadata(folder).is_ok_and(|found| found.mode() & 0o022 != 0);
    if !ours || open {
        return Vec::new();
    }
    let is_socket = |path: &PathBuf| process(path).is_some();
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map_while(Result::ok).map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths.filter(is_socket).take(MAX_SOCKETS).collect();
    found.sort();
    found
}
