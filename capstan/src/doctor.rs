//! Checks of the environment of the servers, with a remedy for each finding.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use capstan_app::{AuditWhole, Check, Host as _, Setup};
use capstan_config::{Kind, ServerEntry, SourceFile, Surroundings, load};
use capstan_import::AllDialects;
use capstan_model::Secret;
use capstan_process::once::{End, Limits, Program};

use crate::host::LocalHost;
use crate::pending_approvals;
use crate::world::World;

/// Runtimes that start servers, with their commands and oldest useful versions.
const RUNNERS: &[Runner] = &[
    Runner::new(&["node", "npx", "npm"], "Node.js", "install Node.js 20 or newer", Some(18)),
    Runner::new(&["uvx", "uv"], "uv", "install uv", None),
    Runner::new(&["docker"], "Docker", "install Docker, or Podman with its `docker` command", None),
    Runner::new(&["podman"], "Podman", "install Podman", None),
    Runner::new(&["python3", "python"], "Python", "install Python 3.10 or newer", None),
    Runner::new(&["bunx", "bun"], "Bun", "install Bun", None),
    Runner::new(&["deno"], "Deno", "install Deno", None),
];

/// The default socket of Docker, if no variable names another.
const DOCKER: &str = "/var/run/docker.sock";

/// Allowed difference between the clock and a file's time; the clocks of network drives differ.
const SLACK: Duration = Duration::from_mins(5);

/// Limits on running a program to get its version.
const VERSION: Limits = Limits { time: Duration::from_secs(5), output: 4096 };

struct Runner {
    commands: &'static [&'static str],
    name: &'static str,
    remedy: &'static str,
    /// The oldest version with which most servers still start.
    oldest: Option<u32>,
}

/// Runs all checks of the servers' environment.
pub(crate) async fn checks(host: &LocalHost, setup: &Setup, listen: SocketAddr) -> Vec<Check> {
    let world = &*host.world;
    let mut checks: Vec<Check> = setup.files.iter().map(file).collect();
    checks.extend(shadowed(world, setup));
    checks.push(path(world));
    checks.extend(runners(world, setup).await);
    checks.extend([config_folder(world), state_folder(world), control(world)]);
    checks.push(address(world, listen));
    checks.push(keyring(world));
    checks.push(clock(world));
    checks.push(database(world).await);
    checks.push(match host.verify_audit(setup) {
        Ok(AuditWhole { entries, unclosed: 0, .. }) => {
            Check::ok("audit log", format!("{entries} entries, whole"))
        }
        Ok(AuditWhole { entries, unclosed, .. }) => {
            let detail = format!("{entries} entries, intact; {unclosed} gateways were killed");
            let fix = "their last entries may be missing; the next call records this in the log";
            Check::warning("audit log", detail, fix)
        }
        Err(failure) => {
            let fix = "`capstan audit --verify` shows where; keep a copy of the file";
            Check::error("audit log", failure.message, fix)
        }
    });
    checks
}

fn file(file: &SourceFile) -> Check {
    let fix = "review it, then run `capstan trust`";
    if file.approved {
        Check::ok("configuration", format!("{} is read", file.path))
    } else {
        Check::warning("configuration", format!("{} is not trusted", file.path), fix)
    }
}

/// Reports servers that two files define differently.
fn shadowed(world: &World, setup: &Setup) -> Vec<Check> {
    let workspace = world.workspace();
    let around = Surroundings {
        variable: &|name| world.variable(name),
        project_dir: &workspace.to_string_lossy(),
    };
    let mut checks = Vec::new();
    for file in setup.files.iter().filter(|file| file.approved) {
        let alone = load(std::slice::from_ref(file), &around, &AllDialects).config;
        for name in alone.servers.keys() {
            let Some(used) = setup.loaded.config.servers.get(name) else { continue };
            if used.origin.file == file.path || !used.approved {
                continue;
            }
            let detail = format!("{} defines it too, but {} is used", file.path, used.origin.file);
            let fix = format!("rename one of them, or run `capstan remove {name}`");
            checks.push(Check::warning(format!("servers.{name}"), detail, fix));
        }
    }
    checks
}

