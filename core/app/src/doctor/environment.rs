//! Checks of the machine: files, folders, sockets, addresses, the clock and stored state.

use core::net::SocketAddr;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use capstan_config::{ServerEntry, SourceFile};

use super::{Check, Doctor};
use crate::gateways::runtime_folder;
use crate::{AppError, AuditWhole, Environment, FileFacts, Setup};

/// Allowed difference between the clock and a file's time; the clocks of network drives differ.
const SLACK: Duration = Duration::from_mins(5);

/// Words of errors about a full disk.
const FULL: [&str; 3] = ["no space", "disk is full", "quota"];

/// Words of errors about missing rights.
const FORBIDDEN: [&str; 3] = ["permission denied", "readonly", "read-only"];

// === impl Doctor ===

impl Doctor {
    pub(super) async fn check_environment(
        &self,
        setup: &Setup,
        listen: Result<SocketAddr, AppError>,
    ) -> Vec<Check> {
        let environment = &*self.configs.environment;
        let mut checks: Vec<Check> = setup.files.iter().map(file).collect();
        checks.extend(shadowed(environment, setup));
        checks.push(path(environment));
        checks.extend(self.check_runtimes(setup).await);
        checks.push(folder(environment, "configuration folder", &environment.config));
        checks.push(folder(environment, "state folder", &environment.state));
        let address = match listen {
            Ok(address) => self.address(address),
            Err(failure) => {
                let fix = failure.hint.unwrap_or_else(|| "correct `gateway.listen`".to_owned());
                Check::error("gateway address", failure.message, fix)
            }
        };
        checks.extend([self.control(), address, self.keyring(), self.clock()]);
        checks.extend(self.sandbox(setup).await);
        checks.push(self.database().await);
        checks.push(self.audit_log(setup));
        checks
    }

    /// Checks that this system can confine programs, if a server is to be confined.
    async fn sandbox(&self, setup: &Setup) -> Option<Check> {
        const NAME: &str = "sandbox";
        let servers = setup.loaded.config.servers.values();
        let is_confined = |entry: &&ServerEntry| {
            entry.usable().is_some_and(|server| server.confinement().is_some())
        };
        let confined: Vec<String> =
            servers.filter(is_confined).map(|entry| format!("`{}`", entry.name)).collect();
        if confined.is_empty() {
            return None;
        }
        let names = confined.join(", ");
        Some(match self.machine.check_sandbox().await {
            Ok(()) => Check::ok(
                NAME,
                format!("this system confines {names}: Landlock, seccomp, a network namespace"),
            ),
            Err(reason) => Check::error(
                NAME,
                format!("{names} cannot start: {reason}"),
                "use a system that has it; `sandbox = false` runs the server without protection",
            ),
        })
    }

    /// Reports running gateways and, without `XDG_RUNTIME_DIR`, the folder of their control
    /// sockets.
    fn control(&self) -> Check {
        let environment = &*self.configs.environment;
        let shown = match self.gateways.find().len() {
            0 => "no gateway is running".to_owned(),
            1 => "one gateway is running".to_owned(),
            many => format!("{many} gateways are running"),
        };
        if runtime_folder(environment).is_some() {
            return Check::ok("control socket", shown);
        }
        let place = environment.state.join("run");
        let detail = format!("{shown}; without XDG_RUNTIME_DIR: {}", place.display());
        Check::ok("control socket", detail)
    }

