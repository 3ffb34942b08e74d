//! Rules that match nothing of what there is.

use capstan_model::{ItemId, ServerName};

use crate::decide::Policy;
use crate::pattern::{PatternSubject, spellings};
use crate::permission::{Rule, RuleList};

impl Policy {
    /// The rules that mean none of these items, whatever the arguments, as the operator wrote them.
    pub fn unmatched<'a>(&self, items: impl IntoIterator<Item = &'a ItemId>) -> Vec<String> {
        let mut left = self.rules_of_items();
        for id in items {
            if left.is_empty() {
                break;
            }
            let display = self.servers.get(&id.server).map_or(id.server.as_str(), |it| &it.display);
            let names = spellings(id, display);
            left.retain(|(server, rule)| {
                let of_this = server.is_none_or(|server| *server == id.server);
                !(of_this && rule.pattern.names_one_of(&names))
            });
        }
        left.into_iter().map(|(_, rule)| rule.to_string()).collect()
    }

    /// Every rule that speaks of items, with the server that it is bound to.
    fn rules_of_items(&self) -> Vec<(Option<&ServerName>, &Rule)> {
        let shared = of_list(&self.tools);
        let shared = shared.chain(self.authorization.iter().map(|ordered| &ordered.rule));
        let shared = shared.chain(of_list(&self.permissions.global)).map(|rule| (None, rule));
        let own = self
            .permissions
            .servers
            .iter()
            .flat_map(|(server, list)| of_list(list).map(move |rule| (Some(server), rule)));
        let speaks =
            |(_, rule): &(_, &Rule)| matches!(rule.pattern.subject(), PatternSubject::Item(_));
        shared.chain(own).filter(speaks).collect()
    }
}

fn of_list(list: &RuleList) -> impl Iterator<Item = &Rule> {
    list.deny.iter().chain(&list.ask).chain(&list.allow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn rules_that_mean_nothing_that_is_there_are_told() {
        let rules = |place: &str, patterns: &[&str]| -> Vec<Rule> {
            let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), place);
            patterns.iter().map(rule).collect()
        };
        let mut policy = Policy::default();
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
        assert_eq!(
            policy.unmatched(&items),
            ["tools.policy.ask: c__*", "permissions.deny: delet_*", "servers.b: list"]
        );
        assert_eq!(policy.unmatched(&[]).len(), 7);
    }
}
