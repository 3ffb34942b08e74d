//! `capstan edit`: changes the entry of a server, in the user's editor or key by key.

use std::path::Path;

use capstan_app::{AppError, Approval, ConfigFile, Draft, ErrorKind};
use capstan_config::edit::{
    EditError, KeyChanges, ReplacedEntry, change_keys, entry_text, new_problems, replace_entry,
};
use capstan_config::{Dialect, Problem, Scope, Severity, SourceFile, slug};
use capstan_text::form::{Prompter as _, Terminal};
use capstan_text::screen::{has_person, stdin_is_terminal};
use serde_json::json;

use super::remove::locate;
use crate::args::EditArgs;
use crate::context::Context;
use crate::exit::Exit;

/// The editors that are tried if the user names none.
const USUAL_EDITORS: [&str; 2] = ["nano", "vi"];

/// The file and the entry to change.
struct Entry<'a> {
    context: &'a Context,
    file: ConfigFile,
    /// The server's name in the file.
    name: String,
}

/// The effect of the command on the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Changed,
    Unchanged,
}

/// The result of an edit that cannot be used.
struct Unusable {
    problems: Vec<Problem>,
    files: Vec<SourceFile>,
}

pub(crate) async fn run(context: &Context, args: &EditArgs) -> Result<Exit, AppError> {
    let (file, name) = locate(context, &args.name, args.scope)?;
    let entry = Entry { context, file, name };
    let outcome = if args.set.is_empty() && args.unset.is_empty() {
        let edited = tokio::select! {
            biased;
            () = crate::terminated() => return Ok(Exit::Interrupted),
            edited = entry.edit() => edited?,
        };
        let Some(outcome) = edited else { return Ok(Exit::Interrupted) };
        outcome
    } else {
        let changes = changes(args)?;
        let before = entry.read()?;
        entry.write(&|text| change_keys(text, &entry.name, entry.file.scope, &changes))?;
        entry.tell_warnings(&before)?;
        if entry.read()? == before { Outcome::Unchanged } else { Outcome::Changed }
    };
    entry.tell(outcome);
    Ok(Exit::Ok)
}

/// Reads the options `--set` and `--unset`.
fn changes(args: &EditArgs) -> Result<KeyChanges, AppError> {
    let mut changes = KeyChanges { unset: args.unset.clone(), ..KeyChanges::default() };
    for text in &args.set {
        let (key, value) =
            text.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(
                // The value may be a secret, so it is not repeated.
                || AppError::usage("`--set` has no key").hint("write it as `--set KEY=VALUE`"),
            )?;
        let (key, value) = (key.trim(), value.to_owned());
        match changes.set.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(value),
            None => changes.set.push((key.to_owned(), vec![value])),
        }
    }
    Ok(changes)
}

// === impl Entry ===

