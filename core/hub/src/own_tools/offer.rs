//! Who is offered Capstan's own tools, and what they search with.

use std::collections::HashSet;
use std::sync::Arc;

use capstan_model::{CallTools, Caller, Expose, ItemId, ServerName};
use capstan_policy::Glob;

use super::definitions;
use crate::catalog::{Gathered, tokens};
use crate::hub::Hub;
use crate::ports::ToolIndex;
use crate::search::ToolPool;

/// The operator's choice of what clients are offered, and what searches need.
#[derive(Clone)]
pub struct ToolOffer {
    /// The index that scores tools.
    pub index: Arc<dyn ToolIndex>,
    /// Number of tools that a search returns unless it says otherwise.
    pub top_k: usize,
    /// Tools that are less similar to a query do not fit it; from 0 to 1.
    pub min_similarity: f32,
    /// For clients that nothing else is said about.
    pub expose: Expose,
    /// For clients by the names that they give themselves; the first pattern that matches counts.
    pub clients: Vec<(Glob, Expose)>,
    /// With [`Expose::Auto`], all tools are offered while they cost at most this number of tokens.
    pub budget: usize,
    /// Tools that are always in the list, by bare name or by id.
    pub always_include: HashSet<String>,
    /// Servers whose tools are always in the list.
    pub always_load: HashSet<ServerName>,
}

// === impl ToolOffer ===

impl ToolOffer {
    /// What a caller is offered.
    pub fn expose(&self, caller: &Caller) -> Expose {
        let named = caller.client.as_deref().unwrap_or_default();
        // The version is the last part.
        let bare = named.rsplit_once('/').map_or(named, |(name, _)| name);
        let is_meant = |(client, _): &&(Glob, Expose)| {
            !named.is_empty() && (client.is_match(named) || client.is_match(bare))
        };
        self.clients.iter().find(is_meant).map_or(self.expose, |(_, expose)| *expose)
    }

    /// True if the tool is in the list of clients that search.
    pub fn always_lists(&self, tool: &ItemId, shown: &str) -> bool {
        let includes = |name: &str| {
            let ItemId { server, .. } = tool;
            self.always_include.contains(name)
                || self.always_include.contains(&format!("{server}__{name}"))
                || self.always_include.contains(&format!("{server}:{name}"))
        };
        self.always_load.contains(&tool.server)
            || (!self.always_include.is_empty() && (includes(&tool.item) || includes(shown)))
    }
}

/// Estimates how many tokens Capstan's own tools cost a model.
pub fn own_cost(calls: CallTools) -> usize {
    definitions(calls).iter().map(tokens).sum()
}

impl Hub {
    /// The operator's choice of what clients are offered; `None` if they are offered all tools.
    pub fn offer(&self) -> Option<&Arc<ToolOffer>> {
        self.offer.as_ref()
    }

    /// The tools in `gathered` that `caller` could be permitted to call, prepared for search.
    pub fn tool_pool(&self, gathered: &Gathered, caller: &Caller) -> Option<ToolPool> {
        let offer = self.offer.as_ref()?;
        Some(ToolPool::new(self, &*offer.index, self.visible_tools(gathered, caller)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{BoxFuture, IndexedTools, Scores, SearchedTool, Slot, Wanted};

    struct NoIndex;

    impl ToolIndex for NoIndex {
        fn add(&self, _: &[SearchedTool<'_>]) -> IndexedTools {
            IndexedTools::new([].into(), Arc::new(()))
        }

        fn score<'a>(&'a self, _: &'a str, _: &'a [Slot], _: Wanted) -> BoxFuture<'a, Scores> {
            Box::pin(std::future::ready(Scores::default()))
        }

        fn likeness(&self, _: Slot, _: Slot) -> Option<f32> {
            None
        }
    }

    fn offer() -> ToolOffer {
        let glob = |text| Glob::parse(text).unwrap();
        let names = ["read_file", "gh__create_issue", "s:find"].map(str::to_owned);
        ToolOffer {
            index: Arc::new(NoIndex),
            top_k: 10,
            min_similarity: 0.3,
            expose: Expose::Search(CallTools::One),
            clients: vec![
                (glob("claude-code"), Expose::All),
                (glob("cursor*"), Expose::Search(CallTools::ByEffect)),
                (glob("@acme/app"), Expose::All),
            ],
            budget: 100,
            always_include: names.into(),
            always_load: ["core".parse().unwrap()].into(),
        }
    }

    #[test]
    fn a_client_gets_what_the_first_pattern_for_its_name_says() {
        let by_default = Expose::Search(CallTools::One);
        for (client, expected) in [
            (Some("claude-code/2.1"), Expose::All),
            (Some("claude-code"), Expose::All),
            (Some("cursor-vscode/1.0"), Expose::Search(CallTools::ByEffect)),
            (Some("@acme/app/3"), Expose::All),
            (Some("@acme/app"), Expose::All),
            (Some("my-claude-code/2"), by_default),
            (Some("other"), by_default),
            (None, by_default),
        ] {
            let caller = Caller { client: client.map(str::to_owned), ..Caller::anonymous() };
            assert_eq!(offer().expose(&caller), expected, "{client:?}");
        }
    }

    #[test]
    fn pinned_are_the_tools_that_the_configuration_names_and_no_others() {
        let offer = offer();
        let lists = |server: &str, item: &str, shown: &str| {
            let id = ItemId { server: server.parse().unwrap(), item: item.to_owned() };
            offer.always_lists(&id, shown)
        };
        for (server, item) in [
            ("a", "read_file"),
            ("b", "read_file"),
            ("gh", "create_issue"),
            ("s", "find"),
            ("core", "x"),
        ] {
            assert!(lists(server, item, item), "{server} {item}");
        }
        for (server, item) in [
            ("a", "create_issue"),
            ("gh", "delete"),
            ("t", "find"),
            ("a", "read_file2"),
            ("corex", "x"),
        ] {
            assert!(!lists(server, item, item), "{server} {item}");
        }
        assert!(lists("gh", "open", "create_issue"), "by the operator's name for it");
    }
}