fn path(world: &World) -> Check {
    match world.variable("PATH") {
        Some(path) if !path.is_empty() => Check::ok("PATH", "is set"),
        _ => Check::error("PATH", "is empty", "set PATH, so that commands can be found"),
    }
}

/// Checks the programs that start the enabled servers.
async fn runners(world: &World, setup: &Setup) -> Vec<Check> {
    let entries = setup.loaded.config.servers.values().filter(|entry| entry.enabled);
    let commands: BTreeSet<&str> = entries.filter_map(command).collect();
    let mut checks = Vec::new();
    for runner in RUNNERS {
        for command in runner.commands.iter().filter(|command| commands.contains(**command)) {
            checks.push(runner.check(world, command).await);
        }
    }
    if commands.contains("docker") {
        checks.push(docker(world));
    }
    checks
}

/// The name of the program that starts a server.
fn command(entry: &ServerEntry) -> Option<&str> {
    match &entry.status.as_ref().ok()?.kind {
        Kind::Stdio(program) => Some(&program.command),
        Kind::Cli(cli) => Some(&cli.program.command),
        Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_) => None,
    }
}

fn docker(world: &World) -> Check {
    let host = world.variable("DOCKER_HOST").filter(|host| !host.is_empty());
    let socket = match host.as_deref() {
        None => DOCKER,
        Some(host) => match host.strip_prefix("unix://") {
            Some(socket) => socket,
            None => return Check::ok("Docker", format!("runs at {host}, by DOCKER_HOST")),
        },
    };
    match UnixStream::connect(socket) {
        Ok(_) => Check::ok("Docker", "answers"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let fix = "add yourself to the group `docker`, and log in again";
            Check::error("Docker", format!("you have no access to {socket}"), fix)
        }
        Err(error) => {
            let fix = "start it: `systemctl start docker`, or the desktop program";
            Check::error("Docker", format!("does not answer at {socket}: {error}"), fix)
        }
    }
}

fn config_folder(world: &World) -> Check {
    folder("configuration folder", world.config())
}

fn state_folder(world: &World) -> Check {
    folder("state folder", world.state())
}

/// Checks that a folder of ours, or its nearest existing parent, is a writable folder.
fn folder(name: &str, folder: &Path) -> Check {
    let nearest = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    let shown = folder.display();
    let fix = format!("make {} a folder that you may write to", nearest.display());
    if !nearest.is_dir() {
        return Check::error(name, format!("{} is not a folder", nearest.display()), fix);
    }
    if capstan_files::may_write(nearest) {
        Check::ok(name, format!("{shown} can be written"))
    } else {
        Check::error(name, format!("{shown} cannot be written"), fix)
    }
}

/// Checks that the state database can be used, and reports if an earlier one was damaged.
async fn database(world: &World) -> Check {
    const NAME: &str = "state database";
    let path = world.state().join("state.db");
    match world.database().check().await {
        Ok(kept) => match kept.last() {
            None => Check::ok(NAME, format!("{} can be used", path.display())),
            Some(latest) => {
                let detail = format!("was damaged, and is kept as {}", latest.display());
                let fix = "`capstan pins` lists the tools that must be pinned again; remove the \
                           backup when you no longer need it";
                Check::warning(NAME, detail, fix)
            }
        },
        Err(error) => {
            let cause = error.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
            let fix = "check that you may read and write the file, and that the disk has free \
                       space; until then, tools of servers that are not trusted are refused";
            Check::error(NAME, format!("{error}{cause}"), fix)
        }
    }
}

/// Reports running gateways and, without `XDG_RUNTIME_DIR`, the folder of their control sockets.
fn control(world: &World) -> Check {
    let running = capstan_control::find(&pending_approvals::folders(world)).len();
    let shown = match running {
        0 => "no gateway is running".to_owned(),
        1 => "one gateway is running".to_owned(),
        many => format!("{many} gateways are running"),
    };
    let runtime = world.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    if runtime.is_some_and(|folder| folder.is_dir()) {
        return Check::ok("control socket", shown);
    }
    let place = world.state().join("run");
    Check::ok("control socket", format!("{shown}; without XDG_RUNTIME_DIR: {}", place.display()))
}

