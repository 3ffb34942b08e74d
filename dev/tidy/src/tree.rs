//! Finds the text files of the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const FOREIGN: &[&str] = &["target", "node_modules"];

/// Folders with a leading dot that do hold something of ours.
const DOTTED: &[&str] = &[".ci", ".config", ".github"];

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Where it is, from the root, with `/` between the folders.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every text file of the repository, in the order of the paths.
pub fn files() -> io::Result<Vec<File>> {
    let mut found = Vec::new();
    collect(&root(), "", &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Every text file whose name ends so, in the order of the paths.
pub fn files_ending(ending: &str) -> io::Result<Vec<File>> {
    Ok(files()?.into_iter().filter(|file| file.path.ends_with(ending)).collect())
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && ours(&name) {
            collect(&entry.path(), &format!("{path}/"), found)?;
        } else if kind.is_file()
            // In a linked work tree, `.git` is a file with the place of the repository.
            && name != ".git"
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            found.push(File { path, text });
        }
    }
    Ok(())
}

fn ours(folder: &str) -> bool {
    !FOREIGN.contains(&folder) && (!folder.starts_with('.') || DOTTED.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_finds_this_file_and_nothing_that_was_built_or_installed() {
        let found = files().unwrap();
        assert!(found.iter().any(|file| file.path == "dev/tidy/src/tree.rs"));
        for folder in ["target/", ".git/", ".dev/"] {
            assert!(!found.iter().any(|file| file.path.starts_with(folder)), "{folder}");
        }
    }
}
