//! `capstan list`: the servers with their states.

use std::collections::HashMap;
use std::time::Duration;

use capstan_app::AppError;
use capstan_config::ServerEntry;
use capstan_hub::catalog::{Gathered, Patience};
use capstan_hub::ports::{Listing, Pace};
use capstan_hub::{Freshness, Hub, Vitals};
use capstan_model::{Caller, Front, ServerName, ServerState};
use capstan_text::table::table;
use futures::future::{join, join_all};
use serde::Serialize;

use super::add::origin_word;
use crate::args::WaitArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::waiting::Waiting;

/// How long a server that is connected may take for each further list.
const SETTLED: Duration = Duration::from_secs(2);

/// One server, as `--json` prints it.
#[derive(Serialize)]
struct Row {
    name: ServerName,
    transport: &'static str,
    state: &'static str,
    tools: Option<usize>,
    resources: Option<usize>,
    prompts: Option<usize>,
    target: String,
    scope: &'static str,
    tokens: Option<usize>,
    /// As gateways have counted it.
    calls_per_hour: Option<f64>,
    /// How many seconds a gateway keeps it without use.
    stops_after: Option<u64>,
    /// What its processes use right now: bytes, and seconds of processor time.
    memory: Option<u64>,
    cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    glyph: &'static str,
}

pub(crate) async fn run(context: &Context, args: &WaitArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let patience = Context::patience(args);
    let (tools, paces) = join(gather(context, hub, patience), context.host.usage(&setup)).await;
    let (resources, prompts) =
        join(counts(hub, Listing::Resources), counts(hub, Listing::Prompts)).await;
    let rows: Vec<Row> = setup
        .loaded
        .config
        .servers
        .values()
        .filter_map(|entry| {
            row(
                hub,
                entry,
                &Known { tools: &tools, resources: &resources, prompts: &prompts, paces: &paces },
            )
        })
        .collect();
    if context.print.wants_json() {
        context.print.json(&rows);
    } else if rows.is_empty() {
        context.say_no_servers(&setup);
    } else {
        show(context, &rows);
    }
    if let Some(trouble) = context.inside.as_ref().and_then(|inside| inside.trouble()) {
        context.print.warning(&format!("the gateway does not use what the files say: {trouble}"));
    }
    let failed = rows.iter().filter(|row| row.state == "failed").map(|row| &row.name);
    Ok(context.exit_without(&setup, failed))
}

async fn gather(context: &Context, hub: &Hub, patience: Patience) -> Gathered {
    let waiting = Waiting::new(&context.print, "waiting for the servers");
    let total = hub.servers().len();
    let mut answered = 0;
    hub.gather(Listing::Tools, patience, &mut |_| {
        answered += 1;
        waiting.say(&format!("waiting for the servers ({answered} of {total} have answered)"));
    })
    .await
}

/// How many items the servers list beside their tools. Only those that are connected are asked:
/// one that failed would be started anew, and would seem to be connecting.
async fn counts(hub: &Hub, listing: Listing) -> HashMap<ServerName, usize> {
    let connected = hub.servers().filter(|name| {
        matches!(hub.state(name), Some(ServerState::Connected | ServerState::Degraded(_)))
    });
    let asked = connected.map(|name| async move {
        let list = hub.list(name, listing, Freshness::Known);
        let items = tokio::time::timeout(SETTLED, list).await.ok()?.ok()?;
        Some((name.clone(), items.len()))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// What was found out about all servers.
struct Known<'a> {
    tools: &'a Gathered,
    resources: &'a HashMap<ServerName, usize>,
    prompts: &'a HashMap<ServerName, usize>,
    paces: &'a HashMap<ServerName, Pace>,
}

fn row(hub: &Hub, entry: &ServerEntry, known: &Known<'_>) -> Option<Row> {
    let Known { tools, resources, prompts, paces } = known;
    let Vitals { state, pace, footprint, .. } = hub.vitals_of(&entry.name)?;
    // A gateway knows how it is right now; what is kept is behind.
    let pace = pace.or_else(|| paces.get(&entry.name).copied());
    let kind = entry.status.as_ref().map_or("unknown", |server| server.kind.as_str());
    let target =
        entry.status.as_ref().map_or_else(|_| String::new(), |server| server.target.clone());
    Some(Row {
        name: entry.name.clone(),
        transport: kind,
        state: state.name().as_str(),
        tools: tools.lists.get(&entry.name).map(|items| hub.count_usable(items)),
        resources: resources.get(&entry.name).copied(),
        prompts: prompts.get(&entry.name).copied(),
        target,
        scope: origin_word(&entry.origin),
        tokens: tools
            .lists
            .get(&entry.name)
            .map(|items| hub.tokens(&entry.name, items, &Caller::operator(Front::Cli))),
        calls_per_hour: pace.as_ref().map(|pace| pace.calls_per_hour),
        stops_after: pace.as_ref().and_then(|pace| pace.stops_in).map(|time| time.as_secs()),
        memory: footprint.map(|footprint| footprint.memory),
        cpu: footprint.map(|footprint| footprint.cpu.as_secs_f64()),
        error: trouble(&state),
        glyph: state.name().glyph().as_str(),
    })
}

/// What there is to say about a server that is not well.
fn trouble(state: &ServerState) -> Option<String> {
    if *state == ServerState::Connecting {
        return Some("it has not answered yet; `--wait 30s` waits longer".to_owned());
    }
    state.reason().map(ToOwned::to_owned)
}

/// A time in the largest unit that it is a whole number of.
fn time(seconds: u64) -> String {
    match seconds {
        0 => "0s".to_owned(),
        whole if whole.is_multiple_of(3600) => format!("{}h", whole / 3600),
        whole if whole.is_multiple_of(60) => format!("{}m", whole / 60),
        other => format!("{other}s"),
    }
}

fn show(context: &Context, rows: &[Row]) {
    let number = |count: Option<usize>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                format!("{} {}", row.glyph, row.name),
                row.state.to_owned(),
                number(row.tools),
                number(row.tokens),
                row.calls_per_hour.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
                row.stops_after.map_or_else(|| "-".to_owned(), time),
                row.scope.to_owned(),
                row.target.clone(),
            ]
        })
        .collect();
    let headers = ["SERVER", "STATE", "TOOLS", "TOKENS", "CALLS/H", "STOPS", "SCOPE", "TARGET"];
    context.print.data(&table(&headers, &cells, context.print.width()));
    for row in rows {
        if let Some(error) = &row.error {
            context.print.note(&format!("{} {}: {error}", row.glyph, row.name));
        }
    }
}
