//! `capstan reload`: has a gateway read its configuration again.

use capstan_app::AppError;

use crate::context::Context;
use crate::exit::Exit;

/// Runs in the gateway; `attached` takes it there.
pub(crate) async fn run(context: &Context) -> Result<Exit, AppError> {
    let Some(inside) = &context.inside else {
        return Err(AppError::internal("there is no gateway here"));
    };
    let changed = inside.reload().await?;
    let keys = inside.needs_restart();
    context.print.note(match (changed, keys.is_empty()) {
        (true, _) => "the configuration has changed",
        (false, true) => "nothing has changed",
        (false, false) => "nothing has changed since it was last read",
    });
    if !keys.is_empty() {
        let named = keys.join("`, `");
        context.print.warning(&format!("`{named}` changed, and a restart is needed for that"));
        context.print.hint("end the gateway and start it again: `capstan serve`");
    }
    if let Some(trouble) = inside.trouble() {
        context.print.warning(&trouble);
    }
    if context.print.wants_json() {
        context.print.json(&serde_json::json!({ "changed": changed, "needs_restart": keys }));
    }
    Ok(Exit::Ok)
}
