//! The hub: the configured servers and the only way to call them.
//!
//! Every field is private to this crate. A front gets data (names, states, lists) and screened
//! answers; it cannot reach a server or a connection:
//!
//! ```compile_fail,E0616
//! // `offset_of` compiles only where the field is visible; its type does not matter.
//! const REACHED: usize = std::mem::offset_of!(capstan_hub::Hub, servers);
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, Caller, ItemId, ServerName, Target};
use capstan_policy::Policy;
use futures::future::join_all;
use indexmap::IndexMap;

use crate::back_channel::QuestionGate;
use crate::catalog::{Alphabet, Catalog, Facts, ToolView, Uris};
use crate::explain::{self, Explanation};
use crate::life::Server;
use crate::own_tools::ToolOffer;
use crate::pipeline::{self, Attempt, Delivery, Screened};
use crate::ports::{AuditLog, CallerLogins, Changes, Clock, Item, Listener, ResourceLists};
use crate::spills::Spills;
use crate::trace::Tracer;
use crate::{Approvals, Call, Pins, Rates, Requester, Session};

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
    /// Cached effects and rulings of items. Not shared with other hubs, whose rules may differ.
    pub(crate) facts: Facts,
    pub(crate) gate: Arc<QuestionGate>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) pins: Arc<Pins>,
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    pub(crate) spills: Option<Arc<Spills>>,
    /// The servers that callers use with accounts of their own.
    pub(crate) per_caller: BTreeSet<ServerName>,
    pub(crate) caller_logins: Option<Arc<dyn CallerLogins>>,
    pub(crate) offer: Option<Arc<ToolOffer>>,
}

/// The limits of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of an answer, in bytes.
    pub max_answer: usize,
    /// The number of tokens above which every front gets an answer in pages; `None` leaves it to the
    /// front.
    pub max_tokens: Option<u32>,
    /// The maximum number of calls in one session; `None` for any number.
    pub quota: Option<u32>,
    /// The time after which an unanswered question of a server is declined.
    pub question_wait: Duration,
    /// The maximum number of open questions of servers. If there are several peers, each gets a
    /// quarter.
    pub max_questions: usize,
    /// How long the lists of a gateway wait for a server that was never seen, once for each server.
    pub first_list_wait: Duration,
    /// Controls if arguments are written to the audit log.
    pub keep_arguments: Keep,
    /// Controls if arguments from programs are checked against the tool's schema. Those from people
    /// are always checked, when the call is assembled.
    pub check_arguments: Check,
}

/// A choice whether to check arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Not checked here; the server checks them.
    #[default]
    No,
    /// Checked before anything is sent.
    Yes,
}

/// A choice whether to store arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Not stored.
    #[default]
    No,
    /// Stored, with values that look like secrets masked.
    Redacted,
}

// === impl Hub ===

