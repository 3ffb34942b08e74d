//! Connects servers that were just added, while the person who added them is still there.

use std::time::Duration;

use capstan_app::Warmed;
use capstan_model::ServerName;
use capstan_text::clean::one_line;

use crate::args::CheckArgs;
use crate::context::Context;
use crate::print::counted;
use crate::spinner::Spinner;

/// Time limit for all servers together.
const LIMIT: Duration = Duration::from_secs(30);

/// Connects the servers of these names once, so that a client finds their tools at once.
///
/// A failure is a warning: the servers are configured, and may only lack a variable.
pub(crate) async fn check(context: &Context, args: &CheckArgs, names: &[String]) -> Vec<Warmed> {
    let is_wanted = args.check || !args.no_check && context.print.is_watched();
    if !is_wanted || names.is_empty() || context.selection.no_mcp {
        return Vec::new();
    }
    let Ok(setup) = context.setup_untold() else { return Vec::new() };
    let entries = names.iter().filter_map(|name| setup.server(name).ok());
    let servers: Vec<ServerName> =
        entries.filter(|entry| entry.enabled).map(|entry| entry.name.clone()).collect();
    let count = counted(servers.len(), "server", "servers");
    let spinner = Spinner::new(&context.print, &format!("connecting to {count}"));
    let warmed = context.app.warm_up.warm_up(&setup, &servers, LIMIT).await;
    drop(spinner);
    match warmed {
        Ok(warmed) => {
            tell(context, &warmed);
            warmed
        }
        Err(error) => {
            context.print.warning(&error.message);
            Vec::new()
        }
    }
}

fn tell(context: &Context, warmed: &[Warmed]) {
    for Warmed { server, tools, error } in warmed {
        match (tools, error) {
            (Some(tools), _) => {
                let tools = counted(*tools, "tool", "tools");
                context.print.note(&format!("`{server}` answers: {tools}"));
            }
            (None, error) => {
                let reason = error.as_deref().unwrap_or("it did not answer");
                context.print.warning(&one_line(reason, usize::MAX));
                context.print.hint(&format!("`capstan doctor {server}` suggests a fix"));
            }
        }
    }
}
