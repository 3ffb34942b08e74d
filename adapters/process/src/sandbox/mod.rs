//! The sandbox of a server's processes.
//!
//! The keeper enters new namespaces (`namespaces`) before it has a second thread. It then starts
//! itself once more, with `CONFINED`, and that process restricts itself (`confined`) and becomes
//! the server: `capabilities`, `limits`, `file_rules` (Landlock), `system_calls` (seccomp).
//! `base` lists the files that programs need in order to run at all, `bridge` carries connections
//! from the namespace to the gate of the hub, and `words` passes the settings to the keeper.
//!
//! **Invariant:** the server starts with all of these restrictions, or it does not start.

mod base;
pub(crate) mod bridge;
mod capabilities;
pub(crate) mod confined;
mod file_rules;
mod limits;
pub(crate) mod namespaces;
mod system_calls;
pub(crate) mod words;

use std::fmt;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::spawn::SpawnError;

pub use limits::Limits;

/// The first argument of the keeper that makes it the process which becomes the server.
pub(crate) const CONFINED: &str = "confined";

/// The settings of a sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// The folder of the server's own files: its home, its caches, its temporary files.
    pub private: PathBuf,
    /// The home folder of the user. Programs of version managers in it may be read.
    pub home: PathBuf,
    /// Files and folders that it may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also change.
    pub write: Vec<PathBuf>,
    /// The way to hosts; `None` if it has no network.
    pub outlet: Option<Arc<dyn Outlet>>,
    /// The limits of resources.
    pub limits: Limits,
}

/// The way from sandboxes to the hosts that they may reach.
pub trait Outlet: fmt::Debug + Send + Sync {
    /// Opens a proxy for one process.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self) -> io::Result<OpenOutlet>;

    /// True if it leads to hosts on this machine, so that programs must use it for them too.
    fn reaches_loopback(&self) -> bool;
}

/// A proxy for one process. Dropping it closes the proxy.
pub struct OpenOutlet {
    /// The socket that the proxy listens on. The keeper removes it after it has opened it.
    pub socket: PathBuf,
    /// Keeps the proxy running.
    pub guard: Box<dyn Send + Sync>,
}

/// A sandbox that is ready for one process.
pub(crate) struct Prepared {
    /// The words for the keeper.
    pub(crate) words: Vec<std::ffi::OsString>,
    /// The working directory if none is configured.
    pub(crate) home: PathBuf,
    /// The open proxy.
    pub(crate) guard: Option<Box<dyn Send + Sync>>,
}

// === impl Sandbox ===

impl Sandbox {
    /// The variables that lead a program to the private folders, and keep connections to its own
    /// loopback away from the proxy.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let folders =
            self.folders().map(|(name, path)| (name, path.to_string_lossy().into_owned()));
        let mut variables = Vec::from(folders);
        if self.outlet.as_ref().is_some_and(|outlet| !outlet.reaches_loopback()) {
            let here = "localhost,127.0.0.1,::1".to_owned();
            variables.extend([("NO_PROXY", here.clone()), ("no_proxy", here)]);
        }
        variables
    }

    fn folders(&self) -> [(&'static str, PathBuf); 9] {
        let home = self.private.join("home");
        [
            ("TMPDIR", self.private.join("tmp")),
            ("TMP", self.private.join("tmp")),
            ("TEMP", self.private.join("tmp")),
            ("XDG_CACHE_HOME", self.private.join("cache")),
            ("XDG_CONFIG_HOME", home.join(".config")),
            ("XDG_DATA_HOME", home.join(".local/share")),
            ("XDG_STATE_HOME", home.join(".local/state")),
            ("XDG_RUNTIME_DIR", self.private.join("run")),
            ("HOME", home),
        ]
    }

    /// Makes the private folders, opens the proxy, and puts the words for the keeper together.
    pub(crate) fn prepare(
        &self,
        program: &Path,
        search_path: Option<&str>,
        cwd: Option<&Path>,
    ) -> Result<Prepared, SpawnError> {
        let private = |cause| SpawnError::Private { folder: self.private.clone(), cause };
        for (_, folder) in self.folders() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(private)?;
        }
        // Without links, so that none of them leads to the home folder.
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let home = whole(&self.home);
        let mut read = base::programs(program, search_path, &home);
        // A working directory that contains the home folder would open all of it.
        read.extend(cwd.map(whole).filter(|cwd| !home.starts_with(cwd)));
        read.extend(self.read.iter().cloned());
        let mut write = vec![self.private.clone()];
        write.extend(self.write.iter().cloned());
        let outlet = self.outlet.as_ref().map(|outlet| outlet.open());
        let outlet = outlet.transpose().map_err(SpawnError::Outlet)?;
        let (socket, guard) = outlet.map(|open| (open.socket, open.guard)).unzip();
        let words = words::Words { read, write, socket, limits: self.limits };
        Ok(Prepared { words: words.write(), home: self.private.join("home"), guard })
    }
}

impl fmt::Debug for OpenOutlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOutlet").field("socket", &self.socket).finish_non_exhaustive()
    }
}
