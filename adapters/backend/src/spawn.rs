//! Starts a server behind its keeper. The only place where processes are started.

use std::path::PathBuf;
use std::process::Stdio;

use capstan_model::ServerName;
use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::keeper::KEEPER;
use crate::settings::StdioSettings;

/// A server that was started, with its three streams.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) keeper: Keeper,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// The keeper's process. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    /// Its process group, which may outlive it.
    group: Option<Pid>,
}

/// How a keeper ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// With the exit code of its server.
    Code(i32),
    /// Without having had a say.
    Killed,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SpawnError {
    /// No such program.
    #[error("command `{command}` was not found in PATH")]
    NotFound {
        /// The command as configured.
        command: String,
    },
    /// No such file.
    #[error("`{}` does not exist", .0.display())]
    NoFile(PathBuf),
    /// A file that cannot be run.
    #[error("`{}` is not a program that may be run", .0.display())]
    NoProgram(PathBuf),
    /// No such folder.
    #[error("its folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// The system refused.
    #[error("`{command}` could not be started: {cause}")]
    Refused {
        /// The command as configured.
        command: String,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// Starts the server. Its environment is what the settings say and nothing else.
pub(crate) fn spawn(settings: &StdioSettings) -> Result<Spawned, SpawnError> {
    let program = find(settings)?;
    let command = || settings.command.clone();
    let mut keeper = keeper_command(settings);
    keeper.arg(KEEPER).arg(std::process::id().to_string()).arg(program).args(&settings.args);
    if let Some(cwd) = &settings.cwd {
        if !cwd.is_dir() {
            return Err(SpawnError::NoFolder(cwd.clone()));
        }
        keeper.current_dir(cwd);
    }
    let refused = |cause| SpawnError::Refused { command: command(), cause };
    let mut child = keeper.spawn().map_err(refused)?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok(Spawned { keeper: Keeper::new(child), stdin, stdout, stderr })
        }
        _ => Err(refused(std::io::Error::other("its streams are missing"))),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that strips the environment")]
fn keeper_command(settings: &StdioSettings) -> Command {
    let mut command = Command::new(&settings.keeper);
    command
        .env_clear()
        .envs(settings.environment.iter().map(|(name, value)| (name, value.reveal())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// The program's path, looked up in the `PATH` that the server itself will have.
///
/// Looked up here because an error names the command at once, instead of a keeper that ends.
fn find(settings: &StdioSettings) -> Result<PathBuf, SpawnError> {
    let not_found = || SpawnError::NotFound { command: settings.command.clone() };
    let path = settings.environment.get("PATH").map(|path| path.reveal().clone());
    let here = settings.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    which::which_in(&settings.command, path, &here).map_err(|_| {
        let file = here.join(&settings.command);
        let is_path = settings.command.contains(std::path::MAIN_SEPARATOR);
        match (is_path, file.exists()) {
            (false, _) => not_found(),
            (true, false) => SpawnError::NoFile(file),
            (true, true) => SpawnError::NoProgram(file),
        }
    })
}

// === impl Keeper ===

impl Keeper {
    fn new(child: Child) -> Self {
        let group = pid_of(&child);
        Self { child, group }
    }

    /// Tells the keeper to end the server and itself.
    pub(crate) fn stop(&self) {
        if let Some(pid) = pid_of(&self.child) {
            // It may have ended already, which is what we want.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Waits until the keeper has ended; everything below it has ended by then.
    pub(crate) async fn ended(&mut self) -> Exit {
        let status = self.child.wait().await.ok();
        status.and_then(|status| status.code()).map_or(Exit::Killed, Exit::Code)
    }

    /// The last resort: ends the keeper and whoever is left in its process group at once.
    pub(crate) fn kill(&mut self) {
        // Only once, because the number may be given to others when the group is gone.
        if let Some(group) = self.group.take() {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

/// The process, as long as it has not been collected.
fn pid_of(child: &Child) -> Option<Pid> {
    child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SpawnError {
    /// What the operator can do about it.
    pub(crate) fn hint(&self, server: &ServerName) -> String {
        match self {
            Self::NotFound { command } => {
                format!("install `{command}`, or correct `command` under `[servers.{server}]`")
            }
            Self::NoProgram(file) => {
                format!("make it executable (`chmod +x {}`), or correct `command`", file.display())
            }
            Self::NoFolder(_) => format!("correct `cwd` under `[servers.{server}]`"),
            Self::NoFile(_) | Self::Refused { .. } => {
                format!("correct `command` under `[servers.{server}]`")
            }
        }
    }
}
