//! Checks of the configuration, the machine and the servers, with a remedy for each finding.
//!
//! `public_url` checks what apps on the web need, `environment` the machine, `runtimes` the programs that start servers, `servers` the
//! servers themselves.

mod environment;
mod public_url;
#[cfg(test)]
mod public_url_tests;
mod runtimes;
mod servers;

use core::net::SocketAddr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_config::{Problem, Severity};
use capstan_hub::ports::BoxFuture;
use serde::Serialize;

pub use public_url::{ProbeAnswer, ProbeRequest, PublicProbe, check_public_url};
pub use servers::check_servers;

use crate::{AppError, AuditReader, Configs, ControlSockets, Setup};

/// Checks the environment of the servers.
pub struct Doctor {
    /// The configuration files.
    pub configs: Arc<Configs>,
    /// The audit log.
    pub audit: Arc<dyn AuditReader>,
    /// The control sockets of running gateways.
    pub gateways: Arc<dyn ControlSockets>,
    /// The machine.
    pub machine: Arc<dyn Machine>,
    /// Sends requests to public addresses.
    pub probe: Arc<dyn PublicProbe>,
}

/// Probes of the machine: programs, sockets, addresses and the state database.
pub trait Machine: Send + Sync {
    /// Connects to a Unix socket and disconnects again.
    fn connect(&self, socket: &Path) -> io::Result<()>;

    /// Listens on an address for a moment.
    fn listen(&self, address: SocketAddr) -> io::Result<()>;

    /// The file of a command that is started with this `PATH` in this folder.
    ///
    /// # Errors
    /// The reason why it is not found.
    fn find_program(
        &self,
        command: &str,
        path: Option<&str>,
        folder: Option<&Path>,
    ) -> Result<PathBuf, String>;

    /// The output of `COMMAND --version`; `None` if it fails or takes too long.
    fn version<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Option<String>>;

    /// Runs a program in a sandbox.
    ///
    /// # Errors
    /// The reason why this system cannot confine programs.
    fn check_sandbox(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Opens the state database; returns the damaged ones that were kept, oldest first.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn check_database(&self) -> BoxFuture<'_, Result<Vec<PathBuf>, String>>;
}

/// One finding of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The thing that was checked.
    pub check: String,
    /// The result.
    pub status: CheckStatus,
    /// The observation, in words.
    pub detail: String,
    /// The remedy, if one is needed.
    pub fix: Option<String>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Fine.
    Ok,
    /// Works, but worth a look.
    Warning,
    /// Does not work.
    Error,
}

// === impl Doctor ===

impl Doctor {
    /// Checks the configuration and the machine, including whether a gateway could listen on its
    /// address.
    pub async fn check(&self, setup: &Setup, listen: Result<SocketAddr, AppError>) -> Vec<Check> {
        let mut checks = self.check_environment(setup, listen).await;
        checks.extend(setup.loaded.problems.iter().map(of_problem));
        checks
    }
}

fn of_problem(problem: &Problem) -> Check {
    let check = problem.key.clone().unwrap_or_else(|| "configuration".to_owned());
    let fix = problem.help.clone().unwrap_or_else(|| "`capstan config check` shows it".to_owned());
    match problem.severity {
        Severity::Error => Check::error(check, problem.to_string(), fix),
        Severity::Warning => Check::warning(check, problem.to_string(), fix),
    }
}

// === impl Check ===

impl Check {
    /// A check that passed.
    pub fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { check: check.into(), status: CheckStatus::Ok, detail: detail.into(), fix: None }
    }

    /// A check that found something to look at.
    pub fn warning(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Warning, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }

    /// A check that failed.
    pub fn error(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Error, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }
}

impl CheckStatus {
    /// The word for output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::fakes::{
        FakeFiles, FakeMachine, FakeSocket, FakeSockets, NoEntries, configs_in, environment,
    };

    /// Checks an environment with these files, `gateways` running gateways and this address.
    async fn checks(files: &[(&str, &str)], gateways: u32, listen: &str) -> Vec<Check> {
        let configs = configs_in(environment(FakeFiles::with(files)));
        let setup = configs.load(&Selection::default()).unwrap();
        let sockets = (0..gateways).map(|process| FakeSocket::new(process, "", |_| None));
        let doctor = Doctor {
            configs: Arc::new(configs),
            audit: Arc::new(NoEntries),
            gateways: Arc::new(FakeSockets(sockets.collect())),
            machine: Arc::new(FakeMachine),
            probe: Arc::new(FakeMachine),
        };
        doctor.check(&setup, Ok(listen.parse().unwrap())).await
    }

    fn found<'a>(checks: &'a [Check], name: &str) -> &'a Check {
        checks.iter().find(|check| check.check == name).unwrap()
    }

    #[tokio::test]
    async fn an_address_in_use_is_fine_only_while_a_gateway_runs() {
        for (gateways, expected) in [(0, CheckStatus::Warning), (1, CheckStatus::Ok)] {
            let checks = checks(&[], gateways, "127.0.0.1:1").await;
            assert_eq!(found(&checks, "gateway address").status, expected);
        }
        let checks = checks(&[], 0, "127.0.0.1:2").await;
        assert_eq!(found(&checks, "gateway address").detail, "127.0.0.1:2 is free");
    }

    #[tokio::test]
    async fn a_runtime_that_is_too_old_or_missing_has_a_remedy() {
        let file = "/home/me/.config/capstan/config.toml";
        let text = "[servers.a]\ncommand = \"node\"\n[servers.b]\ncommand = \"uvx\"";
        let checks = checks(&[(file, text)], 0, "127.0.0.1:2").await;
        let node = found(&checks, "program node");
        assert_eq!(node.status, CheckStatus::Warning);
        assert_eq!(node.detail, "node is /bin/node, but Node.js is version 16");
        let uvx = found(&checks, "program uvx");
        assert_eq!(uvx.fix.as_deref(), Some("install uv, and check that it is in PATH"));
    }

    #[tokio::test]
    async fn a_server_that_two_files_describe_is_reported() {
        let user = ("/home/me/.config/capstan/config.toml", "[servers.s]\ncommand = \"a\"");
        let shared =
            ("/home/me/.config/mcp/servers.json", r#"{"mcpServers":{"s":{"command":"b"}}}"#);
        let checks = checks(&[user, shared], 0, "127.0.0.1:2").await;
        let detail = &found(&checks, "servers.s").detail;
        assert!(detail.starts_with("/home/me/.config/mcp/servers.json defines it too"), "{detail}");
    }

    #[tokio::test]
    async fn a_file_in_place_of_a_folder_is_reported() {
        let checks = checks(&[("/home/me/.local/state", "")], 0, "127.0.0.1:2").await;
        let folder = found(&checks, "state folder");
        assert_eq!(folder.detail, "/home/me/.local/state is not a folder");
        assert_eq!(found(&checks, "PATH").status, CheckStatus::Error);
    }
}
