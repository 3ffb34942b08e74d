//! `capstan reload`: reloads the configuration of a running gateway.

use capstan_app::AppError;
use capstan_app::api::{Reload, Reloaded};

use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

pub(crate) async fn run(context: &Context) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "waiting for the gateway");
    let Reloaded { changed, needs_restart, trouble } = context.run(Reload {}, person).await?;
    context.print.note(match (changed, needs_restart.is_empty()) {
        (true, _) => "the configuration has changed",
        (false, true) => "nothing has changed",
        (false, false) => "nothing has changed since the last reload",
    });
    if !needs_restart.is_empty() {
        let named = needs_restart.join("`, `");
        context.print.warning(&format!("`{named}` changed; restart the gateway to apply it"));
        context.print.hint("stop the gateway and run `capstan serve` again");
    }
    if let Some(trouble) = trouble {
        context.print.warning(&trouble);
    }
    if context.print.wants_json() {
        let shown = serde_json::json!({ "changed": changed, "needs_restart": needs_restart });
        context.print.json(&shown);
    }
    Ok(Exit::Ok)
}
