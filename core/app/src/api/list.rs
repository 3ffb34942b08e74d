//! Lists the servers with their states.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_config::ServerEntry;
use capstan_hub::catalog::Gathered;
use capstan_hub::ports::{BoxFuture, Item, Listing, Pace};
use capstan_hub::{Freshness, Hub, Vitals};
use capstan_model::{Kind, ServerName, ServerState, StateName};
use futures::future::{Either, join, join_all, select};
use serde::{Deserialize, Serialize};

use super::reading::{Provenance, ReadLists, Reading};
use super::{Interact, Local, NoServers, Operation, operator};
use crate::large_program::advice;
use crate::{AppError, HubPurpose, Setup, scope_word};

/// Lists the servers.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListServers {
    /// How the lists are read.
    pub reading: Reading,
}

/// The result of [`ListServers`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Servers {
    /// The servers, in the order of the configuration.
    pub rows: Vec<ServerRow>,
    /// The reason why there are no servers; `None` if there are some.
    pub none: Option<NoServers>,
    /// The reason why a gateway does not use its files; `None` if it does.
    pub trouble: Option<String>,
    /// A required server that failed.
    pub required: Option<ServerName>,
}

/// One server, as `--json` prints it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerRow {
    /// The slug.
    pub name: ServerName,
    /// The name in the configuration, if it is not the slug.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub display: Option<String>,
    /// The transport or kind of the server.
    pub transport: String,
    /// The state.
    pub state: StateName,
    /// Number of tools that the operator may use, if listed.
    pub tools: Option<usize>,
    /// Number of resources that the operator may use, if listed.
    pub resources: Option<usize>,
    /// Number of prompts that the operator may use, if listed.
    pub prompts: Option<usize>,
    /// The command or URL, with secrets masked.
    pub target: String,
    /// The scope of the file that configures it.
    pub scope: String,
    /// Approximate number of tokens that its tools cost a model.
    pub tokens: Option<usize>,
    /// Calls per hour, as counted by gateways.
    pub calls_per_hour: Option<f64>,
    /// Idle seconds after which a gateway stops it.
    pub stops_after: Option<u64>,
    /// Memory of its processes, in bytes.
    pub memory: Option<u64>,
    /// Processor time of its processes, in seconds.
    pub cpu: Option<f64>,
    /// Number of further tools that are hidden.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hidden: Option<usize>,
    /// The reason why it cannot be used; `None` if it can.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// A change of its configuration that is advisable.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub advice: Option<String>,
    /// Where its lists come from.
    #[serde(flatten)]
    pub provenance: Provenance,
}

/// Time limit for each further list of a connected server.
const FURTHER_LIST: Duration = Duration::from_secs(2);

/// Lists and usage of all servers, from which the rows are built.
struct Known<'a> {
    tools: &'a ReadLists,
    resources: &'a HashMap<ServerName, usize>,
    prompts: &'a HashMap<ServerName, usize>,
    usage: &'a HashMap<ServerName, Pace>,
}

impl Operation for ListServers {
    const NAME: &'static str = "servers/list";
    const PURPOSE: HubPurpose = HubPurpose::Lists;
    type Output = Servers;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Servers, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            let gathering = local.gather(&**front, Listing::Tools, self.reading);
            let (tools, usage) = join(gathering, local.usage.rates(&local.setup)).await;
            local.remember(Kind::Tool, &tools);
            let (resources, prompts) =
                join(counts(local, Listing::Resources), counts(local, Listing::Prompts)).await;
            let known =
                Known { tools: &tools, resources: &resources, prompts: &prompts, usage: &usage };
            let entries = local.setup.loaded.config.servers.values();
            let rows: Vec<ServerRow> =
                entries.filter_map(|entry| row(local, entry, &known)).collect();
            let failed = rows.iter().filter(|row| row.state == StateName::Failed);
            Ok(Servers {
                required: local.required(failed.map(|row| &row.name)),
                rows,
                none: local.none(),
                trouble: local.gateway.as_ref().and_then(|gateway| gateway.trouble()),
            })
        })
    }
}

