//! Rules that look at arguments: which of them could still decide about a call.

use std::slice::from_ref;

use capstan_model::Verdict;

use crate::decide::{Asked, Policy, Step};
use crate::pattern::Arguments;
use crate::permission::{Question, Rule, RuleList};

/// Engines that look at no arguments: what they deny, no arguments bring back.
const WITHOUT_ARGUMENTS: [&str; 2] = ["exposure", "access"];

/// How far a walk along rules has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// To a rule that speaks whatever the arguments are.
    Rule,
    /// To the end.
    End,
}

/// One list of rules with what they say.
type Stage<'a> = (Verdict, &'a [Rule]);

// === impl Policy ===

impl Policy {
    /// The rules that would speak of this call if it had the right arguments, in the order in which
    /// they are looked at, each with what it says.
    ///
    /// A rule behind one that speaks of the call whatever its arguments is never reached, and is
    /// not among them. So where there is none, arguments change nothing.
    pub fn rules_on_arguments(&self, asked: &Asked<'_>) -> Vec<Step> {
        let (_, steps) = self.explain(asked);
        let denies = |step: &Step| {
            WITHOUT_ARGUMENTS.contains(&step.engine) && step.verdict == Some(Verdict::Deny)
        };
        if steps.iter().any(denies) {
            return Vec::new();
        }
        let names = self.names(asked.id);
        let none = RuleList::default();
        let (tools, global) = (&self.tools, &self.permissions.global);
        let server = self.permissions.servers.get(&asked.id.server).unwrap_or(&none);
        let by_tool_policy: [Stage<'_>; 3] = [
            (Verdict::Deny, &tools.deny),
            (Verdict::Ask, &tools.ask),
            (Verdict::Allow, &tools.allow),
        ];
        let by_permissions: [Stage<'_>; 6] = [
            (Verdict::Deny, &global.deny),
            (Verdict::Deny, &server.deny),
            (Verdict::Ask, &server.ask),
            (Verdict::Allow, &server.allow),
            (Verdict::Ask, &global.ask),
            (Verdict::Allow, &global.allow),
        ];
        let question = Question {
            server: &asked.id.server,
            names: &names,
            // A rule that asks is taken to mean arguments that are not known: so the rules are
            // looked at by all but their matchers.
            arguments: Arguments::Unknown,
            effect: asked.effect,
            now: asked.now,
        };
        let mut found = Vec::new();
        let ordered = self.authorization.iter().map(|one| (one.verdict, from_ref(&one.rule)));
        // Ordered rules come behind the lists, where those say nothing.
        if reached(&question, "tool_policy", by_tool_policy, &mut found) == Reached::End {
            reached(&question, "authorization", ordered, &mut found);
        }
        reached(&question, "permissions", by_permissions, &mut found);
        found
    }
}

/// Adds the rules with matchers up to the first that speaks of the call in any case.
fn reached<'a>(
    question: &Question<'_>,
    engine: &'static str,
    stages: impl IntoIterator<Item = Stage<'a>>,
    found: &mut Vec<Step>,
) -> Reached {
    for (verdict, rules) in stages {
        for rule in rules.iter().filter(|rule| rule.speaks_of(question, Verdict::Ask)) {
            if !rule.pattern.has_matchers() {
                return Reached::Rule;
            }
            found.push(Step { engine, rule: rule.to_string(), verdict: Some(verdict) });
        }
    }
    Reached::End
}

#[cfg(test)]
mod tests {
    use capstan_model::{Caller, Effect, Front, ItemId, Kind};
    use jiff::Timestamp;

    use super::*;
    use crate::exposure::Exposure;
    use crate::pattern::Pattern;
    use crate::permission::DefaultRule;
    use crate::{Rule, ServerPolicy};

    fn rules(place: &str, patterns: &[&str]) -> Vec<Rule> {
        let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), place);
        patterns.iter().map(rule).collect()
    }

    #[track_caller]
    fn check(policy: &Policy, expected: &[&str]) {
        let id = ItemId { server: "gh".parse().unwrap(), item: "create".to_owned() };
        let caller = Caller::operator(Front::Cli);
        let asked = Asked {
            caller: &caller,
            id: &id,
            kind: Kind::Tool,
            arguments: Arguments::Unknown,
            effect: Effect::Unknown,
            now: Timestamp::UNIX_EPOCH,
            fallback: DefaultRule::Always(Verdict::Ask),
        };
        let found = policy.rules_on_arguments(&asked);
        let shown: Vec<&str> = found.iter().map(|step| step.rule.as_str()).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn rules_with_matchers_are_told_as_far_as_they_can_be_reached() {
        let mut policy = Policy::default();
        policy.tools.ask = rules("tools", &["create:a=1", "other:a=1"]);
        policy.permissions.global.deny = rules("deny", &["gh__*:repo=x", "gl__*:repo=x"]);
        policy.permissions.global.allow = rules("allow", &["create:b=1", "*", "create:c=1"]);
        check(&policy, &["tools: create:a=1", "deny: gh__*:repo=x", "allow: create:b=1"]);
        policy.permissions.global.deny.extend(rules("deny", &["create"]));
        check(&policy, &["tools: create:a=1", "deny: gh__*:repo=x"]);
    }

    #[test]
    fn an_expired_rule_is_not_told() {
        let mut policy = Policy::default();
        let mut gone = rules("deny", &["create:a=1"]);
        for rule in &mut gone {
            rule.expires_at = Some(Timestamp::MIN);
        }
        policy.permissions.global.deny = gone;
        check(&policy, &[]);
    }

    #[test]
    fn arguments_do_not_bring_back_what_is_not_offered() {
        let mut policy = Policy::default();
        policy.permissions.global.allow = rules("allow", &["create:a=1"]);
        check(&policy, &["allow: create:a=1"]);
        let exposure = Exposure::new(None, &["create".to_owned()]).unwrap();
        let hidden = ServerPolicy { exposure, ..ServerPolicy::default() };
        policy.servers.insert("gh".parse().unwrap(), hidden);
        check(&policy, &[]);
    }
}
