//! Tools that the operator has renamed.
//!
//! **Invariant:** a new name loosens nothing. Every rule still matches a tool by its own name; by
//! the new name, only rules that hide, deny or ask count.

use capstan_model::{By, ItemId, Kind, Ruling, Verdict};

use crate::combine::{Tie, tighten};
use crate::decide::{Asked, Policy};
use crate::exposure::Offered;

impl Policy {
    /// The tool's id with the operator's name for it.
    pub fn new_name(&self, id: &ItemId) -> Option<ItemId> {
        let name = self.servers.get(&id.server)?.new_names.get(&id.item)?;
        Some(ItemId { server: id.server.clone(), item: name.clone() })
    }

    /// The tool's id with its server's name for it.
    ///
    /// A new name that is also another tool's own name, or that two tools share, is ignored.
    pub fn own_name(&self, id: ItemId) -> ItemId {
        let names = self.servers.get(&id.server).map(|server| &server.new_names);
        let Some(names) = names.filter(|names| !names.contains_key(&id.item)) else { return id };
        let mut own = names.iter().filter(|(_, new)| **new == id.item).map(|(own, _)| own);
        match (own.next(), own.next()) {
            (Some(own), None) => ItemId { item: own.clone(), ..id },
            (Some(_), Some(_)) | (None, _) => id,
        }
    }

    /// The ruling on a tool, tightened by the rules that match it by its new name.
    pub(crate) fn tightened_by_new_name(&self, asked: &Asked<'_>, own: Ruling) -> Ruling {
        let (Kind::Tool, Some(id)) = (asked.kind, self.new_name(asked.id)) else { return own };
        let binds = |ruling: &Ruling| ruling.by == By::Rule && ruling.verdict != Verdict::Allow;
        let found = self.by_new_name(&Asked { id: &id, ..*asked }).into_iter().filter(binds);
        found.fold(own, |so_far, ruling| tighten(so_far, Some(ruling), Tie::KeepsRule))
    }

    /// The rulings by the new name, without `access.default` and the `expose` list.
    fn by_new_name(&self, asked: &Asked<'_>) -> Vec<Ruling> {
        let names = self.names(asked.id);
        let server = self.servers.get(&asked.id.server);
        let hidden = server.map(|server| server.exposure.hides(&names));
        let mut found = Vec::new();
        if let Some(Offered::No(line)) = hidden {
            let rule = format!("servers.{}.{line}", asked.id.server);
            found.push(Ruling { verdict: Verdict::Deny, rule, by: By::Rule });
        }
        let wanted = asked.wanted(&names);
        let refused = self.tables_for(asked.caller).iter().filter_map(|it| it.refusal(&wanted));
        found.extend(refused.filter(|ruling| ruling.rule != "access.default"));
        found.push(self.rules.decide(&asked.question(&names), asked.fallback).strictest());
        found
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::{Caller, Effect, Front};
    use jiff::Timestamp;

    use super::*;
    use crate::PolicySource;
    use crate::decide::ServerPolicy;
    use crate::exposure::Exposure;
    use crate::pattern::{Arguments, Pattern};
    use crate::rules::{DefaultRule, Rule};

    fn verdict(lists: [&[&str]; 3], hide: &[&str], expose: Option<&[&str]>) -> Verdict {
        let rules = |patterns: &[&str]| -> Vec<Rule> {
            let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), "permissions");
            patterns.iter().map(rule).collect()
        };
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut policy = PolicySource::default();
        let [deny, ask, allow] = lists;
        policy.permissions.global.deny = rules(deny);
        policy.permissions.global.ask = rules(ask);
        policy.permissions.global.allow = rules(allow);
        let server = ServerPolicy {
            exposure: Exposure::new(expose.map(own).as_deref(), &own(hide)).unwrap(),
            new_names: [("delete_all".to_owned(), "get_things".to_owned())].into(),
            ..ServerPolicy::default()
        };
        policy.servers.insert("s".parse().unwrap(), server);
        let id = ItemId { server: "s".parse().unwrap(), item: "delete_all".to_owned() };
        let asked = Asked {
            caller: &Caller::operator(Front::Cli),
            id: &id,
            kind: Kind::Tool,
            arguments: Arguments::Unknown,
            effect: Effect::Write,
            now: Timestamp::UNIX_EPOCH,
            fallback: DefaultRule::Always(Verdict::Ask),
        };
        let policy = policy.compile();
        let ruling = policy.decide(&asked);
        assert_eq!(ruling, policy.explain(&asked).0);
        ruling.verdict
    }

    #[test]
    fn rules_go_on_to_mean_a_tool_by_its_own_name() {
        assert_eq!(verdict([&["delete_*"], &[], &["*"]], &[], None), Verdict::Deny);
        assert_eq!(verdict([&[], &["s__delete_all"], &["*"]], &[], None), Verdict::Ask);
        assert_eq!(verdict([&[], &[], &["delete_all"]], &[], None), Verdict::Allow);
        assert_eq!(verdict([&[], &[], &["*"]], &["delete_*"], None), Verdict::Deny);
        assert_eq!(verdict([&[], &[], &["*"]], &[], Some(&["delete_all"])), Verdict::Allow);
    }

    #[test]
    fn a_name_is_somebodys_new_one_only_where_it_is_free() {
        let names = [("a", "b"), ("b", "c"), ("d", "x"), ("e", "x"), ("f", "y")];
        let new_names = names.map(|(own, new)| (own.to_owned(), new.to_owned())).into();
        let server = ServerPolicy { new_names, ..ServerPolicy::default() };
        let mut policy = PolicySource::default();
        policy.servers.insert("s".parse().unwrap(), server);
        let policy = policy.compile();
        let cases = [("c", "b"), ("y", "f"), ("b", "b"), ("x", "x"), ("a", "a"), ("z", "z")];
        for (asked, own) in cases {
            let id = ItemId { server: "s".parse().unwrap(), item: asked.to_owned() };
            assert_eq!(policy.own_name(id).item, own, "{asked}");
        }
        let elsewhere = ItemId { server: "t".parse().unwrap(), item: "c".to_owned() };
        assert_eq!(policy.own_name(elsewhere.clone()), elsewhere);
    }

    #[test]
    fn a_new_name_restricts_and_never_loosens() {
        // An allow rule for the new name allows nothing, in any spelling.
        for allow in ["get_*", "s__get_things", "s:get_things", "mcp__s__get_*"] {
            assert_eq!(verdict([&[], &[], &[allow]], &[], None), Verdict::Ask, "{allow}");
        }
        assert_eq!(verdict([&[], &[], &["*"]], &[], Some(&["get_*"])), Verdict::Deny);
        assert_eq!(verdict([&["delete_all"], &[], &["get_things"]], &[], None), Verdict::Deny);
        for name in ["get_things", "s__get_things", "s.get_*"] {
            assert_eq!(
                verdict([&[name], &[], &["delete_all"]], &[], None),
                Verdict::Deny,
                "{name}"
            );
            assert_eq!(verdict([&[], &[name], &["delete_all"]], &[], None), Verdict::Ask, "{name}");
            assert_eq!(verdict([&[], &[], &["*"]], &[name], None), Verdict::Deny, "{name}");
        }
    }
}
