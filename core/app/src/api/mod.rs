//! The typed API: operations on servers, run here or in a running gateway.
//!
//! Each file beside this one is an operation: its parameters, its result and its implementation.
//! `interact` defines the events and questions of a running operation, `reading` gets the lists of
//! servers, `remote` is the form that travels over the control socket.
//!
//! **Invariant:** a result is data. The calling front renders it, so that output does not depend on
//! whether the operation ran here or in a gateway.

mod interact;
mod reading;
mod remote;
mod approvals;
mod changes;
mod list;
mod definitions;
mod get;
mod items;
mod tools;
mod search;
mod call;
mod prompt;
mod read;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_config::{Problem, Severity};
use capstan_hub::catalog::Typing;
use capstan_hub::ports::{BoxFuture, ToolIndex};
use capstan_hub::{Hub, Session};
use capstan_model::{Caller, Front, ServerName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use approvals::{
    AnswerApproval, ApprovalAnswered, KnownApprovals, ListApprovals, OpenApprovals, ShowApproval,
};
pub use call::{CallTool, Called};
pub use changes::{AddServer, Reload, Reloaded, RemoveServer};
pub use definitions::{Definitions, ListDefinitions, ServerDefinitions};
pub use get::GetServer;
pub use interact::{Answer, Ask, CallQuestion, Event, Form, Interact, Misfit, Need, Slot};
pub use items::{Items, ListPrompts, ListResources, ListedItem, Missing};
pub use list::{ListServers, ServerRow, Servers, configured_servers};
pub use prompt::{CompletePrompt, GetPrompt};
pub use read::{CompleteTemplate, ReadResource};
pub use reading::{Provenance, ReadLists, Reading, Source};
pub(crate) use remote::run_in;
pub use remote::{Remote, VERSION, answer, ask_front, tell_front};
pub use search::{FoundRow, FoundTools, SearchTools};
pub use tools::{ListTools, ToolRow, Tools};

pub(crate) use interact::Asker;

use crate::reload::LiveConfig;
use crate::{AppError, HubPurpose, NameCache, Setup, Usage};

/// One operation of the API.
pub trait Operation: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name on the control socket.
    const NAME: &'static str;

    /// The purpose of the hub that it needs.
    const PURPOSE: HubPurpose;

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
    /// The index of tool search.
    pub index: Arc<dyn ToolIndex>,
    /// True if no server may be started.
    pub switched_off: bool,
    /// The configuration of the gateway that this process runs.
    pub gateway: Option<Arc<LiveConfig>>,
    /// The conversation that operations belong to. Without one, each has a session of its own.
    pub conversation: OpenConversation,
}

/// The session of a conversation, if there is one.
#[derive(Default)]
pub struct OpenConversation(Mutex<Option<Arc<Session>>>);

/// The reason why there is nothing to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoServers {
    /// No server may be started.
    SwitchedOff,
    /// No server is configured.
    NotConfigured,
}

// === impl OpenConversation ===

impl OpenConversation {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Local ===

impl Local {
    /// The session of the next operation.
    pub fn session(&self) -> Arc<Session> {
        let open = self.conversation.lock().clone();
        open.unwrap_or_else(|| Arc::new(self.hub.session()))
    }

    /// Begins a conversation: the operations from here on share a session.
    pub fn begin_conversation(&self) {
        *self.conversation.lock() = Some(Arc::new(self.hub.session()));
    }

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

    /// The reason why there is nothing to list; `None` if there are servers.
    pub fn none(&self) -> Option<NoServers> {
        match (self.hub.servers().len(), self.switched_off) {
            (0, true) => Some(NoServers::SwitchedOff),
            (0, false) => Some(NoServers::NotConfigured),
            (_, _) => None,
        }
    }

    /// Completes the value of an argument that is being typed.
    async fn complete(
        &self,
        front: &Arc<dyn Interact>,
        server: &ServerName,
        typing: &Typing,
    ) -> Result<Vec<String>, AppError> {
        front.status(&format!("asking `{server}`"));
        let (session, asker) = (self.session(), Asker::new(front));
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

/// True if a name has only characters that are safe on the command line of every shell.
pub fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:/@-".contains(c);
    !name.is_empty() && name.chars().all(plain)
}
