//! The typed API: operations on servers, run here or in a running gateway.
//!
//! Each file beside this one is an operation: its parameters, its result and its implementation.
//! `interact` defines the events and questions of a running operation, `remote` the form that
//! travels over the control socket.
//!
//! **Invariant:** a result is data. The calling front renders it, so that output does not depend on
//! whether the operation ran here or in a gateway.

mod interact;
mod remote;
mod approvals;
mod changes;
mod list;
mod get;
mod items;
mod tools;
mod call;
mod prompt;
mod read;

use std::sync::Arc;

use capstan_config::{Problem, Severity};
use capstan_hub::Hub;
use capstan_hub::catalog::{Gathered, Patience, Typing};
use capstan_hub::ports::{BoxFuture, Item, Listing};
use capstan_model::{Caller, Front, Kind, ServerName};
use capstan_wire::{Json, object};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use approvals::{
    AnswerApproval, ApprovalAnswered, KnownApprovals, ListApprovals, OpenApprovals, ShowApproval,
};
pub use call::{CallTool, Called};
pub use changes::{AddServer, Reload, Reloaded, RemoveServer};
pub use get::GetServer;
pub use interact::{Answer, Ask, CallQuestion, Event, Form, Interact, Misfit, Need, Slot};
pub use items::{Items, ListPrompts, ListResources, ListedItem, Missing};
pub use list::{ListServers, ServerRow, Servers, configured_servers};
pub use prompt::{CompletePrompt, GetPrompt};
pub use read::{CompleteTemplate, ReadResource};
pub(crate) use remote::run_in;
pub use remote::{Remote, VERSION, answer, ask_front, tell_front};
pub use tools::{ListTools, ToolRow, Tools};

use interact::Asker;

use crate::reload::LiveConfig;
use crate::{AppError, NameCache, Setup, Usage};

/// One operation of the API.
pub trait Operation: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name on the control socket.
    const NAME: &'static str;

    /// The result.
    type Output: Serialize + DeserializeOwned + Send;

    /// Runs the operation on the servers of this process.
    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Self::Output, AppError>>;
}

/// The servers of this process, and the services that operations on them need.
pub struct Local {
    /// The configuration in force.
    pub setup: Setup,
    /// The hub that was built from it.
    pub hub: Arc<Hub>,
    /// The cache of names for completions; `None` if none is kept.
    pub names: Option<Arc<dyn NameCache>>,
    /// Call rates and idle times of servers.
    pub usage: Arc<Usage>,
    /// True if no server may be started.
    pub switched_off: bool,
    /// The configuration of the gateway that this process runs.
    pub gateway: Option<Arc<LiveConfig>>,
}

/// The reason why there is nothing to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoServers {
    /// No server may be started.
    SwitchedOff,
    /// No server is configured.
    NotConfigured,
}

// === impl Local ===

impl Local {
    /// Reports the configuration problems that `wanted` selects; none of them stops more than one
    /// server.
    pub fn tell_problems(&self, front: &dyn Interact, wanted: impl Fn(&Problem) -> bool) {
        for problem in self.setup.loaded.problems.iter().filter(|problem| wanted(problem)) {
            front.event(Event::Problem { problem: problem.clone() });
        }
    }

    /// Reports the problems of the configuration beside a list of many servers: those of no server,
    /// and the number of warnings about servers in one line. The list itself reports the errors of
    /// servers.
    pub fn tell_problems_of_list(&self, front: &dyn Interact) {
        self.tell_problems(front, |problem| problem.server.is_none());
        let warned =
            |problem: &&Problem| problem.server.is_some() && problem.severity == Severity::Warning;
        let warnings: Vec<&Problem> = self.setup.loaded.problems.iter().filter(warned).collect();
        match warnings.as_slice() {
            [] => {}
            [only] => front.event(Event::Problem { problem: Problem::clone(only) }),
            several => {
                let message = format!("there are {} warnings about servers", several.len());
                let problem = Problem::warning(message).help("`capstan config check` shows them");
                front.event(Event::Problem { problem });
            }
        }
    }

