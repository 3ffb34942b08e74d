//! A call that is only told of: what the rules say of it. Nothing is started and nothing is called.
//!
//! The road asks the same way, so that what is explained is what happens.

use capstan_model::{Caller, Effect, Front, ItemId, Kind, Ruling, ServerName};
use capstan_policy::{Arguments, Asked, Policy, Step};
use capstan_wire::{Json, compose};
use jiff::Timestamp;

use crate::pipeline::fallback;

/// A call that somebody tells of: a person, a test, the audit log.
#[derive(Clone, Debug)]
pub struct Told {
    /// Who calls.
    pub caller: Caller,
    /// What is called.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The arguments; those of a resource are its address.
    pub arguments: Json,
    /// What the item does.
    pub effect: Effect,
}

/// What is decided about a call, and why.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What was asked for.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// What it does.
    pub effect: Effect,
    /// The decision.
    pub ruling: Ruling,
    /// Every rule that was looked at, in order.
    pub steps: Vec<Step>,
    /// The rules that would speak of it if it had the right arguments.
    pub by_arguments: Vec<Step>,
}

/// The ways in, as callers are told of. The gateway has two, because access rules bind only those
/// who come over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// A one-shot command.
    Cli,
    /// The interactive terminal.
    Terminal,
    /// The gateway over HTTP.
    Gateway,
    /// The gateway over standard input and output.
    Stdio,
}

// === impl Told ===

impl Told {
    /// A call without arguments.
    pub fn new(caller: Caller, id: ItemId, kind: Kind) -> Self {
        let (arguments, effect) = match kind {
            Kind::Tool => (Json::empty_object(), Effect::Unknown),
            Kind::Prompt => (Json::empty_object(), Effect::Read),
            // As the road has it, where the params of a request are what the rules look at.
            Kind::Resource => {
                let uri = compose::string(&id.item);
                (compose::object(&[(kind.name_key(), &uri)]), Effect::Read)
            }
        };
        Self { caller, id, kind, arguments, effect }
    }

    /// What the rules say of it.
    pub fn explain(self, policy: &Policy, now: Timestamp) -> Explained {
        let asked = self.asked(now);
        let (ruling, steps) = policy.explain(&asked);
        let by_arguments = policy.rules_on_arguments(&asked);
        let Self { id, kind, effect, .. } = self;
        Explained { id, kind, effect, ruling, steps, by_arguments }
    }

    fn asked(&self, now: Timestamp) -> Asked<'_> {
        Asked {
            caller: &self.caller,
            id: &self.id,
            kind: self.kind,
            arguments: Arguments::These(&self.arguments),
            effect: self.effect,
            now,
            fallback: fallback(self.caller.front),
        }
    }
}

// === impl Door ===

impl Door {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cli, Self::Terminal, Self::Gateway, Self::Stdio];

    /// The word on the command line and in files of cases.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Terminal => "terminal",
            Self::Gateway => "gateway",
            Self::Stdio => "stdio",
        }
    }

    /// Somebody who comes in here. Without a name it is whoever usually does: the operator, or at
    /// the gateway somebody who did not say who they are.
    pub fn caller(self, subject: Option<&str>, roles: Vec<String>) -> Caller {
        let usual = match self {
            Self::Cli => Caller::operator(Front::Cli),
            Self::Terminal => Caller::operator(Front::Terminal),
            Self::Gateway => Caller::stranger(None),
            Self::Stdio => Caller::anonymous(),
        };
        let subject = subject.map_or_else(|| usual.subject.clone(), ToOwned::to_owned);
        Caller { subject, roles, ..usual }
    }
}

/// The item that a name in any spelling stands for, among the servers that the rules know of.
///
/// A server is known by its slug and by the name that the operator gave it; slugs come first.
pub fn id_among(policy: &Policy, kind: Kind, name: &str) -> Option<ItemId> {
    let by_slug = ItemId::resolve(name, policy.servers().keys());
    let id = by_slug.or_else(|| id_by_display(policy, name, &|_| true));
    id.map(|id| if kind == Kind::Tool { policy.own_name(id) } else { id })
}

/// The item that is spelled with the display name of a server that is `known`.
pub(crate) fn id_by_display(
    policy: &Policy,
    name: &str,
    known: &dyn Fn(&ServerName) -> bool,
) -> Option<ItemId> {
    let bare = name.strip_prefix("mcp__").unwrap_or(name);
    let fits = |(slug, server): (&ServerName, &capstan_policy::ServerPolicy)| {
        let rest = bare.strip_prefix(server.display.as_str())?;
        let item = ["__", ":", "."].iter().find_map(|separator| rest.strip_prefix(separator))?;
        let named = !server.display.is_empty() && !item.is_empty();
        (named && known(slug)).then(|| (server.display.len(), slug.clone(), item.to_owned()))
    };
    let (_, server, item) = policy.servers().iter().filter_map(fits).max()?;
    Some(ItemId { server, item })
}
