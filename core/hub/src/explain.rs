//! A call that is described and not made: the decision of the rules about it. Starts and calls
//! nothing.
//!
//! The pipeline queries the rules in the same way, so that an explanation matches the real
//! decision.

use capstan_model::{Caller, Effect, Front, ItemId, Kind, Ruling, ServerName};
use capstan_policy::{Arguments, Asked, Policy, Step, Tags};
use capstan_wire::{Json, compose};
use jiff::Timestamp;

use crate::pipeline::fallback;

/// A call as described by a person, a test or the audit log.
#[derive(Clone, Debug)]
pub struct DescribedCall {
    /// The caller.
    pub caller: Caller,
    /// The item.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The arguments; for a resource, its URI.
    pub arguments: Json,
    /// The effect of the item.
    pub effect: Effect,
}

/// The decision about a call, with the rules that led to it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The item.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The effect of the item.
    pub effect: Effect,
    /// The resulting ruling.
    pub ruling: Ruling,
    /// Every rule that was considered, in order.
    pub steps: Vec<Step>,
    /// The rules that would match with the right arguments.
    pub by_arguments: Vec<Step>,
    /// The tags that flows are judged by; none if no rule is about flows.
    pub tags: Tags,
    /// The rules about flows that could match in a conversation.
    pub by_flows: Vec<Step>,
}

/// The entry point of a described call. The gateway has two, because access rules bind only callers
/// over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPoint {
    /// A one-shot command.
    Cli,
    /// The interactive terminal.
    Terminal,
    /// The gateway over HTTP.
    Gateway,
    /// The gateway over standard input and output.
    Stdio,
}

// === impl DescribedCall ===

impl DescribedCall {
    /// Describes a call without arguments.
    pub fn new(caller: Caller, id: ItemId, kind: Kind) -> Self {
        let (arguments, effect) = match kind {
            Kind::Tool => (Json::empty_object(), Effect::Unknown),
            Kind::Prompt => (Json::empty_object(), Effect::Read),
            // As in the pipeline, where the rules examine the params of the request.
            Kind::Resource => {
                let uri = compose::string(&id.item);
                (compose::object(&[(kind.name_key(), &uri)]), Effect::Read)
            }
        };
        Self { caller, id, kind, arguments, effect }
    }

    /// Returns the decision of the rules about the call.
    pub fn explain(self, policy: &Policy, now: Timestamp) -> Explanation {
        let asked = self.asked(now);
        let (ruling, steps) = policy.explain(&asked);
        let by_arguments = policy.rules_on_arguments(&asked);
        let Self { id, kind, effect, .. } = self;
        let (tags, by_flows) = (Tags::NONE, Vec::new());
        Explanation { id, kind, effect, ruling, steps, by_arguments, tags, by_flows }
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

// === impl EntryPoint ===

impl EntryPoint {
    /// All entry points.
    pub const ALL: [Self; 4] = [Self::Cli, Self::Terminal, Self::Gateway, Self::Stdio];

    /// The name on the command line and in files of test cases.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Terminal => "terminal",
            Self::Gateway => "gateway",
            Self::Stdio => "stdio",
        }
    }

    /// Creates a caller at this entry point. Without a subject it is the usual one: the operator,
    /// or at the gateway a caller without an identity.
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

/// Returns the item that a name in any spelling stands for, among the servers in the policy.
///
/// A server has a slug and the display name that the operator gave it; slugs are tried first.
pub fn id_among(policy: &Policy, kind: Kind, name: &str) -> Option<ItemId> {
    let by_slug = ItemId::resolve(name, policy.servers().keys());
    let id = by_slug.or_else(|| id_by_display(policy, name, &|_| true));
    id.map(|id| if kind == Kind::Tool { policy.own_name(id) } else { id })
}

/// Returns the item that is spelled with the display name of a server that is `known`.
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
