//! The time at which rules next change what a caller is shown.

use capstan_policy::Policy;
use jiff::Timestamp;

use crate::hub::Hub;

impl Hub {
    /// Returns when the next rule expires, which may change what is shown; `None` if no rule
    /// expires.
    pub fn rules_change_at(&self) -> Option<Timestamp> {
        next_end(&self.policy, self.clock.now())
    }
}

fn next_end(policy: &Policy, now: Timestamp) -> Option<Timestamp> {
    policy.rules().filter_map(|rule| rule.expires_at).filter(|end| *end > now).min()
}

#[cfg(test)]
mod tests {
    use capstan_policy::{Pattern, PolicySource, Rule, RuleList};

    use super::*;

    #[test]
    fn the_next_rule_to_end_counts_wherever_it_stands() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let rule = |second| {
            let rule = Rule::new(Pattern::parse("*").unwrap(), "x");
            Rule { expires_at: Some(at(second)), ..rule }
        };
        assert_eq!(next_end(&Policy::default(), at(0)), None);
        let mut policy = PolicySource::default();
        policy.permissions.global.allow = vec![rule(30), rule(5)];
        policy.permissions.global.deny = vec![Rule::new(Pattern::parse("*").unwrap(), "x")];
        policy.tools.ask = vec![rule(20)];
        let of_one = RuleList { deny: vec![rule(10)], ..RuleList::default() };
        policy.permissions.servers.insert("s".parse().unwrap(), of_one);
        let policy = policy.compile();
        for (now, next) in [(0, Some(5)), (5, Some(10)), (10, Some(20)), (20, Some(30)), (30, None)]
        {
            assert_eq!(next_end(&policy, at(now)), next.map(at), "{now}");
        }
    }
}
