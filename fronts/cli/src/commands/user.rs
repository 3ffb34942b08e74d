//! `capstan user`: manages the users who sign in at the gateway with a password.

use std::io::{BufRead as _, Read as _};

use capstan_app::{AppError, ErrorKind};
use capstan_model::Secret;
use capstan_text::clean::one_line;
use capstan_text::form::{Prompter as _, Terminal};
use capstan_text::screen::has_person;
use serde_json::{Value, json};

use super::age;
use crate::args::UserCommand;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::counted;

/// Longest password line on the standard input, in bytes.
const MAX_LINE: u64 = 4096;

pub(crate) async fn run(context: &Context, command: &UserCommand) -> Result<Exit, AppError> {
    let accounts = &context.app.accounts;
    match command {
        UserCommand::Add(args) => {
            let password = password()?;
            accounts.add_user(&args.name, args.roles.clone(), &password).await?;
            context.print.note(&format!("added the user `{}`", one_line(&args.name, 64)));
        }
        UserCommand::List => list(context).await?,
        UserCommand::Remove(args) => {
            let ended = accounts.remove_user(&args.name).await?;
            let name = one_line(&args.name, 64);
            context.print.note(&format!("removed the user `{name}`; {}", logins(ended)));
        }
        UserCommand::Password(args) => {
            let password = password()?;
            let ended = accounts.set_password(&args.name, &password).await?;
            let name = one_line(&args.name, 64);
            context.print.note(&format!("changed the password of `{name}`; {}", logins(ended)));
        }
    }
    Ok(Exit::Ok)
}

async fn list(context: &Context) -> Result<(), AppError> {
    let users = context.app.accounts.users().await?;
    if context.print.wants_json() {
        let row = |user: &capstan_hub::ports::StoredUser| json!({ "name": user.name, "roles": user.roles, "created_at": user.created_at });
        context.print.json(&users.iter().map(row).collect::<Vec<Value>>());
    } else if users.is_empty() {
        context.print.note("there are no users");
        context.print.hint("`capstan user add NAME` adds one");
    } else {
        let row = |user: &capstan_hub::ports::StoredUser| {
            vec![user.name.clone(), user.roles.join(", "), format!("{} ago", age(user.created_at))]
        };
        let rows: Vec<Vec<String>> = users.iter().map(row).collect();
        context.print.table(&["NAME", "ROLES", "ADDED"], &rows);
    }
    Ok(())
}

/// Asks for a password twice; without a person, reads the first line of the standard input.
fn password() -> Result<Secret<String>, AppError> {
    if !has_person() {
        let mut line = String::new();
        let read = std::io::stdin().lock().take(MAX_LINE).read_line(&mut line);
        read.map_err(|error| AppError::new(ErrorKind::Usage, format!("no password: {error}")))?;
        return Ok(Secret::new(line.trim_end_matches(['\r', '\n']).to_owned()));
    }
    let closed = |_| AppError::new(ErrorKind::Usage, "no password was typed");
    let first = Terminal.secret("Password:").map_err(closed)?;
    let second = Terminal.secret("Again:").map_err(closed)?;
    if first == second {
        return Ok(Secret::new(first));
    }
    Err(AppError::new(ErrorKind::Usage, "the two passwords differ"))
}

fn logins(ended: u64) -> String {
    format!("ended {}", counted(ended, "login", "logins"))
}