impl Hub {
    /// Runs one call and waits for its complete answer. Calls reach a server only through the
    /// pipeline.
    pub fn call<'a>(
        &'a self,
        session: &'a Session,
        call: Call,
        requester: Requester<'a>,
    ) -> impl Future<Output = Result<Screened, CallError>> + Send + 'a {
        let delivery = self.deliver(session, call, requester);
        async move { delivery.await?.whole().await }
    }

    /// Runs one call. A large answer may still be arriving if the client accepts that.
    ///
    /// The record of the call is open from here on: dropping the future records an abandoned call,
    /// also if it never ran.
    pub fn deliver<'a>(
        &'a self,
        session: &'a Session,
        call: Call,
        requester: Requester<'a>,
    ) -> impl Future<Output = Result<Delivery, CallError>> + Send + 'a {
        Attempt::at_once(self, &call).walk(session, call, requester)
    }

    /// Explains the decision about a call without running it.
    pub async fn explain(&self, call: Call) -> Result<Explanation, CallError> {
        pipeline::explain(self, call).await
    }

    /// Finds a tool by its name in any spelling. Connects to its server only.
    pub async fn find_tool(&self, caller: &Caller, name: &str) -> Result<ToolView, CallError> {
        let call = Call::new(caller.clone(), Target::tool(name), None);
        let (server, item) = pipeline::find(self, call).await?;
        Ok(self.tool_view(&server, &item))
    }

    /// Finds a prompt by its name in any spelling. Connects to its server only.
    pub async fn find_prompt(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(ItemId, Item), CallError> {
        self.find(caller, Target::prompt(name)).await
    }

    /// Finds the tool or prompt that `target` names. Connects to its server only.
    pub async fn find(&self, caller: &Caller, target: Target) -> Result<(ItemId, Item), CallError> {
        let call = Call::new(caller.clone(), target, None);
        let (server, item) = pipeline::find(self, call).await?;
        Ok((ItemId { server, item: item.name.clone() }, item))
    }

    /// Finds the resource that `caller` knows by this URI. Connects to no server by itself.
    ///
    /// # Errors
    /// When there is no such resource.
    pub async fn find_resource(
        &self,
        caller: &Caller,
        uri: &str,
        resources: &dyn ResourceLists,
    ) -> Result<ItemId, CallError> {
        pipeline::by_uri(self, caller, uri, resources).await
    }

    /// The map of URIs for a requester who sees several servers as one.
    pub(crate) fn merged_uris(&self, requester: &Requester<'_>) -> Option<&Arc<Uris>> {
        (requester.merged && self.servers.len() > 1).then_some(&self.catalog.uris)
    }

    /// Opens the record of a call that its front has yet to assemble.
    pub fn begin(&self, call: &Call) -> Attempt<'_> {
        Attempt::begin(self, call)
    }

    /// Opens the record of a call whose item its front has yet to look up. The name does not
    /// identify the server.
    pub fn begin_search(&self, call: &Call) -> Attempt<'_> {
        Attempt::at_once(self, call)
    }

    /// Creates a session.
    pub fn session(&self) -> Session {
        Session::new(self.limits.quota)
    }

    /// Returns the item that a name in any spelling stands for, if it matches a server of this hub.
    ///
    /// A server has a slug and the display name that the operator gave it. Slugs are tried first,
    /// so that no display name can take over the id of a listed tool.
    pub fn id_of(&self, name: &str) -> Option<ItemId> {
        let by_slug = ItemId::resolve(name, self.servers.keys());
        by_slug.or_else(|| self.id_by_display(name))
    }

    /// Returns the items that a name may stand for. The item with this public name comes first,
    /// then the one that the name spells.
    ///
    /// A target that names its server stands for exactly one item.
    pub fn ids_of(&self, target: &Target) -> impl Iterator<Item = ItemId> {
        let exact = target.id();
        let is_exact = exact.is_some();
        let by_name = || self.catalog.names.resolve(target.kind, Alphabet::Usual, &target.name);
        // Lazy because it is rarely needed. Skips the item that `by_name` returned already.
        let spelled = move || {
            let spelled = if is_exact { None } else { self.id_of(&target.name) };
            spelled.filter(|id| by_name().as_ref() != Some(id))
        };
        let given = exact.or_else(by_name);
        given.into_iter().chain(std::iter::once_with(spelled).flatten())
    }

    /// True if a name that spells no item may still be a public name. If servers offer their items
    /// by bare or shortened names, only their lists can tell.
    pub fn may_be_public(&self, name: &str) -> bool {
        self.servers.keys().any(|server| self.catalog.names.may_name(server, name))
    }

    /// Closes all connections concurrently.
    pub async fn close(&self) {
        join_all(self.servers.values().map(|server| server.close())).await;
    }

    /// The rules.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The limits.
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

    /// The long answers that are kept, if they are.
    pub fn spills(&self) -> Option<&Arc<Spills>> {
        self.spills.as_ref()
    }

    /// The number of audit entries that were lost because they could not be written.
    pub fn lost_entries(&self) -> u64 {
        self.audit.lost()
    }

    /// Sets the listener for server messages that belong to no call. Only the first call has an
    /// effect.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        self.changes.listen(listener);
    }

    fn id_by_display(&self, name: &str) -> Option<ItemId> {
        explain::id_by_display(&self.policy, name, &|slug| self.servers.contains_key(slug))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_answer: 10 * 1024 * 1024,
            max_tokens: None,
            quota: None,
            question_wait: Duration::from_mins(2),
            max_questions: 16,
            first_list_wait: Duration::from_secs(8),
            keep_arguments: Keep::No,
            check_arguments: Check::No,
        }
    }
}
