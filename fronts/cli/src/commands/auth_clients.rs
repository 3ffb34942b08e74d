//! `capstan auth clients`: lists and removes the apps that registered at the gateway.

use capstan_app::AppError;
use capstan_hub::ports::StoredClient;
use capstan_text::clean::one_line;
use serde_json::{Value, json};

use super::age;
use crate::args::AuthClientsCommand;
use crate::context::Context;
use crate::exit::Exit;

/// Longest text in a cell.
const MAX_CELL: usize = 200;

pub(crate) async fn run(context: &Context, command: &AuthClientsCommand) -> Result<Exit, AppError> {
    match command {
        AuthClientsCommand::List => list(context).await?,
        AuthClientsCommand::Revoke(args) => {
            context.app.accounts.revoke_client(&args.id).await?;
            let id = one_line(&args.id, MAX_CELL);
            context.print.note(&format!("removed the app `{id}` and all of its logins"));
        }
    }
    Ok(Exit::Ok)
}

async fn list(context: &Context) -> Result<(), AppError> {
    let clients = context.app.accounts.clients().await?;
    if context.print.wants_json() {
        context.print.json(&clients.iter().map(to_json).collect::<Vec<_>>());
    } else if clients.is_empty() {
        context.print.note("no app has registered at the gateway");
    } else {
        let rows: Vec<Vec<String>> = clients.iter().map(row).collect();
        context.print.table(&["ID", "NAME", "REDIRECTS TO", "SOURCE", "LAST USED"], &rows);
        context.print.hint("`capstan auth clients revoke ID` removes one");
    }
    Ok(())
}

fn to_json(client: &StoredClient) -> Value {
    json!({
        "id": client.id,
        "name": client.name,
        "redirect_uris": client.redirect_uris,
        "source": client.source.as_str(),
        "created_at": client.created_at,
        "used_at": client.used_at,
        "expires_at": client.expires_at,
    })
}

fn row(client: &StoredClient) -> Vec<String> {
    let cell = |text: &str| one_line(text, MAX_CELL);
    vec![
        cell(&client.id),
        cell(client.name.as_deref().unwrap_or("–")),
        cell(&client.redirect_uris.join(" ")),
        client.source.as_str().to_owned(),
        format!("{} ago", age(client.used_at)),
    ]
}
