//! What there is to call: the lists of all servers, side by side.

mod completion;
mod effects;
mod facts;
mod gather;
mod gemini;
mod input;
mod instructions;
mod mismatch;
mod names;
mod naming;
mod overrides;
mod provider;
mod public;
mod sound;
mod template;
mod tool;
mod until;
mod weight;

pub(crate) use public::find_public;

pub(crate) use facts::Fact;
pub(crate) use tool::check as check_arguments;

pub use completion::{Reference, Typing, typed};
pub use facts::Facts;
pub use gather::{Ask, Gathered, Patience};
pub use input::{BadSchema, InputSchema, Misfit, Schemas};
pub use instructions::{MAX_INSTRUCTIONS, capped_instructions, merged_instructions};
pub use names::Names;
pub use naming::{Alphabet, MAX_NAME, NameTable};
pub use overrides::{Override, Overrides, Shown};
pub use provider::{Provider, Unfit};
pub use template::{BadTemplate, Need, Placeholder, Template};
pub use tool::ToolView;

use std::sync::Arc;

use capstan_model::{CallError, Caller, Effect, ItemId, Kind, ServerName, Verdict};
use capstan_policy::{Arguments, Asked};
use capstan_wire::Json;

use crate::Standing;
use crate::hub::Hub;
use crate::pipeline::fallback;
use crate::ports::{Item, Listing};

