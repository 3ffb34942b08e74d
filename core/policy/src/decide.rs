//! Decides on calls with all engines.
//!
//! The engines are exposure and trust, access, tool policy and authorization, and permissions. The
//! strictest verdict wins.

use std::collections::HashMap;

use capstan_model::{
    Binding, By, Caller, Effect, ItemId, Kind, Ruling, ServerName, Trust, Verdict,
};
use capstan_wire::Json;
use jiff::Timestamp;
use serde::Serialize;

use crate::access::{Access, Wanted};
use crate::combine::{Tie, tighten};
use crate::effect::{Classified, EffectRules};
use crate::exposure::{Exposure, Offered};
use crate::flows::{FlowRules, TagRules, TaggedItem, Tags};
use crate::pattern::{Arguments, spellings};
use crate::rules::{
    DefaultRule, Look, OrderedRule, Permissions, Question, Rule, RuleList, RuleTable, Votes,
};

/// Every rule of the configuration over calls, as written.
#[derive(Clone, Debug, Default)]
pub struct PolicySource {
    /// The settings of each server.
    pub servers: HashMap<ServerName, ServerPolicy>,
    /// The access tables. With several tables, each must allow a call.
    pub access: Vec<Access>,
    /// The `[tools.policy]` lists.
    pub tools: RuleList,
    /// The `[tools.authorization]` rules. The first that matches decides.
    pub authorization: Vec<OrderedRule>,
    /// The permission rules.
    pub permissions: Permissions,
    /// The rules about flows.
    pub flows: FlowRules,
}

/// Every rule of the configuration over calls, compiled and immutable.
#[derive(Debug, Default)]
pub struct Policy {
    pub(crate) servers: HashMap<ServerName, ServerPolicy>,
    access: Vec<Access>,
    flows: FlowRules,
    pub(crate) rules: RuleTable,
}

/// The policy settings of one server.
#[derive(Clone, Debug, Default)]
pub struct ServerPolicy {
    /// The name as the operator wrote it, where that differs from the slug.
    pub display: String,
    /// The trust in the server.
    pub trust: Trust,
    /// The tools that are offered.
    pub exposure: Exposure,
    /// The operator's declarations of tools' effects.
    pub effects: EffectRules,
    /// New names of tools, by their own names.
    pub new_names: HashMap<String, String>,
    /// The operator's tags of items.
    pub tags: TagRules,
}

/// A call, as input of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The item.
    pub id: &'a ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The arguments.
    pub arguments: Arguments<'a>,
    /// The effect of the item.
    pub effect: Effect,
    /// The time by which rules expire.
    pub now: Timestamp,
    /// The front's default for a call that no rule matches.
    pub fallback: DefaultRule,
}

/// One rule that was consulted for a verdict, for explanations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The engine: `exposure`, `access`, `tool_policy`, `authorization` or `permissions`.
    pub engine: &'static str,
    /// The rule as the operator wrote it.
    pub rule: String,
    /// The verdict of the rule; `None` if it does not match this call.
    pub verdict: Option<Verdict>,
}

// === impl PolicySource ===

impl PolicySource {
    /// Compiles the rules into one table.
    pub fn compile(self) -> Policy {
        let Self { servers, access, tools, authorization, permissions, flows } = self;
        let rules = RuleTable::new(tools, authorization, permissions);
        Policy { servers, access, flows, rules }
    }
}

// === impl Policy ===

impl Policy {
    /// Decides on a call. [`crate::combine`] documents the order of the engines.
    pub fn decide(&self, asked: &Asked<'_>) -> Ruling {
        let names = self.names(asked.id);
        let refused = self.exposure(asked, &names, &mut |_, _, _| {});
        let refused = refused.or_else(|| {
            let wanted = asked.wanted(&names);
            self.tables_for(asked.caller).iter().find_map(|access| access.refusal(&wanted))
        });
        let by_own_name = refused.unwrap_or_else(|| {
            self.rules.decide(&asked.question(&names), asked.fallback).strictest()
        });
        self.tightened_by_new_name(asked, by_own_name)
    }

    /// The settings of each server.
    pub fn servers(&self) -> &HashMap<ServerName, ServerPolicy> {
        &self.servers
    }

