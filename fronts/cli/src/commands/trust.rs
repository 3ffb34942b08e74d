//! `capstan trust`: approves the project's configuration files.
//!
//! A file that came with a project starts nothing until a person has reviewed it.

use std::path::{Path, PathBuf};

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

/// A file that is not trusted, as it is shown and approved.
struct Pending {
    file: ConfigFile,
    /// The text or the changes, with secrets redacted.
    shown: String,
    /// The text that is approved: the file may change during the question.
    seen: String,
}

pub(crate) fn run(context: &Context, args: &TrustArgs) -> Result<Exit, AppError> {
    let files = chosen(context, args)?;
    if args.revoke {
        files.iter().try_for_each(|file| revoke(context, file))?;
        return Ok(Exit::Ok);
    }
    let mut pending = Vec::new();
    for file in files {
        pending.extend(pending_of(context, file)?);
    }
    if args.yes || !stdin_is_terminal() {
        for Pending { file, shown, .. } in &pending {
            context.print.note(&format!("{}:", file.path.display()));
            context.print.note(&panel::lines(shown, usize::MAX).join("\n"));
        }
        if !args.yes && !pending.is_empty() {
            return Err(no_terminal(&pending));
        }
    }
    let (mut refused, mut is_closed) = (Vec::new(), false);
    for Pending { file, shown, seen } in pending {
        let answer = match (args.yes, is_closed) {
            (true, _) => Ok(true),
            (false, true) => Err(Closed),
            (false, false) => confirmed(&file, &shown),
        };
        is_closed |= answer.is_err();
        if answer != Ok(true) {
            refused.push(file.path.display().to_string());
            continue;
        }
        context.app.configs.approve(&file, &seen)?;
        context.print.note(&format!("trusted {}", file.path.display()));
    }
    match refused.first() {
        None => Ok(Exit::Ok),
        Some(first) => Err(AppError::denied(format!("not trusted: {}", refused.join(", ")))
            .hint(format!("its servers do not start; `capstan trust {first}` asks again"))),
    }
}

/// The project's files, or those of them that are named.
fn chosen(context: &Context, args: &TrustArgs) -> Result<Vec<ConfigFile>, AppError> {
    let mut files = context.app.configs.files(&context.selection);
    files.retain(|file| file.scope == Scope::Project && file.exists);
    if files.is_empty() {
        return Err(AppError::not_found("this folder has no project configuration file").hint(
            "`capstan add --scope project NAME COMMAND…` creates one; your own files need no trust",
        ));
    }
    if args.files.is_empty() {
        return Ok(files);
    }
    let environment = &context.app.configs.environment;
    let real = |path: &Path| environment.files.real_path(&environment.current_folder.join(path));
    let named = |path: &PathBuf| {
        let wanted = real(path).ok();
        let found = files.iter().find(|file| wanted.is_some() && real(&file.path).ok() == wanted);
        found.cloned().ok_or_else(|| {
            let known: Vec<String> =
                files.iter().map(|file| format!("`{}`", file.path.display())).collect();
            AppError::not_found(format!("{} is not a file of this project", path.display()))
                .hint(format!("its files are {}", known.join(", ")))
        })
    };
    args.files.iter().map(named).collect()
}

fn revoke(context: &Context, file: &ConfigFile) -> Result<(), AppError> {
    let was = context.app.configs.revoke(file)?;
    let text = if was { "is no longer trusted" } else { "was not trusted" };
    context.print.note(&format!("{} {text}", file.path.display()));
    Ok(())
}

/// The file, if it is not trusted in its current version.
fn pending_of(context: &Context, file: ConfigFile) -> Result<Option<Pending>, AppError> {
    let (shown, seen) = match context.app.configs.approval(&file)? {
        Approval::NotNeeded | Approval::Approved => {
            let path = file.path.display();
            context.print.note(&format!("{path} is trusted in its current version"));
            return Ok(None);
        }
        Approval::Unknown { now } => (redacted(&file, &now), now),
        Approval::Changed { before, now } => (difference(&file, &before, &now), now),
    };
    Ok(Some(Pending { file, shown, seen }))
}

fn no_terminal(pending: &[Pending]) -> AppError {
    let files = match pending.len() {
        1 => "this file".to_owned(),
        count => format!("these {count} files"),
    };
    AppError::usage("there is no terminal to ask on")
        .hint(format!("`capstan trust --yes` trusts {files} without asking"))
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
///
/// # Errors
/// If the person cancels, so that no further question is asked.
fn confirmed(file: &ConfigFile, shown: &str) -> Result<bool, Closed> {
    let question = "Trust this file, and start its servers from now on?";
    let prompter = &mut Terminal;
    prompter.say(&format!("{}:", file.path.display()));
    let (columns, _) = prompter.size();
    match panel::show(prompter, &panel::lines(shown, columns), ROOM)? {
        Seen::Enough => prompter.confirm(question, Some(false)),
        Seen::Refused => Ok(false),
    }
}
