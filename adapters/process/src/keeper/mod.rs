//! The keeper: a small process between the hub and a server, run from the hub's own binary.
//!
//! A server often is a tree of processes (`npx`, `sh -c`, `uvx`). A death signal reaches only the
//! first of them, and after `kill -9` the hub cannot clean up. So each server is started by a
//! keeper that
//!
//! - leads a process group of its own, apart from the terminal's signals,
//! - adopts every orphan of the tree (Linux: subreaper),
//! - watches the hub and ends the whole tree when the hub is gone or requests it.
//!
//! It does not forward data: the server inherits the hub's pipes. A server with a sandbox gets it here
//! ([`crate::sandbox`]).

mod tree;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::sandbox::bridge::Bridge;
use crate::sandbox::words::{END, Words};
use crate::sandbox::{CONFINED, confined, namespaces};

/// The first argument that makes our binary a keeper.
pub const KEEPER: &str = "__keeper";

/// The file of this very program, even if it was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How long the tree may take to end after it is asked to.
const GRACE: Duration = Duration::from_millis(1500);

/// How often the tree is killed before the keeper gives up on processes that the kernel cannot end.
const KILL_ROUNDS: u32 = 100;

/// The pause between two checks of a tree that is being killed.
const KILL_PAUSE: Duration = Duration::from_millis(10);

/// The keeper's exit code when the server could not be started.
const NOT_STARTED: u8 = 127;

/// Runs as the keeper of `COMMAND ARGS…` for the hub with the process id `HUB`.
///
/// `arguments` are those after [`KEEPER`]: `HUB [SANDBOX…] -- COMMAND ARGS…`. With the first one
/// `confined`, this process is one that a keeper has started, and becomes the server.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.peekable();
    let ended = match arguments.next_if(|first| first == CONFINED) {
        Some(_) => confined::run(arguments).map(|never| match never {}),
        None => keep(arguments),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // The hub reads this as the last output of the server.
            let words = format!("capstan: cannot start the server: {error}\n");
            drop(io::Write::write_all(&mut io::stderr(), words.as_bytes()));
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn keep(mut arguments: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let usage = || io::Error::other("the keeper is started by capstan itself");
    let hub = arguments.next().and_then(|hub| hub.to_str()?.parse().ok()).ok_or_else(usage)?;
    let hub = Pid::from_raw(hub).ok_or_else(usage)?;
    let sandbox = Words::read(&mut arguments)?;
    let command = arguments.next().ok_or_else(usage)?;
    tree::adopt_orphans()?;
    // Before there is a second thread: the kernel then refuses new user namespaces.
    let bridge = sandbox.as_ref().map(enter).transpose()?.flatten();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let watch = HubWatch::new(hub)?;
        let mut signals = Signals::new()?;
        let mut start = match &sandbox {
            Some(sandbox) => start_confined(sandbox, command, bridge.as_ref()),
            None => program(command),
        };
        let child = start.args(arguments).spawn()?;
        release_pipes()?;
        if let Some(bridge) = bridge {
            tokio::spawn(bridge.run());
        }
        signals.wait_for_end(child, watch).await
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment was stripped when the keeper itself was started"
)]
fn program(command: impl AsRef<OsStr>) -> Command {
    Command::new(command)
}

/// Enters the namespaces of a sandbox, and opens the way to its proxy, if it has one.
fn enter(sandbox: &Words) -> io::Result<Option<Bridge>> {
    let within = |error| io::Error::other(format!("its sandbox cannot be set up: {error}"));
    namespaces::enter().map_err(within)?;
    sandbox.socket.as_deref().map(Bridge::new).transpose().map_err(within)
}

/// The command that restricts itself and then becomes the server.
fn start_confined(sandbox: &Words, server: OsString, bridge: Option<&Bridge>) -> Command {
    let mut command = program(OWN_PROGRAM);
    command.arg(KEEPER).arg(CONFINED).args(sandbox.write()).arg(END).arg(server);
    if let Some(bridge) = bridge {
        command.envs(bridge.variables());
    }
    command
}