    /// Every rule over calls, in no particular order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.rules()
    }

    /// True if access rules bind this caller, so that decisions depend on the caller.
    pub fn binds(&self, caller: &Caller) -> bool {
        !self.tables_for(caller).is_empty()
    }

    /// The refusal of all items of a server, if access rules allow this caller none of them.
    pub fn out_of_reach(&self, caller: &Caller, server: &ServerName) -> Option<Ruling> {
        self.tables_for(caller).iter().find_map(|access| access.out_of_reach(caller, server))
    }

    /// The access tables that bind a caller.
    pub(crate) fn tables_for(&self, caller: &Caller) -> &[Access] {
        match caller.binding {
            Binding::Free => &[],
            Binding::Access => &self.access,
        }
    }

    /// True if a decision on an item never changes, for any arguments.
    ///
    /// This holds only for callers that are not bound by access rules.
    pub fn is_steady(&self) -> bool {
        self.rules.is_steady()
    }

    /// Decides on a call and lists every rule that was consulted, in order.
    pub fn explain(&self, asked: &Asked<'_>) -> (Ruling, Vec<Step>) {
        let mut steps = Vec::new();
        let ruling = self.walk(asked, &mut |engine, rule, verdict| {
            steps.push(Step { engine, rule: rule.to_string(), verdict });
        });
        let strictest = self.tightened_by_new_name(asked, ruling.clone());
        if strictest != ruling {
            let Ruling { verdict, rule, .. } = strictest.clone();
            steps.push(Step { engine: "permissions", rule, verdict: Some(verdict) });
        }
        (strictest, steps)
    }

    /// The effect of an item, judged by its definition.
    pub fn effect_of(&self, id: &ItemId, kind: Kind, definition: &Json) -> Effect {
        match kind {
            // Reading a resource or filling in a prompt changes nothing by its nature.
            Kind::Resource | Kind::Prompt => Effect::Read,
            Kind::Tool => self.classify(id, definition).effect,
        }
    }

    /// The effect of a tool, judged by its definition, and the reason.
    pub fn classify(&self, id: &ItemId, definition: &Json) -> Classified {
        match self.servers.get(&id.server) {
            Some(server) => server.effects.classify(&id.item, definition, server.trust),
            None => Classified::unknown(),
        }
    }

    /// The rules about flows.
    pub fn flows(&self) -> FlowRules {
        self.flows
    }

    /// The tags of an item, by which flows are judged.
    pub fn tags_of(&self, id: &ItemId, kind: Kind, definition: &Json, effect: Effect) -> Tags {
        let Some(server) = self.servers.get(&id.server) else { return Tags::NONE };
        let item = TaggedItem { id, kind, definition, effect, trust: server.trust };
        server.tags.of(&item, self.display_of(&id.server))
    }

    /// The trust in a server.
    pub fn trust_of(&self, server: &ServerName) -> Trust {
        self.servers.get(server).map(|server| server.trust).unwrap_or_default()
    }

    /// The ruling on a server's questions to the operator; `None` if no rule matches.
    pub fn rule_on_elicitation(&self, server: &ServerName, now: Timestamp) -> Option<Ruling> {
        self.rules.rule_on_elicitation(server, self.display_of(server), now)
    }

    /// The operator's name for a server.
    pub(crate) fn display_of<'a>(&'a self, server: &'a ServerName) -> &'a str {
        self.servers.get(server).map_or(server.as_str(), |policy| policy.display.as_str())
    }

    /// Every name of an item that a rule may use.
    pub(crate) fn names(&self, id: &ItemId) -> Vec<String> {
        let mut names = spellings(id, self.display_of(&id.server));
        // A tool whose name is the id of another server's tool must not match that id.
        let is_other = |other: ItemId| other.server != id.server;
        let looks_whole = ["__", ":", "."].iter().any(|between| id.item.contains(between));
        if looks_whole && ItemId::resolve(&id.item, self.servers.keys()).is_some_and(is_other) {
            names.pop();
        }
        names
    }

    /// Consults every rule.
    fn walk(&self, asked: &Asked<'_>, look: Look<'_>) -> Ruling {
        let names = self.names(asked.id);
        let refused = self.exposure(asked, &names, look);
        if let Some(ruling) = refused.or_else(|| self.access(asked, &names, look)) {
            return ruling;
        }
        self.rules.explain(&asked.question(&names), asked.fallback, look).strictest()
    }

    /// Access: returns a refusal or nothing.
    fn access(&self, asked: &Asked<'_>, names: &[String], look: Look<'_>) -> Option<Ruling> {
        let wanted = asked.wanted(names);
        self.tables_for(asked.caller).iter().find_map(|access| {
            let ruling = access.rule_on(&wanted, &mut |rule, said| look("access", rule, said));
            (ruling.verdict == Verdict::Deny).then_some(ruling)
        })
    }

    /// Exposure and trust: return a refusal or nothing.
    fn exposure(&self, asked: &Asked<'_>, names: &[String], look: Look<'_>) -> Option<Ruling> {
        let server = self.servers.get(&asked.id.server)?;
        let offered = match (asked.kind, server.trust) {
            (Kind::Tool, trust) => server.exposure.of(names, trust),
            // `expose` lists tools only, so a sandboxed server offers nothing else.
            (Kind::Resource | Kind::Prompt, Trust::Sandboxed) => {
                Offered::No("trust: sandboxed".to_owned())
            }
            (Kind::Resource | Kind::Prompt, Trust::Trusted | Trust::Untrusted) => Offered::Yes,
        };
        let name = &asked.id.server;
        match offered {
            Offered::Yes => {
                look("exposure", &format_args!("servers.{name}: offered"), None);
                None
            }
            Offered::No(line) => {
                let rule = format!("servers.{name}.{line}");
                look("exposure", &rule, Some(Verdict::Deny));
                Some(Ruling { verdict: Verdict::Deny, rule, by: By::Rule })
            }
        }
    }
}

// === impl Asked ===

impl<'a> Asked<'a> {
    pub(crate) fn wanted(&self, names: &'a [String]) -> Wanted<'a> {
        let Self { caller, id, kind, effect, .. } = *self;
        Wanted { caller, id, kind, effect, names }
    }

    pub(crate) fn question(&self, names: &'a [String]) -> Question<'a> {
        Question {
            server: &self.id.server,
            names,
            arguments: self.arguments,
            effect: self.effect,
            now: self.now,
        }
    }
}

// === impl Votes ===

impl Votes {
    pub(crate) fn strictest(self) -> Ruling {
        tighten(self.by_permissions, self.by_tools, Tie::KeepsRule)
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
