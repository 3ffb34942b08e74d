//! Checks of the programs that start servers.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use capstan_config::{Kind, ServerEntry};

use super::{Check, Doctor};
use crate::Setup;

/// Runtimes that start servers, with their commands and oldest useful versions.
const RUNTIMES: &[Runtime] = &[
    Runtime::new(&["node", "npx", "npm"], "Node.js", "install Node.js 20 or newer", Some(18)),
    Runtime::new(&["uvx", "uv"], "uv", "install uv", None),
    Runtime::new(
        &["docker"],
        "Docker",
        "install Docker, or Podman with its `docker` command",
        None,
    ),
    Runtime::new(&["podman"], "Podman", "install Podman", None),
    Runtime::new(&["python3", "python"], "Python", "install Python 3.10 or newer", None),
    Runtime::new(&["bunx", "bun"], "Bun", "install Bun", None),
    Runtime::new(&["deno"], "Deno", "install Deno", None),
];

/// The default socket of Docker, if no variable names another.
const DOCKER: &str = "/var/run/docker.sock";

struct Runtime {
    commands: &'static [&'static str],
    name: &'static str,
    remedy: &'static str,
    /// The oldest version with which most servers still start.
    oldest: Option<u32>,
}

// === impl Doctor ===

impl Doctor {
    /// Checks the programs that start the enabled servers.
    pub(super) async fn check_runtimes(&self, setup: &Setup) -> Vec<Check> {
        let entries = setup.loaded.config.servers.values().filter(|entry| entry.enabled);
        let commands: BTreeSet<&str> = entries.filter_map(command).collect();
        let mut checks = Vec::new();
        for runtime in RUNTIMES {
            for command in runtime.commands.iter().filter(|command| commands.contains(**command)) {
                checks.push(runtime.check(self, command).await);
            }
        }
        if commands.contains("docker") {
            checks.push(self.check_docker());
        }
        checks
    }

    fn check_docker(&self) -> Check {
        let host = self.configs.environment.filled_variable("DOCKER_HOST");
        let socket = match host.as_deref() {
            None => DOCKER,
            Some(host) => match host.strip_prefix("unix://") {
                Some(socket) => socket,
                None => return Check::ok("Docker", format!("runs at {host}, by DOCKER_HOST")),
            },
        };
        match self.machine.connect(Path::new(socket)) {
            Ok(()) => Check::ok("Docker", "answers"),
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
}

/// The name of the program that starts a server.
fn command(entry: &ServerEntry) -> Option<&str> {
    match &entry.status.as_ref().ok()?.kind {
        Kind::Stdio(program) => Some(&program.command),
        Kind::Cli(cli) => Some(&cli.program.command),
        Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_) => None,
    }
}

// === impl Runtime ===

impl Runtime {
    const fn new(
        commands: &'static [&'static str],
        name: &'static str,
        remedy: &'static str,
        oldest: Option<u32>,
    ) -> Self {
        Self { commands, name, remedy, oldest }
    }

    /// Checks that a command of the runtime can be found and is recent enough.
    async fn check(&self, doctor: &Doctor, command: &str) -> Check {
        let name = format!("program {command}");
        let path = doctor.configs.environment.variable("PATH");
        let found = match doctor.machine.find_program(command, path.as_deref(), None) {
            Ok(found) => found,
            Err(error) => {
                let remedy = format!("{}, and check that it is in PATH", self.remedy);
                return Check::error(name, error, remedy);
            }
        };
        let detail = format!("{} is {}", command, found.display());
        let Some(oldest) = self.oldest else { return Check::ok(name, detail) };
        // The first of the commands reports the version.
        let main = self.commands.first().copied().unwrap_or(command);
        match doctor.machine.version(main).await.as_deref().and_then(first_number) {
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

/// The first number in a program's version output.
fn first_number(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}
