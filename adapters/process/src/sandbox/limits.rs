//! Limits of resources.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

/// The number of processes and threads of a sandbox for which none is configured.
const PROCESSES: u64 = 512;

/// The memory of a process for which none is configured, in bytes.
const MEMORY: u64 = 4 << 30;

/// The number of files that a process may have open if none is configured.
const OPEN_FILES: u64 = 4096;

/// The size of a file that a process may write if none is configured, in bytes.
const FILE_SIZE: u64 = 2 << 30;

/// The limits of resources; `None` for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The number of processes and threads.
    pub processes: Option<u64>,
    /// The memory that one process may write to, in bytes.
    pub memory: Option<u64>,
    /// The number of files that one process may have open.
    pub open_files: Option<u64>,
    /// The size of a file that it may write, in bytes.
    pub file_size: Option<u64>,
}

// === impl Limits ===

impl Limits {
    /// Sets the limits for this process and all that it will start.
    pub(super) fn apply(self) -> io::Result<()> {
        // The kernel does not count the processes of root.
        match (getuid().is_root(), self.processes) {
            (true, Some(_)) => {
                return Err(io::Error::other(
                    "`sandbox.processes` cannot be enforced for root; remove the key, or run capstan as another user",
                ));
            }
            (true, None) => {}
            (false, processes) => set(Resource::Nproc, processes.unwrap_or(PROCESSES))?,
        }
        set(Resource::Data, self.memory.unwrap_or(MEMORY))?;
        set(Resource::Nofile, self.open_files.unwrap_or(OPEN_FILES))?;
        set(Resource::Fsize, self.file_size.unwrap_or(FILE_SIZE))?;
        set(Resource::Core, 0)
    }
}

/// Lowers a limit. One that is lower already stays.
fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX).min(limit);
    let lowered = Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(resource, lowered).map_err(|error| {
        io::Error::other(format!("the limit {resource:?} cannot be set to {most}: {error}"))
    })
}
