//! `capstan doctor`: starts every server, checks the environment, and suggests fixes.

use std::time::Duration;

use capstan_app::{AppError, Check, CheckStatus, Setup};
use capstan_config::{Kind, Problem, ServerEntry, Severity};
use capstan_hub::catalog::{Ask, Gathered, Patience};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Hub, Standing};
use capstan_model::{CallError, ItemId, ServerName, ServerState};
use futures::future::join_all;

use super::serve;
use crate::args::DoctorArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::spinner::Spinner;

/// Default time limit for each server.
const USUAL_WAIT: Duration = Duration::from_secs(30);

/// Suggests a fix for one server.
struct Remedy<'a> {
    name: &'a ServerName,
    entry: Option<&'a ServerEntry>,
    /// The reason why it has no list of tools.
    failed: Option<&'a CallError>,
}

pub(crate) async fn run(context: &Context, args: &DoctorArgs) -> Result<Exit, AppError> {
    let setup = context.host.load(&context.selection)?;
    let mut checks = Vec::new();
    if args.name.is_none() {
        match serve::configured(&setup) {
            Ok(listen) => checks.extend(context.host.checks(&setup, listen).await),
            Err(failure) => {
                let fix = failure.hint.unwrap_or_else(|| "correct it".to_owned());
                checks.push(Check::error("gateway address", failure.message, fix));
            }
        }
        checks.extend(setup.loaded.problems.iter().map(of_problem));
    }
    let only = args.name.as_deref().map(|name| setup.server(name)).transpose()?;
    let fatal = setup
        .loaded
        .problems
        .iter()
        .any(|problem| problem.severity == Severity::Error && problem.server.is_none());
    if !fatal {
        let hub = context.host.hub(&setup, &context.selection)?;
        let only = only.map(|entry| &entry.name);
        let waiting = Spinner::new(&context.print, "starting every server");
        let limit = args.wait.unwrap_or(USUAL_WAIT);
        checks.extend(of_servers(&hub, &setup, only, limit).await);
        drop(waiting);
        hub.close().await;
    }
    show(context, &setup, &checks);
    let bad = checks.iter().any(|check| check.status == CheckStatus::Error);
    Ok(if bad && args.strict { Exit::ToolError } else { Exit::Ok })
}

fn of_problem(problem: &Problem) -> Check {
    let check = problem.key.clone().unwrap_or_else(|| "configuration".to_owned());
    let fix = problem.help.clone().unwrap_or_else(|| "`capstan config check` shows it".to_owned());
    match problem.severity {
        Severity::Error => Check::error(check, problem.to_string(), fix),
        Severity::Warning => Check::warning(check, problem.to_string(), fix),
    }
}

/// Checks all servers, or only this one.
async fn of_servers(
    hub: &Hub,
    setup: &Setup,
    only: Option<&ServerName>,
    limit: Duration,
) -> Vec<Check> {
    let is_checked = |name: &ServerName| only.is_none_or(|only| only == name);
    let how = |name: &ServerName| if is_checked(name) { Ask::List } else { Ask::Nothing };
    let gathered = hub.gather_from(Listing::Tools, Patience::UpTo(limit), &how).await;
    let mut checks = of_pins(hub, &gathered);
    let gathered = &gathered;
    let servers = hub.servers().filter(|name| is_checked(name)).map(|name| async move {
        let (servers, failed) = (&setup.loaded.config.servers, gathered.failed.get(name));
        let remedy = Remedy { name, entry: servers.get(name), failed };
        let tools = gathered.lists.get(name).map_or(0, |items| hub.count_usable(items));
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
            Ok(()) => of_server(hub, tools, limit, &remedy),
        }
    });
    checks.splice(0..0, join_all(servers).await);
    checks
}

fn of_server(hub: &Hub, tools: usize, limit: Duration, remedy: &Remedy<'_>) -> Check {
    let check = format!("server {}", remedy.name);
    let stderr = || hub.stderr(remedy.name);
    match hub.state(remedy.name).unwrap_or(ServerState::Idle) {
        ServerState::Connected => Check::ok(check, format!("connected, {tools} tools")),
        ServerState::Idle | ServerState::Cached => Check::ok(check, "it offers nothing"),
        ServerState::Disabled => Check::ok(check, "switched off"),
        ServerState::AwaitingApproval => {
            Check::warning(check, "its file is not trusted", "run `capstan trust`")
        }
        ServerState::NeedsLogin => Check::warning(check, "it needs a login", "log in"),
        ServerState::Connecting => {
            Check::error(check, format!("no answer within {limit:?}"), remedy.of_silence())
        }
        ServerState::Degraded(reason) => {
            Check::warning(check, reason, remedy.of_failure(&stderr()))
        }
        ServerState::Failed(reason) => Check::error(check, reason, remedy.of_failure(&stderr())),
    }
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

/// Indents further lines, so that they cannot pass for findings of ours.
fn set_in(text: &str) -> String {
    text.replace('\n', "\n           ")
}

fn show(context: &Context, setup: &Setup, checks: &[Check]) {
    if context.print.wants_json() {
        context.print.json(&checks);
        return;
    }
    for check in checks {
        let glyph = match check.status {
            CheckStatus::Ok => "●",
            CheckStatus::Warning => "◐",
            CheckStatus::Error => "○",
        };
        let status = check.status.as_str();
        let (name, detail) = (&check.check, set_in(&check.detail));
        context.print.data(&format!("{glyph} {status:8}{name}: {detail}"));
        if let Some(fix) = &check.fix {
            context.print.data(&format!("           fix: {}", set_in(fix)));
        }
    }
    if setup.loaded.config.servers.is_empty() {
        context.print.hint("`capstan add NAME COMMAND…` adds a server");
    }
}
