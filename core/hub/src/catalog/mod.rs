//! The catalog: the tools, resources and prompts of all servers.
//!
//! `gather` lists many servers at once; `names` gives items their public names and finds items by
//! them; `overrides` applies the operator's changes to tools; `schemas` validates arguments;
//! `providers` converts schemas for model APIs; `facts` caches what is known about items; `uris` maps
//! the URIs that clients see to servers.

mod argument_headers;
mod completion;
mod facts;
mod gather;
mod instructions;
mod names;
mod overrides;
mod providers;
mod rule_expiry;
mod schemas;
mod screens;
mod template;
mod tool;
mod uris;

pub(crate) use names::find_public;

pub(crate) use facts::{Fact, Facts};
pub(crate) use tool::{check as check_arguments, tokens};
pub(crate) use uris::StreamedUris;

pub use argument_headers::RepeatedArguments;
pub use completion::{Reference, Typing, typed};
pub use gather::{Ask, Gathered, Patience};
pub use instructions::{
    MAX_INSTRUCTIONS, capped_instructions, merged_instructions, own_instructions,
};
pub use names::{Alphabet, MAX_NAME, NameTable, Names};
pub use overrides::{Overrides, Shown};
pub use providers::{Provider, Unfit};
pub use schemas::{BadSchema, InputSchema, Misfit, Schemas};
pub use screens::{Accepted, Screens, Secrets, text_digest};
pub use template::{BadTemplate, Need, Placeholder, Template};
pub use tool::ToolView;
pub use uris::{DIRECTORY, TOOL, Uris};

use std::sync::Arc;

use capstan_model::{CallError, Caller, Effect, ItemId, Kind, Ruling, ServerName, Verdict};
use capstan_policy::{Arguments, Asked};
use capstan_wire::Json;

use crate::Standing;
use crate::hub::Hub;
use crate::pipeline::fallback;
use crate::ports::{Item, Listing};

/// The hub's caches of the lists that it has seen.
#[derive(Debug, Default)]
pub struct Catalog {
    /// The public names of items, as clients and models see them.
    pub names: Names,
    /// Cache of the schemas that were checked.
    pub schemas: Schemas,
    /// The owners of URIs at the endpoint of all servers.
    pub uris: Arc<Uris>,
    /// The operator's changes to tools. `names` uses the same overrides.
    pub overrides: Arc<Overrides>,
    /// The treatment of suspicious texts.
    pub screens: Arc<Screens>,
}

/// The tools of a server that a caller is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Their number.
    pub tools: usize,
    /// Estimated number of tokens that they cost a model.
    pub tokens: usize,
}

impl Hub {
    /// Lists all servers concurrently, and calls `arrived` after each answer.
    ///
    /// A slow, hanging or broken server neither delays nor breaks the others.
    pub async fn gather(
        &self,
        listing: Listing,
        patience: Patience,
        arrived: &mut (dyn FnMut(&ServerName) + Send),
    ) -> Gathered {
        gather::gather(self, listing, patience, &|_| Ask::List, arrived).await
    }

    /// Lists all servers concurrently; `how` chooses for each server how it is asked.
    pub async fn gather_from(
        &self,
        listing: Listing,
        patience: Patience,
        how: &(dyn Fn(&ServerName) -> Ask + Sync),
    ) -> Gathered {
        gather::gather(self, listing, patience, how, &mut |_| {}).await
    }

    /// Lists all servers concurrently; `how` chooses for each server how it is asked. Calls
    /// `arrived` after each answer.
    pub async fn gather_with(
        &self,
        listing: Listing,
        patience: Patience,
        how: &(dyn Fn(&ServerName) -> Ask + Sync),
        arrived: &mut (dyn FnMut(&ServerName) + Send),
    ) -> Gathered {
        gather::gather(self, listing, patience, how, arrived).await
    }

    /// Returns the tools in `gathered` that `caller` could be permitted to call.
    ///
    /// A tool is listed if and only if calling it could be permitted and its schema can be used.
    /// [`Self::hidden_tools`] returns the tools whose schema cannot be used.
    pub fn visible_tools(&self, gathered: &Gathered, caller: &Caller) -> Vec<ToolView> {
        let tools = self.permitted_tools(gathered, caller);
        tools
            .filter(|(view, item)| self.is_usable(&view.id.server, item))
            .map(|(view, _)| view)
            .collect()
    }

