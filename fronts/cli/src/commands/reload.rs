//! `capstan reload`: has a gateway read its configuration again.

use crate::context::Context;
use crate::exit::{Exit, Failure};

/// Runs in the gateway; `attached` takes it there.
pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let Some(inside) = &context.inside else {
        return Err(Failure::internal("there is no gateway here"));
    };
    let changed = inside.reload().await?;
    let said = if changed { "the configuration has changed" } else { "nothing has changed" };
    context.print.note(said);
    if let Some(trouble) = inside.trouble() {
        context.print.warning(&trouble);
    }
    if context.print.wants_json() {
        context.print.json(&serde_json::json!({ "changed": changed }));
    }
    Ok(Exit::Ok)
}
