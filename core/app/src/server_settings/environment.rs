//! The variables and folders that a server gets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use capstan_config::{Program, Server};
use capstan_model::Secret;
use capstan_safety::environment;

use crate::Environment;

/// A folder that a server may work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFolder {
    /// The `file://` URI.
    pub uri: String,
    /// The name.
    pub name: String,
}

/// The environment of a program: variables passed by default, passed through by name, and declared.
pub fn variables(environment: &Environment, program: &Program) -> BTreeMap<String, Secret<String>> {
    let asked = |name: &String| program.env_passthrough.contains(name);
    let passes = |name: &String, value: &String| {
        (environment::passes(name, value) || asked(name)) && !environment::hijacks(name)
    };
    let ours = environment.variables.iter().filter(|(name, value)| passes(name, value));
    let mut all: BTreeMap<String, Secret<String>> =
        ours.map(|(name, value)| (name.clone(), Secret::new(value.clone()))).collect();
    all.extend(program.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

/// The names of variables that are set here but not `given` to a program, and could be.
pub fn withheld(
    environment: &Environment,
    given: &BTreeMap<String, Secret<String>>,
) -> BTreeSet<String> {
    let kept_back = |name: &&String| !given.contains_key(*name) && !environment::hijacks(name);
    environment.variables.keys().filter(kept_back).cloned().collect()
}

/// The roots of a server: the project, if there is one, and the configured folders.
///
/// Outside a project, the current folder is not a root unless it is configured, as it is for Zeph's
/// servers: a server that was given a folder would use it instead of that folder.
pub fn roots(environment: &Environment, server: &Server) -> Vec<RootFolder> {
    let workspace = environment.workspace();
    let configured = server.roots.iter().map(|root| workspace.join(root));
    let mut folders: Vec<PathBuf> = environment.project().into_iter().collect();
    for folder in configured {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.iter().map(|path| root(path)).collect()
}

fn root(path: &Path) -> RootFolder {
    let name =
        path.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into());
    RootFolder { uri: file_uri(path), name }
}

/// A path as a `file://` URI; every byte that is not known to be harmless is escaped.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_anything_in_it_becomes_a_uri() {
        assert_eq!(file_uri(Path::new("/a b/ü#?")), "file:///a%20b/%C3%BC%23%3F");
    }
}