    /// Returns the tools of [`Self::visible_tools`] and the errors of [`Self::hidden_tools`] in one
    /// pass.
    pub fn visible_and_hidden_tools(
        &self,
        gathered: &Gathered,
        caller: &Caller,
    ) -> (Vec<ToolView>, Vec<CallError>) {
        let (mut visible, mut hidden) = (Vec::new(), Vec::new());
        for (view, item) in self.permitted_tools(gathered, caller) {
            match self.refuse_bad_schema(&view.id, &item.definition, None) {
                Ok(()) => visible.push(view),
                Err(error) => hidden.push(error),
            }
        }
        (visible, hidden)
    }

    /// Returns an error for each permitted tool in `gathered` that is hidden because of its schema.
    pub fn hidden_tools(&self, gathered: &Gathered, caller: &Caller) -> Vec<CallError> {
        let tools = self.permitted_tools(gathered, caller);
        tools
            .filter_map(|(view, item)| {
                self.refuse_bad_schema(&view.id, &item.definition, None).err()
            })
            .collect()
    }

    /// Gives the tools of `gathered` public names in this alphabet, in the order of the
    /// configuration.
    ///
    /// From then on, such a name is accepted wherever a tool can be named.
    pub fn name_tools(&self, gathered: &Gathered, alphabet: Alphabet) {
        for (server, items) in &gathered.lists {
            self.catalog.names.learn(Kind::Tool, alphabet, server, items);
        }
    }

    /// Refuses a tool whose schema cannot be used. The result is cached in `fact`, if there is one.
    pub(crate) fn refuse_bad_schema(
        &self,
        id: &ItemId,
        definition: &Json,
        fact: Option<&Fact>,
    ) -> Result<(), CallError> {
        self.refuse_blocked(id, definition, fact)?;
        let judge = || self.catalog.schemas.check(&tool::input_schema(definition)).err();
        let bad = match fact {
            Some(fact) => fact.bad_schema(judge).cloned(),
            None => judge(),
        };
        let hidden =
            |bad: BadSchema| CallError::Hidden { item: id.to_string(), reason: bad.to_string() };
        bad.map_or(Ok(()), |bad| Err(hidden(bad)))
    }

    /// Refuses an item whose definition is blocked. The result is cached in `fact`, if there is one.
    pub(crate) fn refuse_blocked(
        &self,
        id: &ItemId,
        definition: &Json,
        fact: Option<&Fact>,
    ) -> Result<(), CallError> {
        let judge = || self.catalog.screens.blocked(&id.server, definition);
        let blocked = match fact {
            Some(fact) => fact.blocked(judge).cloned(),
            None => judge(),
        };
        let hidden = |reason: Arc<str>| {
            let (item, reason) = (id.to_string(), reason.to_string());
            CallError::Hidden { item, reason }
        };
        blocked.map_or(Ok(()), |reason| Err(hidden(reason)))
    }

    /// True if the tool's input schema can be used and its definition is not blocked. If not, the
    /// tool is hidden everywhere.
    pub(crate) fn is_usable(&self, server: &ServerName, tool: &Item) -> bool {
        self.catalog.schemas.check(&tool::input_schema(&tool.definition)).is_ok()
            && self.catalog.screens.blocked(server, &tool.definition).is_none()
    }

    /// Counts the tools of a server that can be used.
    pub fn count_usable(&self, server: &ServerName, tools: &[Item]) -> usize {
        tools.iter().filter(|tool| self.is_usable(server, tool)).count()
    }

    /// Returns the effect of an item.
    pub(crate) fn effect_of(&self, id: &ItemId, kind: Kind, definition: &Json) -> Effect {
        self.facts.effect(&self.policy, id, kind, definition)
    }

    /// Builds the view of one tool from a server's list, with the operator's overrides applied.
    pub(crate) fn tool_view(&self, server: &ServerName, item: &Item) -> ToolView {
        let id = ItemId { server: server.clone(), item: item.name.clone() };
        let effect = self.effect_of(&id, Kind::Tool, &item.definition);
        let changed = self.catalog.overrides.shown(&id);
        let own = changed.as_ref().map_or(&item.definition, |shown| &shown.definition);
        let masked = self.catalog.screens.shown_definition(server, own);
        let name = changed.as_ref().map_or(&item.name, |shown| &shown.name);
        ToolView::new(id, name.clone(), effect, masked.as_ref().unwrap_or(own))
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

    /// Returns the items of one kind in `gathered` that `caller` could be permitted to use.
    ///
    /// Tools whose schema cannot be used are left out. For a template, rules match the text of the
    /// template.
    pub fn visible_items<'a>(
        &self,
        gathered: &'a Gathered,
        kind: Kind,
        caller: &Caller,
    ) -> Vec<(&'a ServerName, &'a Item)> {
        let listed = |(server, item): &(&ServerName, &Item)| {
            let id = ItemId { server: (*server).clone(), item: item.name.clone() };
            self.is_listed(&id, kind, &item.definition, caller)
                && match kind {
                    Kind::Tool => self.is_usable(server, item),
                    Kind::Prompt | Kind::Resource => {
                        self.catalog.screens.blocked(server, &item.definition).is_none()
                    }
                }
        };
        let lists = gathered.lists.iter();
        let all = lists.flat_map(|(server, items)| items.iter().map(move |item| (server, item)));
        all.filter(listed).collect()
    }

