//! The hub: the configured servers behind the one way in.
//!
//! Every field is private to this crate. A front gets data (names, states, lists) and screened
//! answers; it cannot reach a server or a connection:
//!
//! ```compile_fail,E0616
//! fn reach(hub: &capstan_hub::Hub) {
//!     let _ = hub.servers.values().next();
//! }
//! ```

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, Caller, ItemId, ServerName, Target};
use capstan_policy::Policy;
use futures::future::join_all;
use indexmap::IndexMap;

use crate::catalog::{Alphabet, Catalog, ToolView};
use crate::elicit::OpenQuestions;
use crate::life::Server;
use crate::pipeline::{self, Attempt, Delivery, Screened};
use crate::ports::{AuditLog, Changes, Clock, Item, Listener, Operator};
use crate::told::{self, Explained};
use crate::trace::Tracer;
use crate::{Approvals, Call, Pins, Rates, Session};

/// The servers of one configuration, the rules for calling them, and the ports.
///
/// A hub is never edited. [`HubBuilder`](crate::HubBuilder) makes one.
pub struct Hub {
    /// In the order of the configuration.
    pub(crate) servers: IndexMap<ServerName, Arc<Server>>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) audit: Arc<dyn AuditLog>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) rates: Arc<Rates>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) open_questions: Arc<OpenQuestions>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) pins: Arc<Pins>,
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
}

/// The bounds of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest answer delivered, in bytes.
    pub max_answer: usize,
    /// Calls in one session; `None` for any number.
    pub quota: Option<u32>,
    /// How long a server's question waits for an answer.
    pub question_wait: Duration,
    /// How many questions of servers may be open at once; one peer of several has a quarter.
    pub max_questions: usize,
    /// Whether arguments are written to the audit log.
    pub keep_arguments: Keep,
    /// Which arguments of programs are checked against a tool's schema. Those of people always are,
    /// where they are put together.
    pub check_arguments: Check,
}

/// Whether something is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Not here; the server does it.
    #[default]
    No,
    /// Before anything is sent.
    Yes,
}

/// Whether something is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// No.
    #[default]
    No,
    /// Without what looks like a secret.
    Redacted,
}

// === impl Hub ===

impl Hub {
    /// Runs one call for one caller. The only way to a backend.
    pub async fn call(
        &self,
        session: &Session,
        call: Call,
        operator: Arc<dyn Operator>,
    ) -> Result<Screened, CallError> {
        self.deliver(session, call, operator).await?.whole().await
    }

    /// The same; but a large answer may still be coming, where the operator wishes so.
    pub fn deliver<'a>(
        &'a self,
        session: &'a Session,
        call: Call,
        operator: Arc<dyn Operator>,
    ) -> impl Future<Output = Result<Delivery, CallError>> + Send + 'a {
        Attempt::at_once(self, &call).walk(session, call, operator)
    }

    /// Says what would be decided about a call, and why, without running it.
    pub async fn explain(&self, call: Call) -> Result<Explained, CallError> {
        pipeline::explain(self, call).await
    }

    /// The tool that a name in any spelling stands for; connects to its server, and to no other.
    pub async fn find_tool(&self, caller: &Caller, name: &str) -> Result<ToolView, CallError> {
        let call = Call::new(caller.clone(), Target::tool(name), None);
        let (server, item) = pipeline::find(self, call).await?;
        Ok(self.tool_view(&server, &item))
    }

    /// The prompt that a name in any spelling stands for; connects to its server, and to no other.
    pub async fn find_prompt(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(ItemId, Item), CallError> {
        self.find(caller, Target::prompt(name)).await
    }

    /// The tool or prompt that is meant; connects to its server, and to no other.
    pub async fn find(&self, caller: &Caller, target: Target) -> Result<(ItemId, Item), CallError> {
        let call = Call::new(caller.clone(), target, None);
        let (server, item) = pipeline::find(self, call).await?;
        Ok((ItemId { server, item: item.name.clone() }, item))
    }

    /// Opens the record of a call that its front has still to put together.
    pub fn begin(&self, call: &Call) -> Attempt<'_> {
        Attempt::begin(self, call)
    }

    /// Opens the record of a call whose item its front has still to look for: its name says nothing
    /// about whose it is.
    pub fn begin_search(&self, call: &Call) -> Attempt<'_> {
        Attempt::at_once(self, call)
    }

    /// A new conversation.
    pub fn session(&self) -> Session {
        Session::new(self.limits.quota)
    }

    /// The item that a name in any spelling stands for, if a server of ours fits.
    ///
    /// A server is known by its slug and by the name that the operator gave it. Slugs come first,
    /// so that no display name can take over the id of a listed tool.
    pub fn id_of(&self, name: &str) -> Option<ItemId> {
        let by_slug = ItemId::resolve(name, self.servers.keys());
        by_slug.or_else(|| self.id_by_display(name))
    }

    /// The items that a name may stand for: first the one that was given this name towards clients
    /// and models, then the one that the name spells.
    ///
    /// A target that names its server stands for one item only.
    pub fn ids_of(&self, target: &Target) -> impl Iterator<Item = ItemId> {
        let exact = target.id();
        let is_exact = exact.is_some();
        let by_name = || self.catalog.names.resolve(target.kind, Alphabet::Usual, &target.name);
        // Rarely asked for, and then not the one that was given already.
        let spelled = move || {
            let spelled = if is_exact { None } else { self.id_of(&target.name) };
            spelled.filter(|id| by_name().as_ref() != Some(id))
        };
        let given = exact.or_else(by_name);
        given.into_iter().chain(std::iter::once_with(spelled).flatten())
    }

    /// Whether a name that spells no item may still be that of one: where servers offer their
    /// items by bare or shortened names, only their lists can tell.
    pub fn may_be_public(&self, name: &str) -> bool {
        self.servers.keys().any(|server| self.catalog.names.may_name(server, name))
    }

    /// Ends every connection, all at the same time.
    pub async fn close(&self) {
        join_all(self.servers.values().map(|server| server.close())).await;
    }

    /// The rules.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The rates that limit calls.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// The names, schemas and overrides of listed items.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The questions to operators about calls.
    pub fn approvals(&self) -> &Arc<Approvals> {
        &self.approvals
    }

    /// The approved definitions of tools.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// How many audit entries were lost because they could not be written.
    pub fn lost_entries(&self) -> u64 {
        self.audit.lost()
    }

    /// Sets who is told what servers say that belongs to no call. Only the first call counts.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        self.changes.listen(listener);
    }

    fn id_by_display(&self, name: &str) -> Option<ItemId> {
        told::id_by_display(&self.policy, name, &|slug| self.servers.contains_key(slug))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_answer: 10 * 1024 * 1024,
            quota: None,
            question_wait: Duration::from_mins(2),
            max_questions: 16,
            keep_arguments: Keep::No,
            check_arguments: Check::No,
        }
    }
}
