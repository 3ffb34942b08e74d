//! Finds the rules with argument matchers that could still decide about a call.

use capstan_model::Verdict;

use super::order::Vote;
use super::rule::Question;
use super::table::Row;
use crate::decide::{Asked, Policy, Step};
use crate::pattern::Arguments;

/// Engines that ignore arguments: no arguments can undo their refusal.
const WITHOUT_ARGUMENTS: [&str; 2] = ["exposure", "access"];

// === impl Policy ===

impl Policy {
    /// The rules that would match this call with the right arguments, with their verdicts.
    ///
    /// They are in the order in which they are consulted.
    ///
    /// A rule after one that matches the call for any arguments is never reached, and is not
    /// included. So if the list is empty, arguments change nothing.
    pub fn rules_on_arguments(&self, asked: &Asked<'_>) -> Vec<Step> {
        let (_, steps) = self.explain(asked);
        let denies = |step: &Step| {
            WITHOUT_ARGUMENTS.contains(&step.engine) && step.verdict == Some(Verdict::Deny)
        };
        if steps.iter().any(denies) {
            return Vec::new();
        }
        let names = self.names(asked.id);
        // With unknown arguments and the verdict `Ask`, rules match regardless of their argument
        // matchers.
        let question = Question { arguments: Arguments::Unknown, ..asked.question(&names) };
        let (mut found, mut decided) = (Vec::new(), Vec::new());
        let rows = self.rules.numbers_for(question.server);
        for row in rows.filter_map(|number| self.rules.rows().get(number)) {
            let Row { engine, verdict, rule, .. } = row;
            let vote: Vote = engine.vote();
            if decided.contains(&vote) || !rule.matches(&question, Verdict::Ask) {
                continue;
            }
            if rule.pattern.has_matchers() {
                let (engine, rule) = (engine.as_str(), rule.to_string());
                found.push(Step { engine, rule, verdict: Some(*verdict) });
            } else {
                decided.push(vote);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::{Caller, Effect, Front, ItemId, Kind};
    use jiff::Timestamp;

    use super::*;
    use crate::exposure::Exposure;
    use crate::pattern::Pattern;
    use crate::rules::{DefaultRule, Rule};
    use crate::{PolicySource, ServerPolicy};

    fn rules(place: &str, patterns: &[&str]) -> Vec<Rule> {
        let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), place);
        patterns.iter().map(rule).collect()
    }

    #[track_caller]
    fn check(policy: &PolicySource, expected: &[&str]) {
        let policy = policy.clone().compile();
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
        let mut policy = PolicySource::default();
        policy.tools.ask = rules("tools", &["create:a=1", "other:a=1"]);
        policy.permissions.global.deny = rules("deny", &["gh__*:repo=x", "gl__*:repo=x"]);
        policy.permissions.global.allow = rules("allow", &["create:b=1", "*", "create:c=1"]);
        check(&policy, &["tools: create:a=1", "deny: gh__*:repo=x", "allow: create:b=1"]);
        policy.permissions.global.deny.extend(rules("deny", &["create"]));
        check(&policy, &["tools: create:a=1", "deny: gh__*:repo=x"]);
    }

    #[test]
    fn an_expired_rule_is_not_told() {
        let mut policy = PolicySource::default();
        let mut gone = rules("deny", &["create:a=1"]);
        for rule in &mut gone {
            rule.expires_at = Some(Timestamp::MIN);
        }
        policy.permissions.global.deny = gone;
        check(&policy, &[]);
    }

    #[test]
    fn arguments_do_not_bring_back_what_is_not_offered() {
        let mut policy = PolicySource::default();
        policy.permissions.global.allow = rules("allow", &["create:a=1"]);
        check(&policy, &["allow: create:a=1"]);
        let exposure = Exposure::new(None, &["create".to_owned()]).unwrap();
        let hidden = ServerPolicy { exposure, ..ServerPolicy::default() };
        policy.servers.insert("gh".parse().unwrap(), hidden);
        check(&policy, &[]);
    }
}
