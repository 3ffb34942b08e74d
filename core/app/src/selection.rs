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
        let room = (MAX_GROWTH * rules.top_k).saturating_sub(self.chosen.len()).min(rules.top_k);
        let new = found.iter().filter(fits).filter(|id| !self.chosen.contains(id));
        let new: Vec<ItemId> = new.take(room).cloned().collect();
        self.chosen.extend(new);
        let offered = |id: &&ItemId| always.contains(id) || self.chosen.contains(id);
        let tools: Vec<ItemId> = available.iter().filter(offered).cloned().collect();
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
