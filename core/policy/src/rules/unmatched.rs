//! Finds rules that match no existing item.

use std::collections::BTreeSet;

use capstan_model::name::{FOREIGN_PREFIX, SEPARATOR};
use capstan_model::{ItemId, ServerName};

use super::rule::Rule;
use crate::decide::Policy;
use crate::pattern::{PatternSubject, spellings};

impl Policy {
    /// The rules that match none of these items, for any arguments, as the operator wrote them.
    ///
    /// Rules that may match an item of a server in `unknown` are left out.
    pub fn unmatched<'a>(
        &self,
        items: impl IntoIterator<Item = &'a ItemId>,
        unknown: &BTreeSet<ServerName>,
    ) -> Vec<String> {
        let mut left = self.rules_of_items();
        left.retain(|(bound, rule)| {
            !unknown.iter().any(|server| {
                bound.is_none_or(|bound| bound == server) && self.may_mean(rule, *bound, server)
            })
        });
        for id in items {
            if left.is_empty() {
                break;
            }
            let names = spellings(id, self.display(&id.server));
            left.retain(|(server, rule)| {
                let of_this = server.is_none_or(|server| *server == id.server);
                !(of_this && rule.pattern.names_one_of(&names))
            });
        }
        left.into_iter().map(|(_, rule)| rule.to_string()).collect()
    }

    /// True if a rule may match some item of this server: it names the server, or none.
    fn may_mean(&self, rule: &Rule, bound: Option<&ServerName>, server: &ServerName) -> bool {
        let PatternSubject::Item(glob) = rule.pattern.subject() else { return false };
        let text = glob.as_str();
        let text = text.strip_prefix(FOREIGN_PREFIX).unwrap_or(text);
        let names = |name: &str| {
            let rest = text.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(SEPARATOR) || rest.starts_with([':', '.']))
        };
        let is_named = |it: &ServerName| names(it.as_str()) || names(self.display(it));
        // A prefix that is not a server's name may be a misspelled one.
        let names_another = || {
            let written = text.split_once(SEPARATOR).map_or("*", |(written, _)| written);
            !written.contains(['*', '?', '[', '{', '\\']) || self.servers.keys().any(is_named)
        };
        rule.reach.includes(server) && (bound.is_some() || is_named(server) || !names_another())
    }

    fn display<'a>(&'a self, server: &'a ServerName) -> &'a str {
        self.servers.get(server).map_or(server.as_str(), |it| &it.display)
    }

    /// Every rule over items, with the server whose list it is in.
    fn rules_of_items(&self) -> Vec<(Option<&ServerName>, &Rule)> {
        let rows = self.rules.rows().iter();
        let of_items =
            rows.filter(|row| matches!(row.rule.pattern.subject(), PatternSubject::Item(_)));
        of_items.map(|row| (row.server.as_ref(), &row.rule)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::rules::{Reach, RuleList};
    use crate::{PolicySource, ServerPolicy};

    #[test]
    fn rules_that_mean_nothing_that_is_there_are_told() {
        let rules = |place: &str, patterns: &[&str]| -> Vec<Rule> {
            let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), place);
            patterns.iter().map(rule).collect()
        };
        let mut policy = PolicySource::default();
        policy.permissions.global.deny =
            rules("permissions.deny", &["delet_*", "delete_*", "*:x=1", "Elicit(nobody)"]);
        let own = RuleList { allow: rules("servers.b", &["list", "read"]), ..RuleList::default() };
        policy.permissions.servers.insert("b".parse().unwrap(), own);
        policy.tools.ask = rules("tools.policy.ask", &["a__list", "c__*"]);
        let id = |server: &str, item: &str| ItemId {
            server: server.parse().unwrap(),
            item: item.to_owned(),
        };
        let items = [id("a", "list"), id("a", "delete_it"), id("b", "read")];
        let none = BTreeSet::new();
        assert_eq!(
            policy.clone().compile().unmatched(&items, &none),
            ["tools.policy.ask: c__*", "permissions.deny: delet_*", "servers.b: list"]
        );
        assert_eq!(policy.clone().compile().unmatched(&[], &none).len(), 7);
    }

    #[test]
    fn what_may_mean_something_of_a_server_that_has_not_said_what_it_has_is_not_told() {
        let check = |pattern: &str, reach: Reach, told: bool| {
            let mut policy = PolicySource::default();
            for (server, display) in [("a", "a"), ("late", "My Late")] {
                let server_policy =
                    ServerPolicy { display: display.to_owned(), ..ServerPolicy::default() };
                policy.servers.insert(server.parse().unwrap(), server_policy);
            }
            let rule = Rule::new(Pattern::parse(pattern).unwrap(), "deny");
            policy.permissions.global.deny = vec![Rule { reach, ..rule }];
            let unknown = BTreeSet::from(["late".parse().unwrap()]);
            let items = [ItemId { server: "a".parse().unwrap(), item: "list".to_owned() }];
            assert_eq!(
                !policy.clone().compile().unmatched(&items, &unknown).is_empty(),
                told,
                "{pattern}"
            );
            assert_eq!(
                policy.clone().compile().unmatched(&items, &BTreeSet::new()).len(),
                1,
                "{pattern}"
            );
        };
        for told in ["a__lst", "mcp__a__lst", "a:lst", "a.lst", "a__x*", "lte__list", "a__x:k=v"] {
            check(told, Reach::All, true);
        }
        let not_told =
            ["late__x", "mcp__late__x", "My Late:x", "late.x*", "x*", "x.y", "l*__x", "{a,b}__x"];
        for pattern in not_told {
            check(pattern, Reach::All, false);
        }
        check("x*", Reach::Only(BTreeSet::from(["a".parse().unwrap()])), true);
        check("x*", Reach::Only(BTreeSet::from(["late".parse().unwrap()])), false);
    }

    #[test]
    fn rules_of_a_server_that_has_not_said_what_it_has_are_not_told_and_those_of_others_are() {
        let mut policy = PolicySource::default();
        for server in ["a", "late"] {
            let allow = vec![Rule::new(Pattern::parse("lst").unwrap(), server)];
            let own = RuleList { allow, ..RuleList::default() };
            policy.permissions.servers.insert(server.parse().unwrap(), own);
        }
        let unknown = BTreeSet::from(["late".parse().unwrap()]);
        assert_eq!(policy.clone().compile().unmatched(&[], &unknown), ["a: lst"]);
    }
}
