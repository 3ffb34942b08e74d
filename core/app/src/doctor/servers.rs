//! Checks of servers: starts them, and suggests a fix for each failure.

use std::time::Duration;

use capstan_config::{Kind, ServerEntry};
use capstan_hub::catalog::{Ask, Gathered, Patience};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Hub, Standing};
use capstan_model::{CallError, ItemId, ServerName, ServerState};
use futures::future::join_all;

use super::Check;
use crate::Setup;
use crate::api::operator;
use crate::large_program::advice;

/// Suggests a fix for one server.
struct Remedy<'a> {
    name: &'a ServerName,
    entry: Option<&'a ServerEntry>,
    /// The reason why it has no list of tools.
    failed: Option<&'a CallError>,
}

/// Checks all servers, or only this one.
pub async fn check_servers(
    hub: &Hub,
    setup: &Setup,
    only: Option<&ServerName>,
    limit: Duration,
) -> Vec<Check> {
    let is_checked = |name: &ServerName| only.is_none_or(|only| only == name);
    let how = |name: &ServerName| if is_checked(name) { Ask::Current } else { Ask::Nothing };
    let gathered = hub.gather_from(Listing::Tools, Patience::UpTo(limit), &how).await;
    let mut checks = of_pins(hub, &gathered);
    checks.extend(of_size(hub, setup, &gathered));
    let gathered = &gathered;
    let servers = hub.servers().filter(|name| is_checked(name)).map(|name| async move {
        let (servers, failed) = (&setup.loaded.config.servers, gathered.failed.get(name));
        let remedy = Remedy { name, entry: servers.get(name), failed };
        let tools = gathered.lists.get(name).map(|items| in_words(hub, name, items));
        let answers = match hub.state(name) {
            // A server with a known list may still be unreachable.
            Some(ServerState::Connected | ServerState::Degraded(_)) => hub.check(name).await,
            _ => Ok(()),
        };
        match answers {
            Err(CallError::Unreachable { reason, .. }) => {
                Check::error(format!("server {name}"), reason, remedy.of_failure(&[]))
            }
            Err(error) => {
                Check::error(format!("server {name}"), error.to_string(), remedy.of_failure(&[]))
            }
            Ok(()) => of_server(hub, &tools.unwrap_or_default(), limit, &remedy),
        }
    });
    checks.splice(0..0, join_all(servers).await);
    checks
}

fn of_server(hub: &Hub, tools: &str, limit: Duration, remedy: &Remedy<'_>) -> Check {
    let check = format!("server {}", remedy.name);
    let stderr = || hub.stderr(remedy.name);
    match hub.state(remedy.name).unwrap_or(ServerState::Idle) {
        ServerState::Connected => Check::ok(check, format!("connected, {tools}")),
        ServerState::Idle | ServerState::Cached => Check::ok(check, "it offers nothing"),
        ServerState::Disabled => Check::ok(check, "switched off"),
        ServerState::AwaitingApproval => {
            Check::warning(check, "its file is not trusted", "run `capstan trust`")
        }
        ServerState::NeedsLogin => {
            let fix = format!("run `capstan login {}`", remedy.name);
            Check::warning(check, "it needs a login", fix)
        }
        ServerState::Connecting => {
            Check::error(check, format!("no answer within {limit:?}"), remedy.of_silence())
        }
        ServerState::Degraded(reason) => {
            Check::warning(check, reason, remedy.of_failure(&stderr()))
        }
        ServerState::Failed(reason) => Check::error(check, reason, remedy.of_failure(&stderr())),
    }
}

/// The number of tools that the operator may use, and of those that are hidden.
fn in_words(hub: &Hub, server: &ServerName, tools: &[Item]) -> String {
    let shown = hub.count_shown(server, tools, &operator());
    match tools.len() - shown {
        0 => format!("{shown} tools"),
        hidden => format!("{shown} tools, {hidden} more are hidden"),
    }
}

/// Reports programs that offer more tools than a model can use.
fn of_size(hub: &Hub, setup: &Setup, gathered: &Gathered) -> Vec<Check> {
    let servers = &setup.loaded.config.servers;
    let large = gathered.lists.iter().filter_map(|(name, items)| {
        let advice = advice(hub, servers.get(name)?, items)?;
        let (detail, fix) = advice.split_once("; ")?;
        Some(Check::warning(format!("server {name}"), detail, fix))
    });
    large.collect()
}

/// Reports tools that differ from their approved definitions.
fn of_pins(hub: &Hub, gathered: &Gathered) -> Vec<Check> {
    let mut checks = Vec::new();
    for (server, items) in &gathered.lists {
        let id = |item: &Item| ItemId { server: server.clone(), item: item.name.clone() };
        let odd = items.iter().filter(|item| hub.pins().standing(&id(item)) != Standing::Approved);
        let count = odd.count();
        if count > 0 {
            let fix = format!("`capstan pins {server}` shows the changes");
            let detail = format!("{count} of its tools differ from their pins");
            checks.push(Check::warning(format!("server {server}"), detail, fix));
        }
    }
    checks
}

// === impl Remedy ===

impl Remedy<'_> {
    /// The fix for a server that cannot be used, or only in part.
    fn of_failure(&self, stderr: &[String]) -> String {
        let name = self.name;
        let entry = match self.entry.map(|entry| &entry.status) {
            Some(Err(problem)) => {
                let usual = || format!("correct `[servers.{name}]`");
                return problem.help.clone().unwrap_or_else(usual);
            }
            Some(Ok(server)) => Some(&server.kind),
            None => None,
        };
        match (self.failed, entry) {
            (Some(CallError::Denied { .. }), _) => {
                "to allow its command, add it to `mcp.allowed_commands`".to_owned()
            }
            (Some(CallError::AddressBlocked { .. }), _) => {
                format!("to allow the address, change `[servers.{name}]`")
            }
            (Some(CallError::LedElsewhere { .. }), _) => {
                format!("check its address under `[servers.{name}]`")
            }
            (Some(CallError::NeedsLogin { .. }), _) => format!("run `capstan login {name}`"),
            (Some(error @ (CallError::Unauthorized { .. } | CallError::Status { .. })), _)
                if error.hint().is_some() =>
            {
                error.hint().unwrap_or_default()
            }
            (_, Some(Kind::Http(_) | Kind::Sse(_))) => {
                format!("check that it runs, and check `url` under `[servers.{name}]`")
            }
            (_, Some(Kind::OpenApi(_))) => format!(
                "check that it runs, and check `document`, `base_url` and `headers` \
                 under `[servers.{name}]`"
            ),
            (_, Some(Kind::Stdio(_) | Kind::Cli(_)) | None) if !stderr.is_empty() => {
                format!("`capstan get {name}` shows its stderr")
            }
            (_, Some(Kind::Stdio(_) | Kind::Cli(_)) | None) => {
                format!("run its command by hand, or correct `[servers.{name}]`")
            }
        }
    }

    /// The fix for a server that does not respond.
    fn of_silence(&self) -> String {
        let name = self.name;
        let first = match self.entry.and_then(ServerEntry::usable).map(|server| &server.kind) {
            Some(Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_)) => "check that it can be reached",
            Some(Kind::Stdio(_) | Kind::Cli(_)) | None => "run its command by hand",
        };
        format!("{first}, or raise `startup_timeout` under `[servers.{name}]`")
    }
}
