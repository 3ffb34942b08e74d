//! Starts a program behind its keeper. The only place where processes are started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use capstan_model::{Secret, ServerName};
use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::keeper::KEEPER;

/// What to start, and with what around it.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// A name to be found in `PATH`, or a path.
    pub command: &'a str,
    /// The arguments.
    pub args: &'a [String],
    /// The whole environment.
    pub environment: &'a BTreeMap<String, Secret<String>>,
    /// `None` for our own folder.
    pub cwd: Option<&'a Path>,
    /// Our own program, which becomes the keeper.
    pub keeper: &'a Path,
}

/// A server that was started, with its three streams.
#[derive(Debug)]
pub struct Spawned {
    /// The keeper's process.
    pub keeper: Keeper,
    /// The input of the program.
    pub stdin: ChildStdin,
    /// The output of the program.
    pub stdout: ChildStdout,
    /// The error output of the program.
    pub stderr: ChildStderr,
}

/// The keeper's process. Dropping it ends the server.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    /// Its process group, which may outlive it.
    group: Option<Pid>,
}

/// How a keeper ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With the exit code of its server.
    Code(i32),
    /// Without having had a say.
    Killed,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
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

/// Starts the program. Its environment is what `launch` says, with `PWD`, and nothing else.
pub fn spawn(launch: Launch<'_>) -> Result<Spawned, SpawnError> {
    let program = find(launch)?;
    let mut keeper = keeper_command(launch);
    keeper.arg(KEEPER).arg(std::process::id().to_string()).arg(program).args(launch.args);
    if let Some(cwd) = launch.cwd {
        if !cwd.is_dir() {
            return Err(SpawnError::NoFolder(cwd.to_owned()));
        }
        keeper.current_dir(cwd);
    }
    // Programs believe it, so it names their own folder, whatever the environment says.
    match launch.cwd.unwrap_or(Path::new(".")).canonicalize() {
        Ok(folder) => keeper.env("PWD", folder),
        Err(_) => keeper.env_remove("PWD"),
    };
    let refused = |cause| SpawnError::Refused { command: launch.command.to_owned(), cause };
    let mut child = keeper.spawn().map_err(refused)?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok(Spawned { keeper: Keeper::new(child), stdin, stdout, stderr })
        }
        _ => Err(refused(std::io::Error::other("its streams are missing"))),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that strips the environment")]
fn keeper_command(launch: Launch<'_>) -> Command {
    let mut command = Command::new(launch.keeper);
    command
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value.reveal())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// The program's path, looked up in the `PATH` that the program itself will have.
///
/// Looked up here because an error names the command at once, instead of a keeper that ends.
pub fn find(launch: Launch<'_>) -> Result<PathBuf, SpawnError> {
    let not_found = || SpawnError::NotFound { command: launch.command.to_owned() };
    let path = launch.environment.get("PATH").map(|path| path.reveal().clone());
    let here =
        launch.cwd.map(Path::to_owned).or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    which::which_in(launch.command, path, &here).map_err(|_| {
        let file = here.join(launch.command);
        let is_path = launch.command.contains(std::path::MAIN_SEPARATOR);
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

    /// Its process, as long as it has not been collected.
    pub fn process(&self) -> Option<u32> {
        self.child.id()
    }

    /// Tells the keeper to end the server and itself.
    pub fn stop(&self) {
        if let Some(pid) = pid_of(&self.child) {
            // It may have ended already, which is what we want.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Waits until the keeper has ended; everything below it has ended by then.
    pub async fn ended(&mut self) -> Exit {
        let status = self.child.wait().await.ok();
        status.and_then(|status| status.code()).map_or(Exit::Killed, Exit::Code)
    }

    /// The last resort: ends the keeper and whoever is left in its process group at once.
    pub fn kill(&mut self) {
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
    pub fn hint(&self, server: &ServerName) -> String {
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