/// Counts items other than tools that the operator may use. Only connected servers are asked, and
/// saved lists are read: a failed server would be started again and would show as connecting.
async fn counts(local: &Local, listing: Listing) -> HashMap<ServerName, usize> {
    let hub = &*local.hub;
    let known = hub.servers().filter(|name| {
        matches!(hub.state(name), Some(ServerState::Connected | ServerState::Degraded(_)))
            || hub.saved_at(name, listing).is_some()
    });
    let asked = known.map(|name| async move {
        let late = hub.clock().sleep(FURTHER_LIST);
        let list = Box::pin(hub.list(name, listing, Freshness::Remembered));
        let Either::Left((Ok(items), _)) = select(list, late).await else { return None };
        Some((name.clone(), count_visible(hub, name, listing, items)))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Counts the items of a list that the operator may use.
pub(super) fn count_visible(
    hub: &Hub,
    server: &ServerName,
    listing: Listing,
    items: Arc<[Item]>,
) -> usize {
    let kind = match listing {
        Listing::Tools => return hub.count_shown(server, &items, &operator()),
        Listing::Prompts => Kind::Prompt,
        Listing::Resources | Listing::Templates => Kind::Resource,
    };
    let mut gathered = Gathered::default();
    gathered.lists.insert(server.clone(), items);
    hub.visible_items(&gathered, kind, &operator()).len()
}

fn row(local: &Local, entry: &ServerEntry, known: &Known<'_>) -> Option<ServerRow> {
    let (hub, Known { tools, resources, prompts, usage }) = (&*local.hub, known);
    let Vitals { state, pace, footprint, .. } = hub.vitals_of(&entry.name)?;
    // A gateway has current figures; a command has only the stored ones.
    let pace = pace.filter(|_| local.gateway.is_some());
    let pace = pace.or_else(|| usage.get(&entry.name).copied());
    let items = tools.gathered.lists.get(&entry.name);
    let shown = items.map(|items| hub.tally(&entry.name, items, &operator()));
    let hidden = items.map_or(0, |items| items.len()) - shown.unwrap_or_default().tools;
    let lacks = |count: &HashMap<ServerName, usize>| !count.contains_key(&entry.name);
    let incomplete = match &state {
        ServerState::Connecting | ServerState::Degraded(_) => true,
        ServerState::Cached | ServerState::Connected | ServerState::Idle => {
            items.is_none() || lacks(resources) || lacks(prompts)
        }
        ServerState::Disabled
        | ServerState::AwaitingApproval
        | ServerState::NeedsLogin
        | ServerState::Failed(_) => false,
    };
    Some(ServerRow {
        tools: shown.map(|shown| shown.tools),
        resources: resources.get(&entry.name).copied(),
        prompts: prompts.get(&entry.name).copied(),
        tokens: shown.map(|shown| shown.tokens),
        calls_per_hour: pace.as_ref().map(|pace| pace.calls_per_hour),
        stops_after: pace.as_ref().and_then(|pace| pace.stops_in).map(|time| time.as_secs()),
        memory: footprint.map(|footprint| footprint.memory),
        cpu: footprint.map(|footprint| footprint.cpu.as_secs_f64()),
        hidden: (hidden > 0).then_some(hidden),
        advice: items.and_then(|items| advice(hub, entry, items)),
        provenance: Provenance { incomplete, ..tools.provenance(&entry.name) },
        ..ServerRow::new(entry, &state)
    })
}

/// The servers of a configuration that cannot be used as it is, without starting any.
pub fn configured_servers(setup: &Setup) -> Vec<ServerRow> {
    let row = |entry: &ServerEntry| {
        let state = match &entry.status {
            _ if !entry.enabled => ServerState::Disabled,
            _ if !entry.approved => ServerState::AwaitingApproval,
            Ok(_) => ServerState::Idle,
            Err(problem) => ServerState::Failed(problem.to_string()),
        };
        ServerRow::new(entry, &state)
    };
    setup.loaded.config.servers.values().map(row).collect()
}

// === impl ServerRow ===

impl ServerRow {
    /// The facts of a configured server, without its lists.
    fn new(entry: &ServerEntry, state: &ServerState) -> Self {
        let server = entry.status.as_ref().ok();
        Self {
            name: entry.name.clone(),
            display: (entry.display != entry.name.as_str()).then(|| entry.display.clone()),
            transport: server.map_or("unknown", |server| server.kind.as_str()).to_owned(),
            state: state.name(),
            tools: None,
            resources: None,
            prompts: None,
            target: server.map(|server| server.target.clone()).unwrap_or_default(),
            scope: scope_word(&entry.origin).to_owned(),
            tokens: None,
            calls_per_hour: None,
            stops_after: None,
            memory: None,
            cpu: None,
            hidden: None,
            error: error(&entry.name, state),
            advice: None,
            provenance: Provenance::default(),
        }
    }

    /// The name to show: the display name if there is one, else the slug.
    pub fn shown_name(&self) -> &str {
        self.display.as_deref().unwrap_or(self.name.as_str())
    }
}

/// The reason why a server cannot be used.
fn error(name: &ServerName, state: &ServerState) -> Option<String> {
    if *state == ServerState::NeedsLogin {
        return Some(format!("it needs a login; run `capstan login {name}`"));
    }
    if *state == ServerState::Connecting {
        return Some("it has not answered yet; `--wait 30s` waits longer".to_owned());
    }
    state.reason().map(ToOwned::to_owned)
}
