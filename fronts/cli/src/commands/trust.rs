//! `capstan trust`: approve the project's configuration files.
//!
//! A file that came with a project starts nothing until somebody has looked at it.

use capstan_config::Scope;
use similar::TextDiff;

use crate::args::TrustArgs;
use crate::clean::clean;
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::host::{Approval, ConfigFile};
use crate::print::stdin_is_terminal;

pub(crate) fn run(context: &Context, args: &TrustArgs) -> Result<Exit, Failure> {
    let mut files = context.host.files(&context.options)?;
    files.retain(|file| file.scope == Scope::Project && file.exists);
    if files.is_empty() {
        return Err(Failure::not_found("there is no configuration file of a project here"));
    }
    for file in &files {
        if args.revoke {
            revoke(context, file)?;
        } else {
            approve(context, args, file)?;
        }
    }
    Ok(Exit::Ok)
}

fn revoke(context: &Context, file: &ConfigFile) -> Result<(), Failure> {
    let was = context.host.revoke(file)?;
    let text = if was { "is no longer approved" } else { "was not approved" };
    context.print.note(&format!("{} {text}", file.path.display()));
    Ok(())
}

fn approve(context: &Context, args: &TrustArgs, file: &ConfigFile) -> Result<(), Failure> {
    let path = file.path.display();
    let (shown, seen) = match context.host.approval(file)? {
        Approval::NotNeeded | Approval::Approved => {
            context.print.note(&format!("{path} is approved as it is"));
            return Ok(());
        }
        Approval::Unknown { now } => (now.clone(), now),
        Approval::Changed { before, now } => {
            let diff = TextDiff::from_lines(&before, &now);
            (diff.unified_diff().context_radius(3).to_string(), now)
        }
    };
    context.print.note(&format!("{path}:\n"));
    context.print.note(&clean(&shown));
    if !(args.yes || confirmed()?) {
        return Err(Failure::new(Exit::Denied, "policy_blocked", "not approved"));
    }
    // What was seen, not what is there by now: the file may have changed during the question.
    context.host.approve(file, &seen)?;
    context.print.note(&format!("approved {path}"));
    Ok(())
}

fn confirmed() -> Result<bool, Failure> {
    if !stdin_is_terminal() {
        return Err(Failure::usage("nobody is there to ask")
            .hint("`capstan trust --yes` approves without asking"));
    }
    let question = "Start the servers of this file from now on?";
    match inquire::Confirm::new(question).with_default(false).prompt() {
        Ok(answer) => Ok(answer),
        Err(_) => Ok(false),
    }
}
