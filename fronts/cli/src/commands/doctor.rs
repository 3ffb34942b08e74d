//! `capstan doctor`: starts every server, checks the environment, and suggests fixes.

use std::time::Duration;

use capstan_app::{AppError, Check, CheckStatus, HubPurpose, check_public_url, check_servers};
use capstan_config::Severity;
use capstan_safety::clean::clean;

use super::serve;
use crate::args::DoctorArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{GREEN, RED, YELLOW, as_typed};
use crate::spinner::Spinner;

/// Time limit for saving the lists of all servers.
const SAVE_WAIT: Duration = Duration::from_secs(2);

/// Default time limit for each server.
const USUAL_WAIT: Duration = Duration::from_secs(30);

pub(crate) async fn run(context: &Context, args: &DoctorArgs) -> Result<Exit, AppError> {
    if let Some(url) = &args.public_url {
        return Ok(check_public(context, args, url).await);
    }
    let setup = context.app.configs.load(&context.selection)?;
    let mut checks = match args.name {
        None => context.app.doctor.check(&setup, serve::configured(&setup)).await,
        Some(_) => Vec::new(),
    };
    let only = args.name.as_deref().map(|name| setup.server(name)).transpose()?;
    let fatal = setup
        .loaded
        .problems
        .iter()
        .any(|problem| problem.severity == Severity::Error && problem.server.is_none());
    match context.app.hubs.build(&setup, HubPurpose::Lists) {
        _ if fatal => checks.push(Check::warning(
            "servers",
            "not started, because the configuration has errors",
            "correct the errors above, then run `capstan doctor` again",
        )),
        Err(error) => {
            let fix = error.hint.unwrap_or_else(|| "correct the errors above".to_owned());
            checks.push(Check::error("servers", error.message, fix));
        }
        Ok(hub) => {
            let only = only.map(|entry| &entry.name);
            let waiting = Spinner::new(&context.print, "starting every server");
            let limit = args.wait.unwrap_or(USUAL_WAIT);
            checks.extend(check_servers(&hub, &setup, only, limit).await);
            drop(tokio::time::timeout(SAVE_WAIT, hub.save_lists()).await);
            drop(waiting);
            hub.close().await;
        }
    }
    show(context, &checks);
    if setup.loaded.config.servers.is_empty() && !context.print.wants_json() {
        context.print.hint("`capstan add NAME COMMAND…` adds a server");
    }
    Ok(exit(args, &checks))
}

async fn check_public(context: &Context, args: &DoctorArgs, url: &str) -> Exit {
    let waiting = Spinner::new(&context.print, "connecting as an app does");
    let checks = check_public_url(&*context.app.doctor.probe, url).await;
    drop(waiting);
    show(context, &checks);
    exit(args, &checks)
}

fn exit(args: &DoctorArgs, checks: &[Check]) -> Exit {
    let bad = checks.iter().any(|check| check.status == CheckStatus::Error);
    if bad && args.strict { Exit::ToolError } else { Exit::Ok }
}

/// Indents further lines, so that they cannot pass for findings of ours.
fn set_in(text: &str) -> String {
    text.replace('\n', "\n           ")
}

fn show(context: &Context, checks: &[Check]) {
    if context.print.wants_json() {
        context.print.json(&checks);
        return;
    }
    for check in checks {
        let (glyph, style) = match check.status {
            CheckStatus::Ok => ("●", GREEN),
            CheckStatus::Warning => ("◐", YELLOW),
            CheckStatus::Error => ("○", RED),
        };
        let status = check.status.as_str();
        let found = format!("{}: {}", check.check, set_in(&check.detail));
        context.print.exactly(&format!("{style}{glyph} {status:8}{style:#}{}", clean(&found)));
        if let Some(fix) = &check.fix {
            context.print.data(&format!("           fix: {}", as_typed(&set_in(fix))));
        }
    }
}