    /// Gathers a list from all servers.
    pub async fn gather(&self, front: &dyn Interact, listing: Listing, wait: Patience) -> Gathered {
        let waits = "waiting for the servers";
        front.status(waits);
        let total = self.hub.servers().len();
        let mut answered = 0;
        self.hub
            .gather(listing, wait, &mut |_| {
                answered += 1;
                front.status(&format!("{waits} ({answered} of {total} have answered)"));
            })
            .await
    }

    /// Gathers a list from one server, by its slug or display name.
    ///
    /// # Errors
    /// If there is no such server, or it cannot be used.
    pub async fn gather_one(
        &self,
        front: &dyn Interact,
        listing: Listing,
        name: &str,
    ) -> Result<Gathered, AppError> {
        let entry = self.setup.server(name)?;
        let items = read::of_server(self, front, listing, &entry.name).await?;
        let mut gathered = Gathered::default();
        gathered.lists.insert(entry.name.clone(), items);
        Ok(gathered)
    }

    /// The reason why there is nothing to list; `None` if there are servers.
    pub fn none(&self) -> Option<NoServers> {
        match (self.hub.servers().len(), self.switched_off) {
            (0, true) => Some(NoServers::SwitchedOff),
            (0, false) => Some(NoServers::NotConfigured),
            (_, _) => None,
        }
    }

    /// Caches the names of gathered items for completions.
    pub fn remember(&self, kind: Kind, gathered: &Gathered) {
        let Some(names) = &self.names else { return };
        for (server, items) in &gathered.lists {
            let plain = capstan_hub::catalog::names(items).filter(|name| is_plain(name));
            names.remember(kind, server, plain.map(ToOwned::to_owned).collect());
        }
        let of_items = |items: &Arc<[Item]>| {
            let plain = items.iter().filter(|item| is_plain(&item.name));
            plain.map(|item| (item.name.clone(), arguments_of(kind, &item.definition))).collect()
        };
        let lists = gathered.lists.iter();
        let arguments = lists.map(|(server, items)| (server.clone(), of_items(items)));
        names.remember_arguments(kind, arguments.collect());
    }

    /// Completes the value of an argument that is being typed.
    async fn complete(
        &self,
        front: &Arc<dyn Interact>,
        server: &ServerName,
        typing: &Typing,
    ) -> Result<Vec<String>, AppError> {
        front.status(&format!("asking `{server}`"));
        let (session, asker) = (self.hub.session(), Asker::new(front));
        Ok(self.hub.complete(&session, &operator(), (server, typing), &*asker).await?)
    }

    /// True if a word names a tool or prompt rather than a server.
    fn names_item(&self, name: &str) -> bool {
        let is_public = || self.setup.server(name).is_err() && self.hub.may_be_public(name);
        self.hub.id_of(name).is_some() || is_public()
    }

    /// The first of the failed servers that the configuration marks as required.
    pub fn required<'a>(
        &self,
        mut failed: impl Iterator<Item = &'a ServerName>,
    ) -> Option<ServerName> {
        let servers = &self.setup.loaded.config.servers;
        let required = |name: &&ServerName| {
            let server = servers.get(*name).and_then(|entry| entry.usable());
            server.is_some_and(|server| server.required)
        };
        failed.find(required).cloned()
    }
}

/// The caller of an operation: the person whose configuration this is.
pub(crate) fn operator() -> Caller {
    Caller::operator(Front::Cli)
}

/// The names of an item's arguments that a shell can complete.
fn arguments_of(kind: Kind, definition: &Json) -> Vec<String> {
    let names: Vec<String> = match kind {
        Kind::Tool => {
            let properties = object::at_path(definition, "inputSchema.properties");
            let members = properties.and_then(|all| object::members(&all).ok());
            members.unwrap_or_default().into_iter().map(|(name, _)| name).collect()
        }
        Kind::Prompt => {
            let list = object::get(definition, "arguments");
            let items = list.and_then(|list| object::items(&list).ok()).unwrap_or_default();
            items.iter().filter_map(|item| object::get_string(item, "name")).collect()
        }
        Kind::Resource => Vec::new(),
    };
    names.into_iter().filter(|name| is_plain(name)).collect()
}

/// True if a name has only characters that are safe on the command line of every shell.
pub fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:/@-".contains(c);
    !name.is_empty() && name.chars().all(plain)
}
