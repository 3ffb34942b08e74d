//! Connects servers that were just added, while the person who added them is still there.

use std::sync::Arc;
use std::time::Duration;

use capstan_app::api::{Interact, ListTools, Reading, Reload, Remote, Source};
use capstan_app::{NotRun, Warmed, Which};
use capstan_hub::catalog::Patience;
use capstan_model::ServerName;
use capstan_text::clean::one_line;
use futures::future::join_all;
use tokio::time::timeout;

use crate::args::CheckArgs;
use crate::context::Context;
use crate::person::Person;
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
    let message = format!("connecting to {count}");
    let warmed = if let Some(warmed) = in_gateway(context, &servers, &message).await {
        Ok(warmed)
    } else {
        let _spinner = Spinner::new(&context.print, &message);
        context.app.warm_up.warm_up(&setup, &servers, LIMIT).await
    };
    match warmed {
        Ok(warmed) => {
            tell(context, &warmed);
            let answered = warmed.iter().filter(|one| one.tools.is_some());
            let answered: Vec<String> = answered.map(|one| one.server.to_string()).collect();
            super::scan::tell_suspicious(context, &answered).await;
            warmed
        }
        Err(error) => {
            context.print.warning(&error.message);
            Vec::new()
        }
    }
}

/// Connects servers in a running gateway with this configuration, so that no second copies of them
/// are started; `None` if there is no such gateway.
async fn in_gateway(
    context: &Context,
    servers: &[ServerName],
    message: &str,
) -> Option<Vec<Warmed>> {
    let gateways = &*context.app.gateways;
    let front: Arc<dyn Interact> = Arc::new(Person::watching(&context.print, message));
    // The gateway may not have noticed yet that the files have changed.
    drop(Remote { gateways, which: Which::Only(&context.selection) }.run(&Reload {}, &front).await);
    let reading = Reading { source: Source::Servers, wait: Patience::UpTo(LIMIT) };
    let connected = servers.iter().map(|server| {
        let list = ListTools { name: Some(server.to_string()), provider: None, reading };
        let (which, front) = (Which::Like(&context.selection), &front);
        async move {
            let remote = Remote { gateways, which };
            let (tools, error) = match timeout(LIMIT, remote.run(&list, front)).await {
                Ok(Ok(listed)) => (Some(listed.tools.len()), None),
                Ok(Err(NotRun::Failed(error))) => (None, Some(error.message)),
                Ok(Err(NotRun::Here)) => return None,
                Err(_) => (None, Some(format!("`{server}` did not answer within {LIMIT:?}"))),
            };
            Some(Warmed { server: server.clone(), tools, error })
        }
    });
    join_all(connected).await.into_iter().collect()
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
