//! Lists the resources and prompts of servers.

use std::sync::Arc;

use capstan_hub::Hub;
use capstan_hub::catalog::{Gathered, Patience};
use capstan_hub::ports::{BoxFuture, Listing};
use capstan_model::{Kind, ServerName, ServerState};
use capstan_wire::{Json, object};
use serde::{Deserialize, Serialize};

use super::interact::{Need, Slot};
use super::{Interact, Local, NoServers, Operation, operator};
use crate::AppError;

/// Lists resources or templates.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListResources {
    /// One server, by its slug or display name; `None` for all.
    pub server: Option<String>,
    /// Templates instead of resources.
    pub templates: bool,
    /// How long to wait for servers.
    pub wait: Patience,
}

/// Lists prompts; the name of a prompt shows only that one.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListPrompts {
    /// A server or a prompt; `None` for all prompts.
    pub name: Option<String>,
    /// How long to wait for servers.
    pub wait: Patience,
}

/// The result of [`ListResources`] and [`ListPrompts`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Items {
    /// The items, in the order of the configuration.
    pub items: Vec<ListedItem>,
    /// True if one item was requested by name.
    pub named: bool,
    /// Servers that are missing from the list.
    pub missing: Missing,
    /// The reason why there are no items; `None` if there are servers.
    pub none: Option<NoServers>,
}

/// One resource, template or prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedItem {
    /// The server.
    pub server: ServerName,
    /// The name or URI.
    pub name: String,
    /// The definition, as the server wrote it.
    pub definition: Json,
}

/// Servers that are missing from a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Servers that failed, with their errors.
    pub failed: Vec<(ServerName, String)>,
    /// Servers that have not answered yet.
    pub pending: Vec<ServerName>,
}

impl Operation for ListResources {
    const NAME: &'static str = "resources/list";
    type Output = Items;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Items, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            let listing = if self.templates { Listing::Templates } else { Listing::Resources };
            let gathered = match &self.server {
                Some(server) => local.gather_one(&**front, listing, server).await?,
                None => local.gather(&**front, listing, self.wait).await,
            };
            Ok(Items::new(local, &gathered, Kind::Resource))
        })
    }
}

impl Operation for ListPrompts {
    const NAME: &'static str = "prompts/list";
    type Output = Items;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Items, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            if let Some(name) = self.name.as_deref().filter(|name| local.names_item(name)) {
                front.status(&format!("looking for `{name}`"));
                let (id, prompt) = local.hub.find_prompt(&operator(), name).await?;
                let item = ListedItem {
                    server: id.server,
                    name: prompt.name,
                    definition: prompt.definition,
                };
                let missing = Missing::default();
                return Ok(Items { items: vec![item], named: true, missing, none: None });
            }
            let gathered = match &self.name {
                Some(server) => local.gather_one(&**front, Listing::Prompts, server).await?,
                None => local.gather(&**front, Listing::Prompts, self.wait).await,
            };
            local.remember(Kind::Prompt, &gathered);
            Ok(Items::new(local, &gathered, Kind::Prompt))
        })
    }
}

// === impl Items ===

impl Items {
    fn new(local: &Local, gathered: &Gathered, kind: Kind) -> Self {
        let visible = local.hub.visible_items(gathered, kind, &operator());
        let items = visible.into_iter().map(|(server, item)| ListedItem {
            server: server.clone(),
            name: item.name.clone(),
            definition: item.definition.clone(),
        });
        Self {
            items: items.collect(),
            named: false,
            missing: Missing::of(&local.hub, gathered),
            none: local.none(),
        }
    }
}

// === impl ListedItem ===

impl ListedItem {
    /// The arguments that a prompt declares, in declaration order.
    pub fn slots(&self) -> Vec<Slot> {
        slots(&self.definition)
    }
}

// === impl Missing ===

impl Missing {
    /// The servers that a list lacks. Disabled servers do not count as missing.
    pub fn of(hub: &Hub, gathered: &Gathered) -> Self {
        let disabled = |server: &ServerName| hub.state(server) == Some(ServerState::Disabled);
        let failed = gathered.failed.iter().filter(|(server, _)| !disabled(server));
        Self {
            failed: failed.map(|(server, error)| (server.clone(), error.to_string())).collect(),
            pending: gathered.pending.clone(),
        }
    }
}

/// The arguments that a prompt declares, in declaration order.
pub(super) fn slots(prompt: &Json) -> Vec<Slot> {
    let declared = object::get(prompt, "arguments").and_then(|list| object::items(&list).ok());
    let slot = |argument: &Json| {
        let required = object::get(argument, "required").is_some_and(|r| r.as_bytes() == b"true");
        Some(Slot {
            name: object::get_string(argument, "name")?,
            need: if required { Need::Required } else { Need::Optional },
            description: object::get_string(argument, "description"),
        })
    };
    declared.unwrap_or_default().iter().filter_map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_prompt_are_read_as_far_as_they_make_sense() {
        let prompt = r#"{"arguments":[{"name":"a","required":true},{"name":"b","description":"B"},
                         7,{"required":true},{"name":"c","required":"true"}]}"#;
        let read = slots(&Json::parse(prompt.to_owned()).unwrap());
        let read: Vec<(&str, Need)> =
            read.iter().map(|slot| (slot.name.as_str(), slot.need)).collect();
        let expected = [("a", Need::Required), ("b", Need::Optional), ("c", Need::Optional)];
        assert_eq!(read, expected);
        for odd in ["{}", r#"{"arguments":{}}"#, "[]"] {
            assert_eq!(slots(&Json::parse(odd.to_owned()).unwrap()), []);
        }
    }
}
