//! All engines together: exposure and trust, tool policy, permissions. The strictest wins.

use std::collections::HashMap;
use std::fmt;

use capstan_model::{Effect, ItemId, Kind, Ruling, ServerName, Trust, Verdict};
use capstan_wire::Json;
use jiff::Timestamp;
use serde::Serialize;

use crate::effect::{Classified, EffectRules};
use crate::exposure::{Exposure, Offered};
use crate::pattern::{Arguments, spellings};
use crate::permission::{DefaultRule, Permissions, Question, RuleList};

/// Every rule of the configuration that speaks of calls.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// What is said of each server.
    pub servers: HashMap<ServerName, ServerPolicy>,
    /// The `[tools.policy]` lists.
    pub tools: RuleList,
    /// The permission rules.
    pub permissions: Permissions,
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
}

/// A call as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
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
    /// The engine: `exposure`, `tool_policy` or `permissions`.
    pub engine: &'static str,
    /// The rule as the operator wrote it.
    pub rule: String,
    /// What it says; `None` when it does not speak of this call.
    pub verdict: Option<Verdict>,
}

/// Is told of every rule looked at: its engine, the rule, and its verdict when it matched.
type Look<'a> = &'a mut dyn FnMut(&'static str, &dyn fmt::Display, Option<Verdict>);

// === impl Policy ===

impl Policy {
    /// Decides on a call.
    pub fn decide(&self, asked: &Asked<'_>) -> Ruling {
        self.walk(asked, &mut |_, _, _| {})
    }

    /// Whether what is decided on an item once holds for ever, whatever the arguments.
    pub fn is_steady(&self) -> bool {
        self.tools.is_steady() && self.permissions.is_steady()
    }

    /// Decides on a call and lists every rule that was looked at, in order.
    pub fn explain(&self, asked: &Asked<'_>) -> (Ruling, Vec<Step>) {
        let mut steps = Vec::new();
        let ruling = self.walk(asked, &mut |engine, rule, verdict| {
            steps.push(Step { engine, rule: rule.to_string(), verdict });
        });
        (ruling, steps)
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
        self.permissions.rule_on_elicitation(server, self.display_of(server), now)
    }

    /// The name that the operator gave a server.
    fn display_of<'a>(&'a self, server: &'a ServerName) -> &'a str {
        self.servers.get(server).map_or(server.as_str(), |policy| policy.display.as_str())
    }

    fn walk(&self, asked: &Asked<'_>, look: Look<'_>) -> Ruling {
        let names = spellings(asked.id, self.display_of(&asked.id.server));
        if let Some(ruling) = self.exposure(asked, &names, look) {
            return ruling;
        }
        let question = Question {
            server: &asked.id.server,
            names: &names,
            arguments: asked.arguments,
            effect: asked.effect,
            now: asked.now,
        };
        let by_tool_policy =
            self.tools.rule_on(&question, &mut |rule, said| look("tool_policy", rule, said));
        let by_permissions =
            self.permissions.rule_on(&question, asked.fallback, &mut |rule, said| {
                look("permissions", rule, said);
            });
        match by_tool_policy {
            Some(ruling) if ruling.verdict > by_permissions.verdict => ruling,
            Some(_) | None => by_permissions,
        }
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
                Some(Ruling { verdict: Verdict::Deny, rule })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::permission::Rule;

    fn rules(place: &str, patterns: &[&str]) -> Vec<Rule> {
        let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), place);
        patterns.iter().map(rule).collect()
    }

    fn policy() -> Policy {
        let hide = ["secret_*".to_owned()];
        let server = ServerPolicy {
            display: "Files".to_owned(),
            exposure: Exposure::new(None, &hide).unwrap(),
            ..ServerPolicy::default()
        };
        let mut policy = Policy::default();
        policy.servers.insert("files".parse().unwrap(), server);
        policy.tools.deny = rules("tools.policy.deny", &["files__drop"]);
        policy.tools.ask = rules("tools.policy.ask", &["files__move"]);
        policy.permissions.global.allow = rules("permissions.allow", &["*"]);
        policy.permissions.global.deny = rules("permissions.deny", &["Files:wipe"]);
        policy
    }

    fn explain(tool: &str) -> (Ruling, Vec<Step>) {
        explain_under(&policy(), Kind::Tool, tool)
    }

    fn explain_under(policy: &Policy, kind: Kind, item: &str) -> (Ruling, Vec<Step>) {
        let id = ItemId { server: "files".parse().unwrap(), item: item.to_owned() };
        let asked = Asked {
            id: &id,
            kind,
            arguments: Arguments::Unknown,
            effect: Effect::Unknown,
            now: Timestamp::UNIX_EPOCH,
            fallback: DefaultRule::Always(Verdict::Ask),
        };
        let (ruling, steps) = policy.explain(&asked);
        assert_eq!(policy.decide(&asked), ruling, "explaining must not change the verdict");
        (ruling, steps)
    }

    #[test]
    fn a_sandboxed_server_gives_no_resources_and_no_prompts_whatever_a_rule_allows() {
        let expose = ["*".to_owned()];
        let with_trust = |trust| {
            let mut policy = policy();
            for server in policy.servers.values_mut() {
                server.trust = trust;
                server.exposure = Exposure::new(Some(&expose), &[]).unwrap();
            }
            policy.permissions.global.allow = rules("permissions.allow", &["*", "greet"]);
            policy
        };
        for (kind, item) in [(Kind::Resource, "file:///notes"), (Kind::Prompt, "greet")] {
            let ruling = explain_under(&with_trust(Trust::Sandboxed), kind, item).0;
            let rule = "servers.files.trust: sandboxed".to_owned();
            assert_eq!(ruling, Ruling { verdict: Verdict::Deny, rule });
            for trust in [Trust::Untrusted, Trust::Trusted] {
                let ruling = explain_under(&with_trust(trust), kind, item).0;
                assert_eq!(ruling.verdict, Verdict::Allow, "{trust:?} {kind:?}");
            }
        }
        let tool = explain_under(&with_trust(Trust::Sandboxed), Kind::Tool, "read").0;
        assert_eq!(tool.verdict, Verdict::Allow);
    }

    #[test]
    fn what_is_hidden_by_its_full_id_stays_hidden() {
        for pattern in ["files__read", "mcp__files__read", "Files:read", "read"] {
            let mut policy = policy();
            for server in policy.servers.values_mut() {
                server.exposure = Exposure::new(None, &[pattern.to_owned()]).unwrap();
            }
            let ruling = explain_under(&policy, Kind::Tool, "read").0;
            assert_eq!(ruling.rule, format!("servers.files.hide: {pattern}"));
            assert_eq!(explain_under(&policy, Kind::Tool, "reads").0.verdict, Verdict::Allow);
        }
    }

    #[test]
    fn the_strictest_engine_wins() {
        let table = [
            ("read", Verdict::Allow, "permissions.allow: *"),
            ("move", Verdict::Ask, "tools.policy.ask: files__move"),
            ("drop", Verdict::Deny, "tools.policy.deny: files__drop"),
            ("wipe", Verdict::Deny, "permissions.deny: Files:wipe"),
            ("secret_key", Verdict::Deny, "servers.files.hide: secret_*"),
        ];
        for (tool, verdict, rule) in table {
            assert_eq!(explain(tool).0, Ruling { verdict, rule: rule.to_owned() }, "{tool}");
        }
    }

    #[test]
    fn every_rule_looked_at_is_told_in_order() {
        let steps: Vec<String> = explain("move")
            .1
            .iter()
            .map(|step| format!("{} {} {:?}", step.engine, step.rule, step.verdict))
            .collect();
        assert_eq!(
            steps,
            [
                "exposure servers.files: offered None",
                "tool_policy tools.policy.deny: files__drop None",
                "tool_policy tools.policy.ask: files__move Some(Ask)",
                "permissions permissions.deny: Files:wipe None",
                "permissions permissions.allow: * Some(Allow)",
            ]
        );
    }
}
