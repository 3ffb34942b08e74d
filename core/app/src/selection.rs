//! Selects the tools that a model is offered at each turn of a conversation.
//!
//! The selection grows by at most `top_k` tools a turn, to four times `top_k`, and shrinks only when
//! the conversation is compacted, so that the provider's cache of the prompt holds. Tools that are
//! gone leave it at the next turn.

use std::collections::{HashMap, HashSet};

use capstan_config::{Config, Strategy};
use capstan_model::{ItemId, ServerName};

/// The selection may grow to this multiple of `top_k`.
const MAX_GROWTH: usize = 4;

/// The largest number of tools that are offered at once; providers refuse more.
pub(crate) const MAX_OFFERED: usize = 124;

/// The rules of a selection: `[search]`, and the servers whose tools are always loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectionRules {
    /// How tools are selected.
    pub strategy: Strategy,
    /// Maximum number of tools that are added at a turn.
    pub top_k: usize,
    /// Tools that are always offered, by bare name or by id.
    pub always_include: HashSet<String>,
    /// Servers with fewer tools are offered whole.
    pub min_tools_to_filter: usize,
    /// Servers whose tools are always offered.
    pub always_load: HashSet<ServerName>,
}

/// The tools that the model of one conversation was offered because they fit it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnSelection {
    chosen: Vec<ItemId>,
    /// The tools that fit the last turn; these survive a compaction.
    recent: Vec<ItemId>,
}

/// The tools of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The tools that are offered, in the order of the available ones.
    pub tools: Vec<ItemId>,
    /// Number of available tools that are not offered; the model is told that it can search them.
    pub more: usize,
}

// === impl SelectionRules ===

impl SelectionRules {
    /// The rules of a configuration.
    pub fn of(config: &Config) -> Self {
        let loaded = config
            .servers
            .values()
            .filter(|entry| entry.status.as_ref().is_ok_and(|server| server.always_load));
        Self {
            strategy: config.search.strategy,
            top_k: count(config.search.top_k),
            always_include: config.search.always_include.iter().cloned().collect(),
            min_tools_to_filter: count(config.search.min_tools_to_filter),
            always_load: loaded.map(|entry| entry.name.clone()).collect(),
        }
    }

    /// The tools that are offered at every turn, in the order of the available ones.
    pub fn always_offered<'a>(&self, available: &'a [ItemId]) -> Vec<&'a ItemId> {
        let mut sizes: HashMap<&ServerName, usize> = HashMap::new();
        for id in available {
            *sizes.entry(&id.server).or_default() += 1;
        }
        let is_small = |id: &ItemId| {
            sizes.get(&id.server).is_some_and(|size| *size < self.min_tools_to_filter)
        };
        let always = |id: &&ItemId| {
            self.strategy == Strategy::None
                || self.always_load.contains(&id.server)
                || is_small(id)
                || self.includes(id)
        };
        available.iter().filter(always).collect()
    }

    fn includes(&self, id: &ItemId) -> bool {
        !self.always_include.is_empty()
            && (self.always_include.contains(&id.item)
                || self.always_include.contains(&id.to_string())
                || self.always_include.contains(&format!("{}:{}", id.server, id.item)))
    }
}

// === impl TurnSelection ===

impl TurnSelection {
    /// Selects the tools of the next turn: `found` are those that fit it, best first.
    pub fn turn(&mut self, rules: &SelectionRules, available: &[ItemId], found: &[ItemId]) -> Turn {
        let always: HashSet<&ItemId> = rules.always_offered(available).into_iter().collect();
        let there: HashSet<&ItemId> = available.iter().collect();
        self.chosen.retain(|id| there.contains(id) && !always.contains(id));
        let fits = |id: &&ItemId| there.contains(id) && !always.contains(id);
        self.recent = found.iter().filter(fits).take(rules.top_k).cloned().collect();
        let most = MAX_GROWTH.saturating_mul(rules.top_k).min(MAX_OFFERED);
        let room = most.saturating_sub(self.chosen.len()).min(rules.top_k);
        let new = found.iter().filter(fits).filter(|id| !self.chosen.contains(id));
        let new: Vec<ItemId> = new.take(room).cloned().collect();
        self.chosen.extend(new);
        self.offer(&always, available)
    }

    /// The tools of a further request of the same turn: those of the turn that are still available,
    /// and new ones that are always offered.
    pub fn again(&self, rules: &SelectionRules, available: &[ItemId]) -> Turn {
        self.offer(&rules.always_offered(available).into_iter().collect(), available)
    }

    /// Those that fit come first if not all can be offered.
    fn offer(&self, always: &HashSet<&ItemId>, available: &[ItemId]) -> Turn {
        let chosen: HashSet<&ItemId> = self.chosen.iter().collect();
        let mut room = MAX_OFFERED.saturating_sub(chosen.len());
        let mut offered = |id: &&ItemId| {
            if chosen.contains(id) {
                return true;
            }
            let has_room = always.contains(id) && room > 0;
            room = room.saturating_sub(usize::from(has_room));
            has_room
        };
        let tools: Vec<ItemId> = available.iter().filter(|id| offered(id)).cloned().collect();
        Turn { more: available.len() - tools.len(), tools }
    }

    /// Shrinks the selection to the tools that fit the last turn. Call it when the conversation is
    /// compacted: the provider's cache is lost then anyway.
    pub fn compact(&mut self) {
        self.chosen.clone_from(&self.recent);
    }
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(server: &str, tools: impl IntoIterator<Item = usize>) -> Vec<ItemId> {
        let server: ServerName = server.parse().unwrap();
        let id = |tool| ItemId { server: server.clone(), item: format!("t{tool}") };
        tools.into_iter().map(id).collect()
    }

