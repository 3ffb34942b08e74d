//! The user's text editor.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_app::{AppError, Draft, Environment, ErrorKind, Machine, TextEditor};
use capstan_files::drafts::DraftFolder;
use capstan_files::{MAX_SIZE, read_bounded};
use capstan_hub::ports::BoxFuture;
use capstan_process::spawn::{Exit, run_in_foreground};

/// Runs editors on files in the state folder.
pub(crate) struct Editors {
    pub(crate) environment: Arc<Environment>,
    pub(crate) machine: Arc<dyn Machine>,
}

// === impl Editors ===

impl Editors {
    fn drafts(&self) -> DraftFolder {
        DraftFolder::new(self.environment.state.join("drafts"))
    }

    fn broken(&self, error: &io::Error) -> AppError {
        let folder = self.environment.state.display();
        AppError::config(format!("a draft cannot be written to {folder}: {error}"))
    }

    async fn edit(&self, draft: Draft<'_>) -> Result<String, AppError> {
        let Some((name, args)) = draft.editor.split_first() else {
            return Err(AppError::usage("there is no editor"));
        };
        let path = self.environment.variable("PATH");
        let here = Some(self.environment.current_folder.as_path());
        let program = self.machine.find_program(name, path.as_deref(), here);
        let program = program.map_err(|reason| {
            AppError::usage(format!("the editor cannot be started: {reason}"))
                .hint("correct `VISUAL` or `EDITOR`")
        })?;
        let file = self.drafts().create(draft.name, draft.text);
        let file = file.map_err(|error| self.broken(&error))?;
        let words = args.iter().map(OsString::from);
        let words: Vec<OsString> = words.chain([file.path().into()]).collect();
        let reason = match run_in_foreground(&program, &words).await {
            Ok(Exit::Code(0)) => return read(file.path()),
            Ok(Exit::Code(code)) => format!("ended with exit code {code}"),
            Ok(Exit::Killed) => "was killed".to_owned(),
            Err(error) => format!("cannot be started: {error}"),
        };
        let message = format!("the editor `{name}` {reason}; nothing was changed");
        Err(AppError::new(ErrorKind::Failed, message))
    }
}

impl TextEditor for Editors {
    fn edit<'a>(&'a self, draft: Draft<'a>) -> BoxFuture<'a, Result<String, AppError>> {
        Box::pin(self.edit(draft))
    }

    fn keep(&self, name: &str, text: &str) -> Result<PathBuf, AppError> {
        self.drafts().keep(name, text).map_err(|error| self.broken(&error))
    }
}

fn read(path: &Path) -> Result<String, AppError> {
    let text = read_bounded(path, MAX_SIZE);
    let text = text.map_err(|error| AppError::caused(ErrorKind::Failed, &error))?;
    text.ok_or_else(|| {
        AppError::new(ErrorKind::Failed, "the editor removed the file; nothing was changed")
    })
}