    /// Estimates how many tokens the tools of a server that `caller` sees cost a model.
    pub fn tokens(&self, server: &ServerName, tools: &[Item], caller: &Caller) -> usize {
        self.tally(server, tools, caller).tokens
    }

    /// Counts the tools of a server that `caller` is shown, and estimates their cost.
    pub fn tally(&self, server: &ServerName, tools: &[Item], caller: &Caller) -> Tally {
        let cost = |(id, tool): &(ItemId, &Item)| match self.catalog.overrides.shown(id) {
            Some(shown) => tokens(&shown.definition),
            None => tokens(&tool.definition),
        };
        let mut tally = Tally::default();
        for shown in self.shown(server, tools, caller) {
            tally.tools += 1;
            tally.tokens += cost(&shown);
        }
        tally
    }

    /// Returns the tools of a server that `caller` is shown.
    fn shown<'a>(
        &'a self,
        server: &'a ServerName,
        tools: &'a [Item],
        caller: &'a Caller,
    ) -> impl Iterator<Item = (ItemId, &'a Item)> {
        let id = |tool: &Item| ItemId { server: server.clone(), item: tool.name.clone() };
        let all = tools.iter().map(move |tool| (id(tool), tool));
        all.filter(|(id, tool)| {
            self.is_listed(id, Kind::Tool, &tool.definition, caller) && self.is_usable(server, tool)
        })
    }

    /// True if `caller` is shown a tool: calling it could be permitted and its schema can be used.
    pub fn shows_tool(&self, caller: &Caller, server: &ServerName, tool: &Item) -> bool {
        let id = ItemId { server: server.clone(), item: tool.name.clone() };
        let effect = self.effect_of(&id, Kind::Tool, &tool.definition);
        self.could_permit(&id, Kind::Tool, effect, caller) && self.is_usable(server, tool)
    }

    /// Counts the tools of a server that `caller` is shown.
    pub fn count_shown(&self, server: &ServerName, tools: &[Item], caller: &Caller) -> usize {
        self.shown(server, tools, caller).count()
    }

    /// True if `caller` is shown an item.
    ///
    /// The effect is computed only where it makes a difference, because a first list has many
    /// items, of which few are ever used.
    fn is_listed(&self, id: &ItemId, kind: Kind, definition: &Json, caller: &Caller) -> bool {
        let could = |effect| self.could_permit(id, kind, effect, caller);
        match [Effect::Read, Effect::Write, Effect::Unknown].map(could) {
            [true, true, true] => true,
            [false, false, false] => false,
            _ => could(self.effect_of(id, kind, definition)),
        }
    }

    /// True if `caller` could be permitted to read a resource.
    pub fn shows_resource(&self, caller: &Caller, server: &ServerName, uri: &str) -> bool {
        let id = ItemId { server: server.clone(), item: uri.to_owned() };
        self.could_permit(&id, Kind::Resource, Effect::Read, caller)
    }

    /// True if `caller` could be permitted to use an item, given the right arguments.
    pub(crate) fn could_permit(
        &self,
        id: &ItemId,
        kind: Kind,
        effect: Effect,
        caller: &Caller,
    ) -> bool {
        self.ruling_on(id, kind, effect, caller).verdict != Verdict::Deny
    }

    /// The ruling on an item whose arguments are not known.
    pub(crate) fn ruling_on(
        &self,
        id: &ItemId,
        kind: Kind,
        effect: Effect,
        caller: &Caller,
    ) -> Ruling {
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
        self.pins.tighten(id, standing, self.policy.decide(&asked))
    }
}

/// Returns the names of `items`, for completions and hints.
pub fn names(items: &[Item]) -> impl Iterator<Item = &str> {
    items.iter().map(|item| item.name.as_str())
}
