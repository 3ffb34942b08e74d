//! What the sandbox of a server opens: paths and folders, from its entry.

use std::path::{Path, PathBuf};

use capstan_config::{Sandbox, ServerEntry};

use crate::Environment;

/// The folder of private files of all servers, in the cache folder.
const FOLDER: &str = "sandbox";

/// The paths of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxFolders {
    /// The server's own folder. Entries of different files have different ones, so that a project
    /// cannot leave files for a server of the user.
    pub private: PathBuf,
    /// Files and folders that may be read.
    pub read: Vec<PathBuf>,
    /// Files and folders that may be changed.
    pub write: Vec<PathBuf>,
}

/// The paths that an entry's sandbox opens.
pub fn sandbox_folders(
    environment: &Environment,
    entry: &ServerEntry,
    sandbox: &Sandbox,
) -> SandboxFolders {
    let name = format!("{}-{:08x}", entry.name, digest(&entry.origin.file));
    let paths = |texts: &[String]| texts.iter().map(|text| path(environment, text)).collect();
    SandboxFolders {
        private: environment.cache.join(FOLDER).join(name),
        read: paths(&sandbox.read),
        write: paths(&sandbox.write),
    }
}

/// A path of the configuration, from the home folder or the workspace.
fn path(environment: &Environment, text: &str) -> PathBuf {
    match text.strip_prefix('~') {
        Some("") => environment.home.clone(),
        Some(rest) if rest.starts_with('/') => environment.home.join(rest.trim_start_matches('/')),
        Some(_) | None => environment.workspace().join(Path::new(text)),
    }
}

/// A short digest of a file's name (FNV-1a), which later versions compute too.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::fakes::{FakeFiles, configs};

    #[test]
    fn paths_are_resolved_and_files_have_folders_of_their_own() {
        let user = "/home/me/.config/capstan/config.toml";
        let text = "[servers.a]\ncommand = \"x\"\n\
                    sandbox = { read = [\"~/notes\", \"~\", \"/srv\", \"~x\"], write = [\"out\"] }\n";
        let configs = configs(FakeFiles::with(&[(user, text)]));
        let setup = configs.load(&Selection::default()).unwrap();
        let mut entry = setup.loaded.config.servers.values().next().unwrap().clone();
        let sandbox = entry.status.as_ref().unwrap().confinement().unwrap().clone();
        let environment = &configs.environment;
        let folders = sandbox_folders(environment, &entry, &sandbox);
        let workspace = environment.workspace();
        let expected =
            ["/home/me/notes".into(), "/home/me".into(), "/srv".into(), workspace.join("~x")];
        assert_eq!(folders.read, expected);
        assert_eq!(folders.write, [workspace.join("out")]);
        entry.origin.file = "/project/.capstan/config.toml".to_owned();
        assert_ne!(sandbox_folders(environment, &entry, &sandbox).private, folders.private);
    }
}