/// Closes the keeper's ends of the pipes between hub and server.
/// Each of them can then detect when the other closes its end.
fn release_pipes() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// The signals that the keeper handles.
struct Signals {
    child: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

// === impl Signals ===

impl Signals {
    /// Listens from now on, so that no signal is missed between start and wait.
    fn new() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits until the server ends, the hub is gone or a stop signal arrives; then ends the tree.
    async fn wait_for_end(&mut self, child: Child, mut watch: HubWatch) -> io::Result<u8> {
        let server = Pid::from_child(&child);
        let mut code = reap(server);
        while code.is_none() {
            tokio::select! {
                _ = self.child.recv() => code = reap(server),
                () = watch.gone() => break,
                _ = self.terminate.recv() => break,
                _ = self.interrupt.recv() => break,
                _ = self.hang_up.recv() => break,
            }
        }
        let last = self.end_tree(server).await;
        Ok(code.or(last).unwrap_or(0))
    }

    /// Sends SIGTERM to everything below, and kills the rest after [`GRACE`].
    async fn end_tree(&mut self, server: Pid) -> Option<u8> {
        let mut code = reap(server);
        if !tree::has_children() {
            // Scanning every process of the machine would cost more than everything else here.
            return code;
        }
        tree::signal_all(Signal::TERM);
        let patience = tokio::time::sleep(GRACE);
        tokio::pin!(patience);
        while tree::has_children() {
            tokio::select! {
                () = &mut patience => break,
                _ = self.child.recv() => code = reap(server).or(code),
            }
        }
        // Killing a parent makes its children ours, so check again until none are left.
        for _ in 0..KILL_ROUNDS {
            code = reap(server).or(code);
            if !tree::has_children() {
                break;
            }
            tree::signal_all(Signal::KILL);
            tokio::time::sleep(KILL_PAUSE).await;
        }
        code
    }
}

/// Reaps every child that has ended; returns the exit code of `server` if it is among them.
fn reap(server: Pid) -> Option<u8> {
    let mut code = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == server {
            let status = std::process::ExitStatus::from_raw(status.as_raw());
            let by_signal = status.signal().map(|signal| 128 + signal);
            code = status.code().or(by_signal).and_then(|code| u8::try_from(code).ok());
        }
    }
    code
}

/// Detects when the hub is gone.
enum HubWatch {
    /// The kernel reports it through a pidfd.
    Told(oneshot::Receiver<()>),
    /// The hub is already gone.
    Gone,
    /// The keeper polls its parent process id.
    Look(Pid),
}

// === impl HubWatch ===

impl HubWatch {
    fn new(hub: Pid) -> io::Result<Self> {
        let handle = tree::process_handle(hub);
        // The order matters: a process id can be reused, but not our parent's while it is our
        // parent.
        if rustix::process::getppid() != Some(hub) {
            return Ok(Self::Gone);
        }
        match handle {
            Some(handle) => Ok(Self::Told(tell_when_ended(handle)?)),
            None => Ok(Self::Look(hub)),
        }
    }

    async fn gone(&mut self) {
        match self {
            Self::Told(ended) => drop(ended.await),
            Self::Gone => {}
            Self::Look(hub) => {
                while rustix::process::getppid() == Some(*hub) {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }
}

/// Waits for the end of a process in its own thread: the kernel has no other safe way.
fn tell_when_ended(handle: OwnedFd) -> io::Result<oneshot::Receiver<()>> {
    let (tell, ended) = oneshot::channel();
    std::thread::Builder::new().name("hub-watch".to_owned()).spawn(move || {
        let mut wanted = [PollFd::new(&handle, PollFlags::IN)];
        while matches!(poll(&mut wanted, None), Err(rustix::io::Errno::INTR)) {}
        // The receiver may be dropped if the keeper itself is about to end.
        let _ = tell.send(());
    })?;
    Ok(ended)
}
