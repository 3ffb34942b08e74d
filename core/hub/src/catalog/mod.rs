//! What there is to call: the lists of all servers, side by side.

mod completion;
mod gather;
mod instructions;
mod template;
mod tool;

pub use completion::{Reference, Typing};
pub use gather::{Gathered, Patience};
pub use instructions::{MAX_INSTRUCTIONS, capped_instructions, merged_instructions};
pub use template::{BadTemplate, Need, Placeholder, Template};
pub use tool::ToolView;

use capstan_model::{Effect, Front, ItemId, Kind, ServerName, Verdict};
use capstan_policy::{Arguments, Asked};

use crate::hub::Hub;
use crate::pipeline::fallback;
use crate::ports::{Item, Listing};

impl Hub {
    /// Asks servers for a list, all at the same time; `arrived` is told of each answer.
    ///
    /// A slow, hanging or broken server delays and breaks no other.
    pub async fn gather(
        &self,
        listing: Listing,
        patience: Patience,
        arrived: &mut (dyn FnMut(&ServerName) + Send),
    ) -> Gathered {
        gather::gather(self, listing, patience, &|_| true, arrived).await
    }

    /// Asks only the servers that are `wanted`; the others count as not having answered yet.
    pub async fn gather_from(
        &self,
        listing: Listing,
        patience: Patience,
        wanted: &(dyn Fn(&ServerName) -> bool + Sync),
    ) -> Gathered {
        gather::gather(self, listing, patience, wanted, &mut |_| {}).await
    }

    /// The tools in `gathered` that a caller at `front` could be permitted to call.
    ///
    /// A tool is listed if and only if calling it could be permitted.
    pub fn visible_tools(&self, gathered: &Gathered, front: Front) -> Vec<ToolView> {
        let mut tools = Vec::new();
        for (server, items) in &gathered.lists {
            let views = items.iter().map(|item| ToolView::new(&self.policy, server, item));
            let listed =
                |view: &ToolView| self.could_permit(&view.id, Kind::Tool, view.effect, front);
            tools.extend(views.filter(listed));
        }
        tools
    }

    /// The resources, templates or prompts in `gathered` that a caller at `front` could be
    /// permitted to use. Of a template the rules look at the text of the template.
    pub fn visible_items<'a>(
        &self,
        gathered: &'a Gathered,
        kind: Kind,
        front: Front,
    ) -> Vec<(&'a ServerName, &'a Item)> {
        let listed = |(server, item): &(&ServerName, &Item)| {
            let id = ItemId { server: (*server).clone(), item: item.name.clone() };
            let effect = self.policy.effect_of(&id, kind, &item.definition);
            self.could_permit(&id, kind, effect, front)
        };
        let lists = gathered.lists.iter();
        let all = lists.flat_map(|(server, items)| items.iter().map(move |item| (server, item)));
        all.filter(listed).collect()
    }

    /// About how many tokens the tools of a server cost a model that a caller at `front` talks to.
    pub fn tokens(&self, server: &ServerName, tools: &[Item], front: Front) -> usize {
        let views = tools.iter().map(|item| ToolView::new(&self.policy, server, item));
        let listed = |view: &ToolView| self.could_permit(&view.id, Kind::Tool, view.effect, front);
        views.filter(listed).map(|view| view.tokens).sum()
    }

    /// Whether a caller at `front` could be permitted to use an item, with the right arguments.
    pub(crate) fn could_permit(
        &self,
        id: &ItemId,
        kind: Kind,
        effect: Effect,
        front: Front,
    ) -> bool {
        let asked = Asked {
            id,
            kind,
            arguments: Arguments::Unknown,
            effect,
            now: self.clock.now(),
            fallback: fallback(front),
        };
        self.policy.decide(&asked).verdict != Verdict::Deny
    }
}

/// The names of `items`, for completions and hints.
pub fn names(items: &[Item]) -> impl Iterator<Item = &str> {
    items.iter().map(|item| item.name.as_str())
}
