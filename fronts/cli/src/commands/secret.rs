//! `capstan secret`: stores, lists and removes secrets that the configuration refers to.

use std::io::Read as _;

use capstan_app::AppError;
use capstan_hub::ports::VaultPlace;
use capstan_model::Secret;
use capstan_text::screen::stdin_is_terminal;
use inquire::{InquireError, Password, PasswordDisplayMode};
use serde::Serialize;

use crate::args::SecretCommand;
use crate::context::Context;
use crate::exit::Exit;

/// Longest secret that is read from stdin.
const MAX_SECRET: u64 = 256 * 1024;

/// One secret, as `--json` prints it.
#[derive(Serialize)]
struct Row {
    name: String,
    stored: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

pub(crate) async fn run(context: &Context, command: &SecretCommand) -> Result<Exit, AppError> {
    match command {
        SecretCommand::Set(args) => set(context, &args.name).await,
        SecretCommand::List => list(context).await,
        SecretCommand::Remove(args) => {
            context.app.secrets.remove(&args.name).await?;
            context.print.note(&format!("removed `{}`", args.name));
            Ok(Exit::Ok)
        }
    }
}

async fn set(context: &Context, name: &str) -> Result<Exit, AppError> {
    let question = format!("Secret for `{name}`:");
    // In its own thread, so that signals are handled while a person types.
    let value = tokio::task::spawn_blocking(move || read(&question)).await;
    let value = value.map_err(|error| AppError::internal(error.to_string()))??;
    let place = context.app.secrets.set(name, value).await?;
    if context.print.wants_json() {
        context.print.json(&Row::new(name.to_owned(), &place));
        return Ok(Exit::Ok);
    }
    context.print.note(&format!("stored `{name}` in {place}"));
    context.print.hint(&format!(
        "refer to it in the configuration as `keyring:{name}`, or as `${{keyring:{name}}}` within a text"
    ));
    Ok(Exit::Ok)
}

async fn list(context: &Context) -> Result<Exit, AppError> {
    let secrets = context.app.secrets.list().await?;
    let rows: Vec<Row> = secrets.into_iter().map(|(name, place)| Row::new(name, &place)).collect();
    if context.print.wants_json() {
        context.print.json(&rows);
    } else if rows.is_empty() {
        context.print.note("there are no secrets");
        context.print.hint("`capstan secret set NAME` stores one");
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        context.print.table(&["NAME", "STORED IN"], &cells);
    }
    Ok(Exit::Ok)
}

/// Reads a secret: from the terminal without echo, or all of stdin without its last line break.
fn read(question: &str) -> Result<Secret<String>, AppError> {
    if stdin_is_terminal() {
        let prompt = Password::new(question).without_confirmation();
        return match prompt.with_display_mode(PasswordDisplayMode::Hidden).prompt() {
            Ok(value) => Ok(Secret::new(value)),
            Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => {
                Err(AppError::usage("nothing was stored"))
            }
            Err(error) => Err(AppError::internal(error.to_string())),
        };
    }
    let unread = |reason: String| AppError::usage(format!("stdin cannot be read: {reason}"));
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(MAX_SECRET + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(error.to_string()))?;
    if bytes.len() as u64 > MAX_SECRET {
        return Err(unread(format!("it has more than {MAX_SECRET} bytes")));
    }
    let mut value = String::from_utf8(bytes).map_err(|_| unread("it is not UTF-8".to_owned()))?;
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
    Ok(Secret::new(value))
}

// === impl Row ===

impl Row {
    fn new(name: String, place: &VaultPlace) -> Self {
        match place {
            VaultPlace::Keyring => Self { name, stored: "keyring", file: None },
            VaultPlace::File(path) => Self { name, stored: "file", file: Some(path.clone()) },
        }
    }

    fn cells(&self) -> Vec<String> {
        let place = self.file.clone().unwrap_or_else(|| self.stored.to_owned());
        vec![self.name.clone(), place]
    }
}