    /// Checks that `serve --http` could listen on its address.
    fn address(&self, address: SocketAddr) -> Check {
        const NAME: &str = "gateway address";
        match self.machine.listen(address) {
            Ok(()) => Check::ok(NAME, format!("{address} is free")),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                if !self.gateways.find().is_empty() {
                    let detail = format!("{address} is in use, and a gateway is running");
                    return Check::ok(NAME, detail);
                }
                let fix = "stop the process that uses the port, or choose another: `capstan serve --http :0`";
                Check::warning(NAME, format!("{address} is in use by another program"), fix)
            }
            Err(error) => {
                let fix = "set `gateway.listen` to an address of this machine";
                Check::warning(NAME, format!("{address} cannot be used: {error}"), fix)
            }
        }
    }

    /// Checks that a keyring service is available in the session.
    fn keyring(&self) -> Check {
        let bus = self.configs.environment.filled_variable("DBUS_SESSION_BUS_ADDRESS");
        let socket = bus.as_deref().and_then(|bus| bus.split([',', ';']).next());
        let answers = match socket.and_then(|bus| bus.strip_prefix("unix:path=")) {
            Some(socket) => self.machine.connect(Path::new(socket)).is_ok(),
            None => bus.is_some(),
        };
        let detail = if answers {
            "a session bus answers"
        } else {
            "there is no session bus; logins and secrets are stored in a file"
        };
        Check::ok("keyring", detail)
    }

    /// Checks the clock: if it is behind, approvals last too long and times in the audit log are
    /// wrong.
    fn clock(&self) -> Check {
        let environment = &*self.configs.environment;
        let own = environment.program.as_ref().ok().cloned();
        let kept = ["audit.jsonl", "state.db"].map(|name| environment.state.join(name));
        let written = kept.into_iter().chain(own).filter_map(|file| {
            let time = environment.files.facts(&file)?.modified?;
            Some((time, file))
        });
        let latest = self.configs.now().checked_add(SLACK);
        match written.max() {
            Some((time, file)) if latest.is_ok_and(|latest| time > latest) => {
                let detail = format!("is behind: {} was written later than now", file.display());
                Check::error("clock", detail, "correct it: `timedatectl set-ntp true`")
            }
            Some(_) | None => Check::ok("clock", "is not behind what was written last"),
        }
    }

    /// Checks that the state database can be used, and reports if an earlier one was damaged.
    async fn database(&self) -> Check {
        const NAME: &str = "state database";
        let path = self.configs.environment.state.join("state.db");
        match self.machine.check_database().await {
            Ok(kept) => match kept.last() {
                None => Check::ok(NAME, format!("{} can be used", path.display())),
                Some(latest) => {
                    let detail = format!("was damaged, and is kept as {}", latest.display());
                    let fix = "`capstan pins` lists the tools that must be pinned again; remove the \
                               backup when you no longer need it";
                    Check::warning(NAME, detail, fix)
                }
            },
            Err(reason) => {
                let fix = match (path.display(), reason.to_lowercase()) {
                    (path, reason) if FULL.iter().any(|word| reason.contains(word)) => {
                        format!("free some space where {path} is")
                    }
                    (path, reason) if FORBIDDEN.iter().any(|word| reason.contains(word)) => {
                        format!("make {path} and its folder yours to write: `chown`, `chmod u+rw`")
                    }
                    (path, _) => format!("check that {path} is a file that you may read and write"),
                };
                let then = "until then, tools of servers that are not trusted are refused";
                Check::error(NAME, reason, format!("{fix}; {then}"))
            }
        }
    }

    fn audit_log(&self, setup: &Setup) -> Check {
        let count = |entries| match entries {
            1 => "1 entry".to_owned(),
            many => format!("{many} entries"),
        };
        match self.audit.verify(setup) {
            Ok(AuditWhole { entries, unclosed: 0, .. }) => {
                Check::ok("audit log", format!("{}, whole", count(entries)))
            }
            Ok(AuditWhole { entries, unclosed, .. }) => {
                let killed = match unclosed {
                    1 => "1 gateway was killed".to_owned(),
                    many => format!("{many} gateways were killed"),
                };
                let detail = format!("{}, intact; {killed}", count(entries));
                let fix =
                    "their last entries may be missing; the next call records this in the log";
                Check::warning("audit log", detail, fix)
            }
            Err(failure) => {
                let fix = "`capstan audit --verify` shows where; keep a copy of the file";
                Check::error("audit log", failure.message, fix)
            }
        }
    }
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
fn shadowed(environment: &Environment, setup: &Setup) -> Vec<Check> {
    let mut checks = Vec::new();
    for file in setup.files.iter().filter(|file| file.approved) {
        let alone = environment.load(std::slice::from_ref(file)).config;
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

fn path(environment: &Environment) -> Check {
    match environment.filled_variable("PATH") {
        Some(_) => Check::ok("PATH", "is set"),
        None => Check::error("PATH", "is empty", "set PATH, so that commands can be found"),
    }
}

/// Checks that a folder of ours, or its nearest existing parent, is a writable folder.
fn folder(environment: &Environment, name: &str, folder: &Path) -> Check {
    let files = &environment.files;
    let nearest = folder.ancestors().find(|folder| files.facts(folder).is_some());
    let nearest = nearest.unwrap_or(folder);
    let shown = folder.display();
    let fix = format!("make {} a folder that you may write to", nearest.display());
    if !files.facts(nearest).is_some_and(FileFacts::is_folder) {
        return Check::error(name, format!("{} is not a folder", nearest.display()), fix);
    }
    if files.may_write(nearest) {
        Check::ok(name, format!("{shown} can be written"))
    } else {
        Check::error(name, format!("{shown} cannot be written"), fix)
    }
}
