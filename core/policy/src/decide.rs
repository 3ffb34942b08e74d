//! All engines together: exposure and trust, access, tool policy and authorization, permissions. The
//! strictest wins.

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
use crate::pattern::{Arguments, spellings};
use crate::rules::{
    DefaultRule, Look, OrderedRule, Permissions, Question, Rule, RuleList, RuleTable, Votes,
};

/// Every rule of the configuration over calls, as it is written.
#[derive(Clone, Debug, Default)]
pub struct PolicySource {
    /// The settings of each server.
    pub servers: HashMap<ServerName, ServerPolicy>,
    /// The access tables. Each of several has to agree.
    pub access: Vec<Access>,
    /// The `[tools.policy]` lists.
    pub tools: RuleList,
    /// The `[tools.authorization]` rules. The first that matches decides.
    pub authorization: Vec<OrderedRule>,
    /// The permission rules.
    pub permissions: Permissions,
}

/// Every rule of the configuration over calls, compiled. It does not change any more.
#[derive(Debug, Default)]
pub struct Policy {
    pub(crate) servers: HashMap<ServerName, ServerPolicy>,
    access: Vec<Access>,
    pub(crate) rules: RuleTable,
}

/// What the configuration says of one server's tools.
#[derive(Clone, Debug, Default)]
pub struct ServerPolicy {
    /// The name as the operator wrote it, where that differs from the slug.
    pub display: String,
    /// How far the server is believed.
    pub trust: Trust,
    /// Which tools are offered.
    pub exposure: Exposure,
    /// The operator's word on what tools do.
    pub effects: EffectRules,
    /// What the operator calls tools, by their own names.
    pub new_names: HashMap<String, String>,
}

/// A call as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// What is asked for.
    pub id: &'a ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// With which arguments.
    pub arguments: Arguments<'a>,
    /// What the item does.
    pub effect: Effect,
    /// The time by which rules expire.
    pub now: Timestamp,
    /// What the front says of a call that no rule speaks of.
    pub fallback: DefaultRule,
}

/// One rule on the way to a verdict, for those who ask why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The engine: `exposure`, `access`, `tool_policy`, `authorization` or `permissions`.
    pub engine: &'static str,
    /// The rule as the operator wrote it.
    pub rule: String,
    /// What it says; `None` when it does not speak of this call.
    pub verdict: Option<Verdict>,
}

// === impl PolicySource ===

impl PolicySource {
    /// Compiles the rules into one table.
    pub fn compile(self) -> Policy {
        let Self { servers, access, tools, authorization, permissions } = self;
        Policy { servers, access, rules: RuleTable::new(tools, authorization, permissions) }
    }
}

// === impl Policy ===

impl Policy {
    /// Decides on a call. [`crate::combine`] has the order of the engines.
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

    /// Whether access rules bind this caller, so that what is decided depends on who asks.
    pub fn binds(&self, caller: &Caller) -> bool {
        !self.tables_for(caller).is_empty()
    }

    /// The refusal of whatever a server has, where access rules let this caller do nothing with it.
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

    /// Whether what is decided on an item once holds for ever, whatever the arguments, as long as
    /// access rules do not bind the caller.
    pub fn is_steady(&self) -> bool {
        self.rules.is_steady()
    }

    /// Decides on a call and lists every rule that was looked at, in order.
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

    /// What an item of `server` does, judged by its definition.
    pub fn effect_of(&self, id: &ItemId, kind: Kind, definition: &Json) -> Effect {
        match kind {
            // Reading a resource and filling in a prompt change nothing by their nature.
            Kind::Resource | Kind::Prompt => Effect::Read,
            Kind::Tool => self.classify(id, definition).effect,
        }
    }

    /// What a tool does, judged by its definition, and why.
    pub fn classify(&self, id: &ItemId, definition: &Json) -> Classified {
        match self.servers.get(&id.server) {
            Some(server) => server.effects.classify(&id.item, definition, server.trust),
            None => Classified::unknown(),
        }
    }

    /// How far a server is believed.
    pub fn trust_of(&self, server: &ServerName) -> Trust {
        self.servers.get(server).map(|server| server.trust).unwrap_or_default()
    }

    /// What the rules say of a server's questions to the operator; `None` when they are silent.
    pub fn rule_on_elicitation(&self, server: &ServerName, now: Timestamp) -> Option<Ruling> {
        self.rules.rule_on_elicitation(server, self.display_of(server), now)
    }

    /// The name that the operator gave a server.
    pub(crate) fn display_of<'a>(&'a self, server: &'a ServerName) -> &'a str {
        self.servers.get(server).map_or(server.as_str(), |policy| policy.display.as_str())
    }

    /// Every name that a rule may call an item.
    pub(crate) fn names(&self, id: &ItemId) -> Vec<String> {
        let mut names = spellings(id, self.display_of(&id.server));
        // A server that calls its tool by the id of another's is not taken for that one.
        let is_other = |other: ItemId| other.server != id.server;
        let looks_whole = ["__", ":", "."].iter().any(|between| id.item.contains(between));
        if looks_whole && ItemId::resolve(&id.item, self.servers.keys()).is_some_and(is_other) {
            names.pop();
        }
        names
    }

    /// Looks at every rule.
    fn walk(&self, asked: &Asked<'_>, look: Look<'_>) -> Ruling {
        let names = self.names(asked.id);
        let refused = self.exposure(asked, &names, look);
        if let Some(ruling) = refused.or_else(|| self.access(asked, &names, look)) {
            return ruling;
        }
        self.rules.explain(&asked.question(&names), asked.fallback, look).strictest()
    }

    /// Access: it either refuses or says nothing.
    fn access(&self, asked: &Asked<'_>, names: &[String], look: Look<'_>) -> Option<Ruling> {
        let wanted = asked.wanted(names);
        self.tables_for(asked.caller).iter().find_map(|access| {
            let ruling = access.rule_on(&wanted, &mut |rule, said| look("access", rule, said));
            (ruling.verdict == Verdict::Deny).then_some(ruling)
        })
    }

    /// Exposure and trust: they either refuse or say nothing.
    fn exposure(&self, asked: &Asked<'_>, names: &[String], look: Look<'_>) -> Option<Ruling> {
        let server = self.servers.get(&asked.id.server)?;
        let offered = match (asked.kind, server.trust) {
            (Kind::Tool, trust) => server.exposure.of(names, trust),
            // `expose` lists tools only, so nothing else of such a server is ever listed.
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