/// Checks that `serve --http` could listen on its address.
fn address(world: &World, address: SocketAddr) -> Check {
    const NAME: &str = "gateway address";
    match TcpListener::bind(address) {
        Ok(_) => Check::ok(NAME, format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let running = !capstan_control::find(&pending_approvals::folders(world)).is_empty();
            if running {
                return Check::ok(NAME, format!("{address} is in use, and a gateway is running"));
            }
            let fix =
                "stop the process that uses the port, or choose another: `capstan serve --http :0`";
            Check::warning(NAME, format!("{address} is in use by another program"), fix)
        }
        Err(error) => {
            let fix = "set `gateway.listen` to an address of this machine";
            Check::warning(NAME, format!("{address} cannot be used: {error}"), fix)
        }
    }
}

/// Checks that a keyring service is available in the session.
fn keyring(world: &World) -> Check {
    let bus = world.variable("DBUS_SESSION_BUS_ADDRESS").filter(|bus| !bus.is_empty());
    let socket = bus.as_deref().and_then(|bus| bus.split([',', ';']).next());
    let answers = match socket.and_then(|bus| bus.strip_prefix("unix:path=")) {
        Some(socket) => UnixStream::connect(socket).is_ok(),
        None => bus.is_some(),
    };
    let detail = if answers {
        "a session bus answers"
    } else {
        "there is no session bus; secrets are read from variables (`${NAME}`)"
    };
    Check::ok("keyring", detail)
}

/// Checks the clock: if it is behind, approvals last too long and times in the audit log are wrong.
fn clock(world: &World) -> Check {
    let own = std::env::current_exe().ok();
    let kept = ["audit.jsonl", "state.db"].map(|name| world.state().join(name));
    let written = kept.into_iter().chain(own).filter_map(|file| {
        let time = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
        Some((time, file))
    });
    match written.max() {
        Some((time, file)) if time > SystemTime::now() + SLACK => {
            let detail = format!("is behind: {} was written later than now", file.display());
            Check::error("clock", detail, "correct it: `timedatectl set-ntp true`")
        }
        Some(_) | None => Check::ok("clock", "is not behind what was written last"),
    }
}

// === impl Runner ===

impl Runner {
    const fn new(
        commands: &'static [&'static str],
        name: &'static str,
        remedy: &'static str,
        oldest: Option<u32>,
    ) -> Self {
        Self { commands, name, remedy, oldest }
    }

    /// Checks that a command of the runtime can be found and is recent enough.
    async fn check(&self, world: &World, command: &str) -> Check {
        let name = format!("program {command}");
        let found = match program(world, command).find() {
            Ok(found) => found,
            Err(error) => {
                let remedy = format!("{}, and check that it is in PATH", self.remedy);
                return Check::error(name, error.to_string(), remedy);
            }
        };
        let detail = format!("{} is {}", command, found.display());
        let Some(oldest) = self.oldest else { return Check::ok(name, detail) };
        // The first of the commands reports the version.
        let main = self.commands.first().copied().unwrap_or(command);
        match version(&program(world, main)).await {
            Some(major) if major < oldest => {
                let detail = format!("{detail}, but {} is version {major}", self.name);
                Check::warning(
                    name,
                    detail,
                    format!("most servers need a newer version: {}", self.remedy),
                )
            }
            Some(major) => Check::ok(name, format!("{detail}, {} {major}", self.name)),
            None => Check::ok(name, detail),
        }
    }
}

/// A command whose environment has only the variables that it needs to be found.
fn program(world: &World, command: &str) -> Program {
    let passed = ["PATH", "HOME"].into_iter();
    let environment: BTreeMap<String, Secret<String>> = passed
        .filter_map(|name| Some((name.to_owned(), Secret::new(world.variable(name)?))))
        .collect();
    let keeper = std::env::current_exe().unwrap_or_default();
    Program { command: command.to_owned(), environment, secrets: Vec::new(), cwd: None, keeper }
}

/// The first number in a program's version output.
async fn version(program: &Program) -> Option<u32> {
    let output = program.run(&["--version".to_owned()], VERSION, &mut |_| {}).await.ok()?;
    if output.end != End::Code(0) {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout.bytes).into_owned();
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}
