//! `capstan doctor`: starts every server, looks around, and says how to fix what is wrong.

use std::time::Duration;

use capstan_config::{Problem, Severity};
use capstan_hub::catalog::{Gathered, Patience};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Hub, Standing};
use capstan_model::{ItemId, ServerState};

use super::serve;
use crate::args::DoctorArgs;
use crate::context::{Context, find_server};
use crate::exit::{Exit, Failure};
use crate::host::{Check, CheckStatus, Setup};
use crate::waiting::Waiting;

/// How long each server is waited for.
const USUAL_WAIT: Duration = Duration::from_secs(30);

pub(crate) async fn run(context: &Context, args: &DoctorArgs) -> Result<Exit, Failure> {
    let setup = context.host.load(&context.options)?;
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
    let only = args.name.as_deref().map(|name| find_server(&setup, name)).transpose()?;
    let fatal = setup
        .loaded
        .problems
        .iter()
        .any(|problem| problem.severity == Severity::Error && problem.server.is_none());
    if !fatal {
        let mut hub = context.host.hub(&setup, &context.options)?;
        if let Some(entry) = only {
            hub.backends.retain(|name, _| *name == entry.name);
        }
        let waiting = Waiting::new(&context.print, "starting every server");
        let limit = args.wait.unwrap_or(USUAL_WAIT);
        checks.extend(of_servers(&hub, limit).await);
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

async fn of_servers(hub: &Hub, limit: Duration) -> Vec<Check> {
    let gathered = hub.gather(Listing::Tools, Patience::UpTo(limit), &mut |_| {}).await;
    let mut checks = of_pins(hub, &gathered);
    let servers = hub.backends.iter().map(|(name, backend)| {
        let check = format!("server {name}");
        match backend.state() {
            ServerState::Connected => {
                let tools = gathered.lists.get(name).map_or(0, |items| items.len());
                Check::ok(check, format!("connected, {tools} tools"))
            }
            ServerState::Idle | ServerState::Cached => Check::ok(check, "it offers nothing"),
            ServerState::Disabled => Check::ok(check, "switched off"),
            ServerState::AwaitingApproval => {
                Check::warning(check, "its file is not approved", "run `capstan trust`")
            }
            ServerState::NeedsLogin => Check::warning(check, "it needs a login", "log in"),
            ServerState::Connecting => Check::error(
                check,
                format!("no answer within {limit:?}"),
                format!(
                    "run its command by hand, or raise `startup_timeout` under `[servers.{name}]`"
                ),
            ),
            ServerState::Degraded(reason) => {
                Check::warning(check, reason, format!("`capstan get {name}` shows its stderr"))
            }
            ServerState::Failed(reason) if backend.stderr().is_empty() => {
                let fix = format!("run its command by hand, or correct `[servers.{name}]`");
                Check::error(check, reason, fix)
            }
            ServerState::Failed(reason) => {
                Check::error(check, reason, format!("`capstan get {name}` shows its stderr"))
            }
        }
    });
    checks.splice(0..0, servers);
    checks
}

/// Tools that are not what was approved.
fn of_pins(hub: &Hub, gathered: &Gathered) -> Vec<Check> {
    let mut checks = Vec::new();
    for (server, items) in &gathered.lists {
        let id = |item: &Item| ItemId { server: server.clone(), item: item.name.clone() };
        let odd = items.iter().filter(|item| hub.pins.standing(&id(item)) != Standing::Approved);
        let count = odd.count();
        if count > 0 {
            let fix = format!("`capstan pins {server}` shows what changed");
            let detail = format!("{count} of its tools are not what was approved");
            checks.push(Check::warning(format!("server {server}"), detail, fix));
        }
    }
    checks
}

/// Text whose further lines cannot pass for findings of ours.
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
