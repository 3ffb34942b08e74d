//! `capstan auth`: tokens for callers of the gateway, and the apps that registered at it.

use capstan_app::{AppError, CreatedToken, NewCaller};
use capstan_hub::ports::AccessToken;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::auth_clients;
use crate::args::{AuthCommand, TokenCommand, TokenCreateArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::set;

pub(crate) async fn run(context: &Context, command: &AuthCommand) -> Result<Exit, AppError> {
    match command {
        AuthCommand::Clients(command) => auth_clients::run(context, command).await,
        AuthCommand::Token(TokenCommand::Create(args)) => create(context, args).await,
        AuthCommand::Token(TokenCommand::List) => list(context).await,
        AuthCommand::Token(TokenCommand::Revoke(args)) => revoke(context, &args.id).await,
    }
}

async fn create(context: &Context, args: &TokenCreateArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let (subject, roles) = (args.subject.clone(), args.role.clone());
    let new = NewCaller { subject, roles, valid_for: args.expires };
    let created = context.app.tokens.create(&setup, new).await?;
    let CreatedToken { token, stored, is_accepted, unknown_roles } = &created;
    if context.print.wants_json() {
        let mut shown = to_json(stored);
        set(&mut shown, "token", token.reveal().as_str());
        context.print.json(&shown);
    } else {
        context.print.data(token.reveal());
        context.print.note("store it now: it is not shown again");
    }
    for role in unknown_roles {
        context.print.warning(&format!("no access rule mentions the role `{role}`"));
    }
    if !is_accepted {
        context.print.warning("the gateway does not accept such tokens yet");
        context.print.hint("add `providers = [\"tokens\"]` to `[gateway.auth]`");
    }
    Ok(Exit::Ok)
}

async fn list(context: &Context) -> Result<Exit, AppError> {
    let tokens = context.app.tokens.list().await?;
    if context.print.wants_json() {
        context.print.json(&tokens.iter().map(to_json).collect::<Vec<_>>());
        return Ok(Exit::Ok);
    }
    if tokens.is_empty() {
        context.print.note("there are no tokens");
        context.print.hint("`capstan auth token create CALLER` creates one");
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<String>> = tokens
        .iter()
        .map(|token| {
            let expires = match token.expires_at {
                Some(_) if context.app.tokens.has_expired(token) => "expired".to_owned(),
                Some(end) => shown(end),
                None => "never".to_owned(),
            };
            let roles = token.roles.join(", ");
            vec![token.id.clone(), token.subject.clone(), roles, shown(token.created_at), expires]
        })
        .collect();
    context.print.table(&["ID", "CALLER", "ROLES", "CREATED", "EXPIRES"], &rows);
    Ok(Exit::Ok)
}

async fn revoke(context: &Context, id: &str) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let revoked = context.app.tokens.revoke(&setup, id).await?;
    if context.print.wants_json() {
        context.print.json(&to_json(&revoked));
    } else {
        let subject = &revoked.subject;
        context.print.note(&format!("the token `{id}` of `{subject}` is revoked"));
    }
    Ok(Exit::Ok)
}

fn to_json(token: &AccessToken) -> Value {
    json!({
        "id": token.id,
        "caller": token.subject,
        "roles": token.roles,
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|end| end.to_string()),
    })
}

/// A time to the minute.
fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%MZ").to_string()
}
