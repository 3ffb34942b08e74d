//! Starts a program behind its keeper, or the user's editor. No other code starts processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use capstan_model::{Secret, ServerName};
use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::keeper::KEEPER;
use crate::sandbox::Sandbox;
use crate::sandbox::words::END;

/// A program to start, with its arguments, environment and working directory.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// A name to be found in `PATH`, or a path.
    pub command: &'a str,
    /// The arguments.
    pub args: &'a [String],
    /// The whole environment.
    pub environment: &'a BTreeMap<String, Secret<String>>,
    /// The working directory; `None` for our own.
    pub cwd: Option<&'a Path>,
    /// The path of our own program, which runs as the keeper.
    pub keeper: &'a Path,
    /// The sandbox to run it in.
    pub sandbox: Option<&'a Sandbox>,
}

/// A started server, with its three streams.
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
pub struct Keeper {
    child: Child,
    /// The keeper's process group, which may outlive the keeper.
    group: Option<Pid>,
    /// Keeps the proxy of its sandbox open.
    _outlet: Option<Box<dyn Send + Sync>>,
}

/// The way in which a program ended, or the keeper of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With the exit code of the program.
    Code(i32),
    /// Killed, so that there is no exit code.
    Killed,
}

/// The reason why a program could not be started.
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
    #[error("`{}` is not executable", .0.display())]
    NoProgram(PathBuf),
    /// No such folder.
    #[error("its folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// The private folder of a sandbox cannot be made.
    #[error("the folder `{}` of its sandbox cannot be made: {cause}", folder.display())]
    Private {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The proxy of a sandbox cannot be opened.
    #[error("the proxy of its sandbox cannot be opened: {0}")]
    Outlet(std::io::Error),
    /// The operating system refused to start the program.
    #[error("`{command}` could not be started: {cause}")]
    Refused {
        /// The command as configured.
        command: String,
        /// The system's error.
        cause: std::io::Error,
    },
}

/// Starts the program. Its environment contains only the variables of `launch`, and `PWD`.
pub fn spawn(launch: Launch<'_>) -> Result<Spawned, SpawnError> {
    let program = find(launch)?;
    let mut keeper = keeper_command(launch);
    keeper.arg(KEEPER).arg(std::process::id().to_string());
    if let Some(cwd) = launch.cwd.filter(|cwd| !cwd.is_dir()) {
        return Err(SpawnError::NoFolder(cwd.to_owned()));
    }
    let search_path = launch.environment.get("PATH").map(|path| path.reveal().as_str());
    let sandbox = launch.sandbox.map(|sandbox| sandbox.prepare(&program, search_path, launch.cwd));
    let sandbox = sandbox.transpose()?;
    // Without a folder of its own, a confined server works in its private one: ours may be any.
    let cwd = launch.cwd.or(sandbox.as_ref().map(|sandbox| &*sandbox.home));
    if let Some(cwd) = cwd {
        keeper.current_dir(cwd);
    }
    keeper.args(sandbox.iter().flat_map(|sandbox| &sandbox.words)).arg(END);
    keeper.arg(program).args(launch.args);
    // Programs trust `PWD`, so it is set to their working directory, whatever the environment says.
    match cwd.unwrap_or(Path::new(".")).canonicalize() {
        Ok(folder) => keeper.env("PWD", folder),
        Err(_) => keeper.env_remove("PWD"),
    };
    let refused = |cause| SpawnError::Refused { command: launch.command.to_owned(), cause };
    let mut child = keeper.spawn().map_err(refused)?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            let guard = sandbox.and_then(|sandbox| sandbox.guard);
            Ok(Spawned { keeper: Keeper::new(child, guard), stdin, stdout, stderr })
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

/// Runs a program that the user chose, such as an editor, in the foreground, and waits for its end.
///
/// It gets our terminal and, because it is the user's own, all of our environment. Its output goes
/// to our stderr, so that stdout has nothing but our data.
///
/// # Errors
/// If it cannot be started.
#[expect(clippy::disallowed_methods, reason = "the user's own program keeps the environment")]
pub async fn run_in_foreground(program: &Path, args: &[OsString]) -> std::io::Result<Exit> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::inherit()).stdout(std::io::stderr()).stderr(Stdio::inherit());
    let status = command.status().await?;
    Ok(status.code().map_or(Exit::Killed, Exit::Code))
}

/// Starts a program that the user chose, such as a browser, and does not wait for it.
///
/// It outlives us, gets no terminal and, because it is the user's own, all of our environment.
///
/// # Errors
/// If it cannot be started.
#[expect(clippy::disallowed_methods, reason = "the user's own program keeps the environment")]
pub fn start_apart(program: &Path, args: &[OsString]) -> std::io::Result<()> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().map(drop)
}

/// Finds the program's path in the `PATH` that the program itself will have.
///
/// The lookup is done here so that the error names the command, instead of a keeper that exits.
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
    fn new(child: Child, outlet: Option<Box<dyn Send + Sync>>) -> Self {
        let group = pid_of(&child);
        Self { child, group, _outlet: outlet }
    }

    /// The keeper's process id, until the process is reaped.
    pub fn process(&self) -> Option<u32> {
        self.child.id()
    }

    /// Signals the keeper to end the server and itself.
    pub fn stop(&self) {
        if let Some(pid) = pid_of(&self.child) {
            // It may have ended already, which is fine.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Waits until the keeper has ended; everything below it has ended by then.
    pub async fn ended(&mut self) -> Exit {
        let status = self.child.wait().await.ok();
        status.and_then(|status| status.code()).map_or(Exit::Killed, Exit::Code)
    }

    /// Kills the keeper and the rest of its process group at once, as a last resort.
    pub fn kill(&mut self) {
        // Only once, because the number may be reused after the group is gone.
        if let Some(group) = self.group.take() {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("child", &self.child).finish_non_exhaustive()
    }
}

/// The process id of the child, until it is reaped.
fn pid_of(child: &Child) -> Option<Pid> {
    child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SpawnError {
    /// The advice to the operator for this error.
    pub fn hint(&self, server: &ServerName) -> String {
        match self {
            Self::NotFound { command } => {
                format!("install `{command}`, or correct `command` under `[servers.{server}]`")
            }
            Self::NoProgram(file) => {
                format!("make it executable (`chmod +x {}`), or correct `command`", file.display())
            }
            Self::NoFolder(_) => format!("correct `cwd` under `[servers.{server}]`"),
            Self::Private { .. } | Self::Outlet(_) => {
                "make its folder writable, or free space on its disk".to_owned()
            }
            Self::NoFile(_) | Self::Refused { .. } => {
                format!("correct `command` under `[servers.{server}]`")
            }
        }
    }
}
