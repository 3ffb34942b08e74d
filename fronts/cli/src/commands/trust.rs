//! `capstan trust`: approves the project's configuration files.
//!
//! A file that came with a project starts nothing until a person has reviewed it.

use capstan_app::{AppError, Approval, ConfigFile};
use capstan_config::{Hide, Scope, redact_file};
use capstan_text::form::{Closed, Prompter as _, Terminal};
use capstan_text::panel::{self, After, Room, Seen};
use capstan_text::screen::stdin_is_terminal;
use similar::{ChangeTag, TextDiff};

use crate::args::TrustArgs;
use crate::context::Context;
use crate::exit::Exit;

/// Number of context lines around a change.
const CONTEXT: usize = 3;

/// Number of our lines around a file.
const ROOM: Room = Room { above: 1, below: 3, after: After::Question };

pub(crate) fn run(context: &Context, args: &TrustArgs) -> Result<Exit, AppError> {
    let mut files = context.app.configs.files(&context.selection);
    files.retain(|file| file.scope == Scope::Project && file.exists);
    if files.is_empty() {
        return Err(AppError::not_found("this folder has no project configuration file").hint(
            "`capstan add --scope project NAME COMMAND…` creates one; your own files need no trust",
        ));
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

fn revoke(context: &Context, file: &ConfigFile) -> Result<(), AppError> {
    let was = context.app.configs.revoke(file)?;
    let text = if was { "is no longer trusted" } else { "was not trusted" };
    context.print.note(&format!("{} {text}", file.path.display()));
    Ok(())
}

fn approve(context: &Context, args: &TrustArgs, file: &ConfigFile) -> Result<(), AppError> {
    let path = file.path.display();
    let (shown, seen) = match context.app.configs.approval(file)? {
        Approval::NotNeeded | Approval::Approved => {
            context.print.note(&format!("{path} is trusted in its current version"));
            return Ok(());
        }
        Approval::Unknown { now } => (redacted(file, &now), now),
        Approval::Changed { before, now } => (difference(file, &before, &now), now),
    };
    if args.yes || !stdin_is_terminal() {
        context.print.note(&format!("{path}:"));
        context.print.note(&panel::lines(&shown, usize::MAX).join("\n"));
    }
    if !(args.yes || confirmed(file, &shown)?) {
        return Err(AppError::denied("not approved"));
    }
    // Approves the text that was shown: the file may have changed during the question.
    context.app.configs.approve(file, &seen)?;
    context.print.note(&format!("approved {path}"));
    Ok(())
}

/// The text of a file with its secrets redacted.
fn redacted(file: &ConfigFile, text: &str) -> String {
    redact_file(&file.path.to_string_lossy(), text, Hide::Secrets)
}

/// The changed lines with secrets redacted; a changed secret counts as a change too.
fn difference(file: &ConfigFile, before: &str, now: &str) -> String {
    fn lines(text: &str) -> Vec<&str> {
        text.split_inclusive('\n').collect()
    }
    let (shown_before, shown_now) = (redacted(file, before), redacted(file, now));
    let (old, new) = (lines(&shown_before), lines(&shown_now));
    let (before, now) = (lines(before), lines(now));
    let diff = TextDiff::from_slices(&before, &now);
    let mut shown = String::new();
    for group in diff.grouped_ops(CONTEXT) {
        if !shown.is_empty() {
            shown.push_str("...\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, line) = match change.tag() {
                ChangeTag::Delete => ('-', change.old_index().and_then(|at| old.get(at))),
                ChangeTag::Insert => ('+', change.new_index().and_then(|at| new.get(at))),
                ChangeTag::Equal => (' ', change.new_index().and_then(|at| new.get(at))),
            };
            shown.push(sign);
            shown.push_str(line.map_or("", |line| line.trim_end_matches('\n')));
            shown.push('\n');
        }
    }
    shown
}

/// Shows the text to approve and asks the person.
fn confirmed(file: &ConfigFile, shown: &str) -> Result<bool, AppError> {
    if !stdin_is_terminal() {
        return Err(AppError::usage("there is no terminal to ask on")
            .hint("`capstan trust --yes` trusts it without asking"));
    }
    let question = "Trust this file, and start its servers from now on?";
    let prompter = &mut Terminal;
    prompter.say(&format!("{}:", file.path.display()));
    let (columns, _) = prompter.size();
    match panel::show(prompter, &panel::lines(shown, columns), ROOM) {
        Ok(Seen::Enough) => Ok(prompter.confirm(question, Some(false)).unwrap_or(false)),
        Ok(Seen::Refused) | Err(Closed) => Ok(false),
    }
}
