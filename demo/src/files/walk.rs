//! All files below a folder, as far as they are anyone's business.

use std::fs;
use std::path::Path;

use super::root::Root;

/// Most entries looked at in one walk.
const MAX_VISITED: usize = 50_000;

/// The files of a walk, by path from the root.
pub(super) struct Walk {
    pub(super) files: Vec<String>,
    /// Whether the walk ended before the tree did.
    pub(super) truncated: bool,
}

/// Walks the tree below `start`, which lies in `root`.
///
/// Links are not followed, so the walk can neither leave the root nor run in circles. What cannot
/// be read is left out, and so are folders that begin with a dot and names that are not UTF-8.
pub(super) fn files(root: &Root, start: &Path) -> Walk {
    let mut walk = Walk { files: Vec::new(), truncated: false };
    let mut folders = vec![start.to_owned()];
    let mut visited = 0_usize;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            visited += 1;
            if visited > MAX_VISITED {
                walk.truncated = true;
                folders.clear();
                break;
            }
            let (Ok(kind), Some(name)) =
                (entry.file_type(), entry.file_name().to_str().map(str::to_owned))
            else {
                continue;
            };
            if kind.is_dir() && !name.starts_with('.') {
                folders.push(entry.path());
            } else if kind.is_file() {
                walk.files.push(root.relative(&entry.path()));
            }
        }
    }
    walk.files.sort();
    walk
}