impl Entry<'_> {
    /// Lets the user edit the entry until it can be used; `None` if the user interrupts.
    async fn edit(&self) -> Result<Option<Outcome>, AppError> {
        let before = self.read()?;
        let original = entry_text(&before, &self.name).map_err(|error| self.at_file(error))?;
        let editor = self.editor()?;
        let draft_name = slug(&self.name).map_or_else(String::new, |slug| slug.to_string());
        let mut text = original.clone();
        loop {
            let draft = Draft { editor: &editor, name: &draft_name, text: &text };
            text = self.context.app.editor.edit(draft).await?;
            if text == original {
                return Ok(Some(Outcome::Unchanged));
            }
            if text.trim().is_empty() {
                return Err(AppError::usage("the entry is empty; nothing was changed")
                    .hint(format!("`capstan remove {}` removes it", self.name)));
            }
            let Err(unusable) = self.check(&before, &original, &text)? else { break };
            if !has_person() || self.context.print.wants_json() {
                return Err(self.give_up(&draft_name, &text, unusable));
            }
            for problem in &unusable.problems {
                self.context.print.diagnosis(problem, &unusable.files);
            }
            let asked = tokio::task::spawn_blocking(|| Terminal.confirm("Edit again?", Some(true)));
            let again = tokio::select! {
                () = crate::interrupted() => return Ok(None),
                again = asked => matches!(again, Ok(Ok(true))),
            };
            if !again {
                // They were shown before the question.
                let shown = Unusable { problems: Vec::new(), files: Vec::new() };
                return Err(self.give_up(&draft_name, &text, shown));
            }
        }
        self.write(&|now| {
            let replaced = replace_entry(now, &self.name, &original, &text)?;
            let mut problems = new_problems("", self.file.scope, now, &replaced.text).into_iter();
            match problems.find(|problem| problem.severity == Severity::Error) {
                None => Ok(replaced.text),
                Some(Problem { message, help, .. }) => {
                    Err(EditError::Refused { reason: message, help })
                }
            }
        })?;
        self.tell_warnings(&before)?;
        Ok(Some(Outcome::Changed))
    }

    /// Checks an edited entry in its file.
    fn check(
        &self,
        before: &str,
        original: &str,
        edited: &str,
    ) -> Result<Result<(), Unusable>, AppError> {
        let replaced = replace_entry(before, &self.name, original, edited);
        let replaced = replaced.map_err(|error| self.at_file(error))?;
        let path = self.file.path.display().to_string();
        let mut problems = new_problems(&path, self.file.scope, before, &replaced.text);
        problems.retain(|problem| problem.severity == Severity::Error);
        if problems.is_empty() {
            return Ok(Ok(()));
        }
        let draft = format!("{} (your text)", self.name);
        let (problems, files) = self.placed(problems, &replaced, (&draft, edited));
        Ok(Err(Unusable { problems, files }))
    }

    /// The problems with their positions in the text that the user sees.
    fn placed(
        &self,
        problems: Vec<Problem>,
        replaced: &ReplacedEntry,
        (draft, edited): (&str, &str),
    ) -> (Vec<Problem>, Vec<SourceFile>) {
        let moved = |problem: Problem| replaced.in_entry(&problem, draft).unwrap_or(problem);
        let path = self.file.path.display().to_string();
        let file = |path: &str, text: &str| SourceFile {
            dialect: Some(Dialect::Native),
            ..SourceFile::new(path, self.file.scope, text)
        };
        let files = vec![file(draft, edited), file(&path, &replaced.text)];
        (problems.into_iter().map(moved).collect(), files)
    }

    /// Keeps the user's text, and says where.
    fn give_up(&self, name: &str, text: &str, unusable: Unusable) -> AppError {
        let hint = match self.context.app.editor.keep(name, text) {
            Ok(path) => format!("your text is kept in {}", path.display()),
            Err(error) => format!("your text could not be kept: {}", error.message),
        };
        let message = format!("`{}` was not changed, because the new entry has errors", self.name);
        let error = AppError::new(ErrorKind::Config, message).hint(hint);
        AppError { problems: unusable.problems.into(), files: unusable.files.into(), ..error }
    }

    /// The words of the user's editor.
    fn editor(&self) -> Result<Vec<String>, AppError> {
        let environment = &self.context.app.configs.environment;
        for name in ["VISUAL", "EDITOR"] {
            let Some(text) = environment.filled_variable(name) else { continue };
            let words = shlex::split(&text).filter(|words| !words.is_empty());
            return words.ok_or_else(|| {
                AppError::usage(format!("`{name}` is not a command: its quotes do not match"))
                    .hint("write it like `EDITOR=\"code --wait\"`")
            });
        }
        let path = environment.variable("PATH");
        let machine = &self.context.app.doctor.machine;
        let is_there =
            |name: &&&str| machine.find_program(name, path.as_deref(), None::<&Path>).is_ok();
        // An editor that was not chosen needs at least a terminal.
        let usual = USUAL_EDITORS.iter().filter(|_| stdin_is_terminal()).find(is_there);
        let words = usual.map(|name| vec![(*name).to_owned()]);
        words.ok_or_else(|| {
            let name = &self.name;
            AppError::usage("there is no editor").hint(format!(
                "set `EDITOR`, or change single keys: `capstan edit {name} --set KEY=VALUE`"
            ))
        })
    }

    fn read(&self) -> Result<String, AppError> {
        let text = self.context.app.configs.environment.files.read(&self.file.path)?;
        Ok(text.unwrap_or_default())
    }

    fn write(&self, change: &dyn Fn(&str) -> Result<String, EditError>) -> Result<(), AppError> {
        self.context.app.configs.edit(&self.file, change)
    }

    fn at_file(&self, error: EditError) -> AppError {
        let error = AppError::from(error);
        AppError { message: format!("{} ({})", error.message, self.file.path.display()), ..error }
    }

    /// Prints the warnings that the change has brought.
    fn tell_warnings(&self, before: &str) -> Result<(), AppError> {
        let path = self.file.path.display().to_string();
        for problem in new_problems(&path, self.file.scope, before, &self.read()?) {
            self.context.print.problem(&problem);
        }
        Ok(())
    }

    fn tell(&self, outcome: Outcome) {
        let is_changed = outcome == Outcome::Changed;
        let Self { context, file, name } = self;
        let (path, scope) = (file.path.display(), file.scope.as_str());
        let said = if is_changed {
            format!("changed `{name}` in {path} ({scope})")
        } else {
            format!("`{name}` is unchanged")
        };
        context.print.note(&said);
        if is_changed && file.scope == Scope::Project {
            self.tell_trust();
        }
        if context.print.wants_json() {
            let json = json!({ "edited": name, "changed": is_changed, "file": file.path });
            context.print.json(&json);
        }
    }

    /// Reminds of a project file that is not trusted.
    fn tell_trust(&self) {
        match self.context.app.configs.approval(&self.file) {
            Ok(Approval::Unknown { .. } | Approval::Changed { .. }) => {
                self.context
                    .print
                    .hint("the file is not trusted; `capstan trust` shows it and asks");
            }
            Ok(Approval::NotNeeded | Approval::Approved) | Err(_) => {}
        }
    }
}
