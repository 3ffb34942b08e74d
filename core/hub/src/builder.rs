//! Builds a hub. The builder does not depend on the configuration; the application translates that.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_model::{ServerName, ServerState};
use capstan_policy::Policy;
use indexmap::IndexMap;

use crate::back_channel::{OpenQuestions, QuestionGate};
use crate::catalog::{Catalog, Facts};
use crate::hub::{Hub, Limits};
use crate::life::{Server, Supervision, Supervisor, Terms};
use crate::own_tools::ToolOffer;
use crate::ports::{AuditLog, Backend, CallerLogins, Changes, Clock};
use crate::spills::Spills;
use crate::trace::Tracer;
use crate::{Approvals, Pins, Rates};

/// The parts of a hub before it is built.
pub struct HubBuilder {
    /// The operator's rules.
    pub policy: Arc<Policy>,
    /// Receives the entry of each finished call.
    pub audit: Arc<dyn AuditLog>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The limits.
    pub limits: Limits,
    /// The rates that limit calls.
    pub rates: Arc<Rates>,
    /// The names, schemas and overrides of listed items.
    pub catalog: Arc<Catalog>,
    /// The open questions of servers.
    pub open_questions: Arc<OpenQuestions>,
    /// Receives server messages that belong to no call.
    pub changes: Arc<Changes>,
    /// The questions to operators about calls.
    pub approvals: Arc<Approvals>,
    /// The approved definitions of tools.
    pub pins: Arc<Pins>,
    /// Traces requests to servers.
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Keeps answers above the limit in tokens.
    pub spills: Option<Arc<Spills>>,
    /// The servers that callers use with accounts of their own.
    pub per_caller: BTreeSet<ServerName>,
    /// Lets callers log in to these.
    pub caller_logins: Option<Arc<dyn CallerLogins>>,
    /// The tools that clients are offered; `None` for all.
    pub offer: Option<Arc<ToolOffer>>,
    servers: IndexMap<ServerName, Slot>,
}

/// A server of the hub to be built.
enum Slot {
    New(Arc<dyn Backend>, Care),
    /// Taken over from the previous hub, with its connection.
    Kept(Arc<Server>),
}

/// The supervision of a new server.
enum Care {
    None,
    Counted(Arc<Supervisor>),
    Full(Arc<Supervisor>, Terms),
}

// === impl HubBuilder ===

impl HubBuilder {
    /// Creates a builder without servers and with defaults for everything else.
    pub fn new(policy: Arc<Policy>, audit: Arc<dyn AuditLog>, clock: Arc<dyn Clock>) -> Self {
        Self {
            policy,
            audit,
            clock,
            limits: Limits::default(),
            rates: Arc::default(),
            catalog: Arc::default(),
            open_questions: Arc::default(),
            changes: Arc::default(),
            approvals: Arc::default(),
            pins: Arc::default(),
            tracer: None,
            spills: None,
            per_caller: BTreeSet::new(),
            caller_logins: None,
            offer: None,
            servers: IndexMap::new(),
        }
    }

    /// Creates a builder for a hub that replaces `before`. It shares everything except the servers,
    /// which are [kept](Self::keep) individually, and cached rulings.
    pub fn after(before: &Hub) -> Self {
        Self {
            policy: Arc::clone(&before.policy),
            audit: Arc::clone(&before.audit),
            clock: Arc::clone(&before.clock),
            limits: before.limits,
            rates: Arc::clone(&before.rates),
            catalog: Arc::clone(&before.catalog),
            open_questions: Arc::clone(&before.gate.open),
            changes: Arc::clone(&before.changes),
            approvals: Arc::clone(&before.approvals),
            pins: Arc::clone(&before.pins),
            tracer: before.tracer.clone(),
            spills: before.spills.clone(),
            per_caller: BTreeSet::new(),
            caller_logins: before.caller_logins.clone(),
            offer: before.offer.clone(),
            servers: IndexMap::new(),
        }
    }

    /// Adds a server. Replaces a server of the same name.
    pub fn add(&mut self, server: Arc<dyn Backend>) {
        self.servers.insert(server.name().clone(), Slot::New(server, Care::None));
    }

    /// Takes over a server of the previous hub, with its connection. Returns false if there is none
    /// of that name.
    pub fn keep(&mut self, before: &Hub, name: &ServerName) -> bool {
        let Some(server) = before.servers.get(name) else { return false };
        self.servers.insert(name.clone(), Slot::Kept(Arc::clone(server)));
        true
    }

    /// Puts servers under supervision, as `how` determines by name and state. Servers kept from the
    /// previous hub are not changed.
    pub fn supervise(
        &mut self,
        supervisor: &Arc<Supervisor>,
        how: impl Fn(&ServerName, &ServerState) -> Supervision,
    ) {
        for (name, slot) in &mut self.servers {
            if let Slot::New(server, supervision) = slot {
                *supervision = match how(name, &server.state()) {
                    Supervision::None => Care::None,
                    Supervision::Counted => Care::Counted(Arc::clone(supervisor)),
                    Supervision::Full(terms) => Care::Full(Arc::clone(supervisor), terms),
                };
            }
        }
    }

    /// The names of the servers added so far.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys()
    }

    /// Builds the hub. Starts nothing.
    pub fn build(self) -> Hub {
        let server = |(name, slot)| match slot {
            Slot::Kept(server) => (name, server),
            Slot::New(server, Care::None) => (name, Server::new(server)),
            Slot::New(server, Care::Counted(by)) => (name, Server::counted(server, &by)),
            Slot::New(server, Care::Full(by, terms)) => {
                (name, Server::supervised(server, &by, terms))
            }
        };
        let gate = QuestionGate {
            policy: Arc::clone(&self.policy),
            clock: Arc::clone(&self.clock),
            audit: Arc::clone(&self.audit),
            limits: self.limits,
            open: self.open_questions,
            screens: Arc::clone(&self.catalog.screens),
        };
        Hub {
            servers: self.servers.into_iter().map(server).collect(),
            policy: self.policy,
            audit: self.audit,
            clock: self.clock,
            limits: self.limits,
            rates: self.rates,
            catalog: self.catalog,
            facts: Facts::default(),
            gate: Arc::new(gate),
            changes: self.changes,
            approvals: self.approvals,
            pins: self.pins,
            tracer: self.tracer,
            spills: self.spills,
            per_caller: self.per_caller,
            caller_logins: self.caller_logins,
            offer: self.offer,
        }
    }
}