    fn rules() -> SelectionRules {
        SelectionRules::of(&Config::default())
    }

    fn names(turn: &Turn) -> Vec<String> {
        turn.tools.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn c45_at_most_ten_fitting_tools_are_offered_with_the_always_included_and_small_servers() {
        let mut available = ids("big", 0..50);
        available.push(ItemId { server: "big".parse().unwrap(), item: "read_file".to_owned() });
        available.push(ItemId { server: "other".parse().unwrap(), item: "read_file".to_owned() });
        available.extend(ids("other", 0..10));
        available.extend(ids("small", 0..4));
        available.extend(ids("five", 0..5));
        let found = ids("big", (0..50).rev());
        let with = |include: &str| {
            let always_include = HashSet::from([include.to_owned()]);
            let rules = SelectionRules { always_include, ..rules() };
            TurnSelection::default().turn(&rules, &available, &found)
        };
        let bare = with("read_file");
        let offered = names(&bare);
        assert_eq!(offered.iter().filter(|name| name.starts_with("big__t")).count(), 10);
        assert!(offered.contains(&"big__t49".to_owned()) && !offered.contains(&"big__t39".into()));
        assert_eq!(offered.iter().filter(|name| name.ends_with("read_file")).count(), 2);
        assert_eq!(offered.iter().filter(|name| name.starts_with("small")).count(), 4);
        assert_eq!(offered.iter().filter(|name| name.starts_with("five")).count(), 0);
        assert_eq!((offered.len(), bare.more), (16, available.len() - 16));
        let qualified = names(&with("other__read_file"));
        assert_eq!(qualified.iter().filter(|name| name.ends_with("read_file")).count(), 1);
        let none = SelectionRules { strategy: Strategy::None, ..rules() };
        let all = TurnSelection::default().turn(&none, &available, &[]);
        assert_eq!((all.tools, all.more), (available.clone(), 0), "`None` offers all");
    }

    #[test]
    fn c45_a_selection_grows_by_ten_a_turn_to_forty_and_shrinks_at_compaction() {
        let available = ids("s", 0..100);
        let mut selection = TurnSelection::default();
        let mut sizes = Vec::new();
        for turn in 0..6 {
            let found = ids("s", (turn * 15)..(turn * 15 + 15));
            sizes.push(selection.turn(&rules(), &available, &found).tools.len());
        }
        assert_eq!(sizes, [10, 20, 30, 40, 40, 40]);
        selection.compact();
        let turn = selection.turn(&rules(), &available, &[]);
        assert_eq!(turn.tools, ids("s", 75..85), "those that fit the last turn");
        assert_eq!(turn.more, 90);
    }

    #[test]
    fn a_further_request_of_a_turn_has_the_same_tools_and_those_of_new_servers_if_they_are_small() {
        let mut selection = TurnSelection::default();
        let before = ids("s", 0..20);
        let first = selection.turn(&rules(), &before, &ids("s", 3..6));
        let after = [ids("s", 0..5), ids("new", 0..2), ids("large", 0..50)].concat();
        let again = selection.again(&rules(), &after);
        assert_eq!(first.tools, ids("s", 3..6));
        assert_eq!(again.tools, [ids("s", 3..5), ids("new", 0..2)].concat());
        assert_eq!(again.more, 53);
        selection.compact();
        assert_eq!(selection.again(&rules(), &before).tools, first.tools, "they fit the last turn");
    }

    #[test]
    fn no_more_tools_are_offered_than_providers_accept_and_those_that_fit_are_among_them() {
        let available = [ids("all", 0..500), ids("s", 0..20)].concat();
        let always_load = HashSet::from(["all".parse().unwrap()]);
        let rules = SelectionRules { always_load, ..rules() };
        let mut selection = TurnSelection::default();
        let turn = selection.turn(&rules, &available, &ids("s", 0..10));
        assert_eq!((turn.tools.len(), turn.more), (MAX_OFFERED, 520 - MAX_OFFERED));
        assert!(ids("s", 0..10).iter().all(|id| turn.tools.contains(id)));
        let none = SelectionRules { strategy: Strategy::None, ..SelectionRules::default() };
        assert_eq!(TurnSelection::default().turn(&none, &available, &[]).tools.len(), MAX_OFFERED);
        let huge = SelectionRules { top_k: usize::MAX, ..self::rules() };
        let turn = TurnSelection::default().turn(&huge, &available, &available);
        assert_eq!(turn.tools.len(), MAX_OFFERED);
    }

    #[test]
    fn a_tool_that_was_offered_stays_offered_although_it_no_longer_fits() {
        let available = ids("s", 0..100);
        let mut selection = TurnSelection::default();
        let first = selection.turn(&rules(), &available, &ids("s", 0..3));
        let second = selection.turn(&rules(), &available, &ids("s", 50..51));
        assert!(first.tools.iter().all(|id| second.tools.contains(id)));
        assert_eq!(second.tools.len(), 4);
    }

    #[test]
    fn tools_that_are_gone_or_were_never_available_are_not_offered() {
        let mut selection = TurnSelection::default();
        let before = [ids("gone", 0..20), ids("s", 0..20)].concat();
        selection.turn(&rules(), &before, &ids("gone", 0..5));
        let turn = selection.turn(&rules(), &ids("s", 0..20), &ids("secret", 0..5));
        assert_eq!(turn, Turn { tools: Vec::new(), more: 20 });
    }

    #[test]
    fn tools_of_a_server_that_is_always_loaded_are_offered_without_a_search() {
        let always_load = HashSet::from(["s".parse().unwrap()]);
        let rules = SelectionRules { always_load, ..rules() };
        let turn = TurnSelection::default().turn(&rules, &ids("s", 0..20), &[]);
        assert_eq!(turn.tools.len(), 20);
    }
}