/// What a hub keeps of the lists that it has seen.
#[derive(Debug, Default)]
pub struct Catalog {
    /// What items are called towards clients and models.
    pub names: Names,
    /// Which schemas can be used.
    pub schemas: Schemas,
    /// What is known of items.
    pub facts: Facts,
    /// What the operator changes about tools. The names know of it too.
    pub overrides: Arc<Overrides>,
}

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
        gather::gather(self, listing, patience, &|_| Ask::List, arrived).await
    }

    /// Asks each server as `how` says.
    pub async fn gather_from(
        &self,
        listing: Listing,
        patience: Patience,
        how: &(dyn Fn(&ServerName) -> Ask + Sync),
    ) -> Gathered {
        gather::gather(self, listing, patience, how, &mut |_| {}).await
    }

    /// The tools in `gathered` that `caller` could be permitted to call.
    ///
    /// A tool is listed if and only if calling it could be permitted and its schema can be used;
    /// those whose schema cannot are in [`Self::hidden_tools`].
    pub fn visible_tools(&self, gathered: &Gathered, caller: &Caller) -> Vec<ToolView> {
        let tools = self.permitted_tools(gathered, caller);
        tools.filter(|(_, item)| self.is_usable(item)).map(|(view, _)| view).collect()
    }

    /// The tools in `gathered` that `caller` is not shown because of their schemas,
    /// with the reason.
    pub fn hidden_tools(&self, gathered: &Gathered, caller: &Caller) -> Vec<CallError> {
        let tools = self.permitted_tools(gathered, caller);
        tools
            .filter_map(|(view, item)| {
                self.refuse_bad_schema(&view.id, &item.definition, None).err()
            })
            .collect()
    }

    /// What a model API calls the tools of `gathered`, in the order of the configuration.
    ///
    /// Such a name stands for its tool from then on, wherever a name is taken.
    pub fn name_tools(&self, gathered: &Gathered, alphabet: Alphabet) {
        for (server, items) in &gathered.lists {
            self.catalog.names.learn(Kind::Tool, alphabet, server, items);
        }
    }

    /// Refuses a tool whose schema cannot be used. What is known of the tool remembers the answer.
    pub(crate) fn refuse_bad_schema(
        &self,
        id: &ItemId,
        definition: &Json,
        fact: Option<&Fact>,
    ) -> Result<(), CallError> {
        let judge = || self.catalog.schemas.check(&tool::input_schema(definition)).err();
        let bad = match fact {
            Some(fact) => fact.bad_schema(judge).cloned(),
            None => judge(),
        };
        let hidden =
            |bad: BadSchema| CallError::Hidden { item: id.to_string(), reason: bad.to_string() };
        bad.map_or(Ok(()), |bad| Err(hidden(bad)))
    }

    /// Whether the input schema of a tool can be used. A tool without one is hidden everywhere.
    pub(crate) fn is_usable(&self, tool: &Item) -> bool {
        self.catalog.schemas.check(&tool::input_schema(&tool.definition)).is_ok()
    }

    /// How many of these tools are not hidden because of their schemas.
    pub fn count_usable(&self, tools: &[Item]) -> usize {
        tools.iter().filter(|tool| self.is_usable(tool)).count()
    }

    /// What an item does.
    pub(crate) fn effect_of(&self, id: &ItemId, kind: Kind, definition: &Json) -> Effect {
        self.catalog.facts.effect(&self.policy, id, kind, definition)
    }

    /// Looks at one line of a server's list.
    pub(crate) fn tool_view(&self, server: &ServerName, item: &Item) -> ToolView {
        let id = ItemId { server: server.clone(), item: item.name.clone() };
        let effect = self.effect_of(&id, Kind::Tool, &item.definition);
        match self.catalog.overrides.shown(&id) {
            Some(shown) => ToolView::new(id, shown.name.clone(), effect, &shown.definition),
            None => ToolView::new(id, item.name.clone(), effect, &item.definition),
        }
    }

    fn permitted_tools<'a>(
        &'a self,
        gathered: &'a Gathered,
        caller: &'a Caller,
    ) -> impl Iterator<Item = (ToolView, &'a Item)> + 'a {
        let listed = move |(view, _): &(ToolView, &Item)| {
            self.could_permit(&view.id, Kind::Tool, view.effect, caller)
        };
        let views = gathered.lists.iter().flat_map(move |(server, items)| {
            self.catalog.overrides.learn(server, items);
            items.iter().map(move |item| (self.tool_view(server, item), item))
        });
        views.filter(listed)
    }

    /// The items of one kind in `gathered` that `caller` could be permitted to use, without tools
    /// whose schema cannot be used. Of a template the rules look at the text of the template.
    pub fn visible_items<'a>(
        &self,
        gathered: &'a Gathered,
        kind: Kind,
        caller: &Caller,
    ) -> Vec<(&'a ServerName, &'a Item)> {
        let listed = |(server, item): &(&ServerName, &Item)| {
            let id = ItemId { server: (*server).clone(), item: item.name.clone() };
            self.is_listed(&id, kind, &item.definition, caller)
                && (kind != Kind::Tool || self.is_usable(item))
        };
        let lists = gathered.lists.iter();
        let all = lists.flat_map(|(server, items)| items.iter().map(move |item| (server, item)));
        all.filter(listed).collect()
    }

    /// About how many tokens the tools of a server cost a model that `caller` talks to.
    pub fn tokens(&self, server: &ServerName, tools: &[Item], caller: &Caller) -> usize {
        let usable = tools.iter().filter(|tool| self.is_usable(tool));
        let views = usable.map(|tool| self.tool_view(server, tool));
        let listed = |view: &ToolView| self.could_permit(&view.id, Kind::Tool, view.effect, caller);
        views.filter(listed).map(|view| view.tokens).sum()
    }

    /// Whether `caller` is shown a tool: calling it could be permitted and its schema can be used.
    pub fn shows_tool(&self, caller: &Caller, server: &ServerName, tool: &Item) -> bool {
        let id = ItemId { server: server.clone(), item: tool.name.clone() };
        let effect = self.effect_of(&id, Kind::Tool, &tool.definition);
        self.could_permit(&id, Kind::Tool, effect, caller) && self.is_usable(tool)
    }

    /// Whether `caller` is shown an item. What it does is worked out only where that makes a
    /// difference, because a first list is of many items of which few are ever used.
    fn is_listed(&self, id: &ItemId, kind: Kind, definition: &Json, caller: &Caller) -> bool {
        let could = |effect| self.could_permit(id, kind, effect, caller);
        match [Effect::Read, Effect::Write, Effect::Unknown].map(could) {
            [true, true, true] => true,
            [false, false, false] => false,
            _ => could(self.effect_of(id, kind, definition)),
        }
    }

    /// Whether `caller` could be permitted to read a resource.
    pub fn shows_resource(&self, caller: &Caller, server: &ServerName, uri: &str) -> bool {
        let id = ItemId { server: server.clone(), item: uri.to_owned() };
        self.could_permit(&id, Kind::Resource, Effect::Read, caller)
    }

    /// Whether `caller` could be permitted to use an item, with the right arguments.
    pub(crate) fn could_permit(
        &self,
        id: &ItemId,
        kind: Kind,
        effect: Effect,
        caller: &Caller,
    ) -> bool {
        let asked = Asked {
            id,
            kind,
            arguments: Arguments::Unknown,
            effect,
            now: self.clock.now(),
            fallback: fallback(caller.front),
            caller,
        };
        let standing = match kind {
            Kind::Tool => self.pins.standing(id),
            Kind::Resource | Kind::Prompt => Standing::Approved,
        };
        let ruling = self.pins.tighten(id, standing, self.policy.decide(&asked));
        ruling.verdict != Verdict::Deny
    }
}

/// The names of `items`, for completions and hints.
pub fn names(items: &[Item]) -> impl Iterator<Item = &str> {
    items.iter().map(|item| item.name.as_str())
}
