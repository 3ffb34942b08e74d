//! Lists the resources and prompts of servers.

use std::sync::Arc;

use capstan_hub::Hub;
use capstan_hub::catalog::Gathered;
use capstan_hub::ports::{BoxFuture, Listing};
use capstan_model::{Kind, ServerName, ServerState, Target};
use capstan_wire::{Json, object};
use serde::{Deserialize, Serialize};

use super::interact::{Need, Slot};
use super::reading::{Provenance, ReadLists, Reading};
use super::{Interact, Local, NoServers, Operation, operator};
use crate::{AppError, HubPurpose};

/// Lists resources or templates.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListResources {
    /// One server, by its slug or display name; `None` for all.
    pub server: Option<String>,
    /// Templates instead of resources.
    pub templates: bool,
    /// How the lists are read.
    pub reading: Reading,
}

/// Lists prompts; the name of a prompt shows only that one.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListPrompts {
    /// A server or a prompt; `None` for all prompts.
    pub name: Option<String>,
    /// How the lists are read.
    pub reading: Reading,
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
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
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
    const PURPOSE: HubPurpose = HubPurpose::Lists;
    type Output = Items;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Items, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            let listing = if self.templates { Listing::Templates } else { Listing::Resources };
            let read = match &self.server {
                Some(server) => local.gather_one(&**front, listing, server, self.reading).await?,
                None => local.gather(&**front, listing, self.reading).await,
            };
            Ok(Items::new(local, &read, Kind::Resource))
        })
    }
}

impl Operation for ListPrompts {
    const NAME: &'static str = "prompts/list";
    const PURPOSE: HubPurpose = HubPurpose::Lists;
    type Output = Items;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Items, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            if let Some(name) = self.name.as_deref().filter(|name| local.names_item(name)) {
                let item = find_prompt(local, &**front, name, self.reading).await?;
                let missing = Missing::default();
                return Ok(Items { items: vec![item], named: true, missing, none: None });
            }
            let (listing, reading) = (Listing::Prompts, self.reading);
            let read = match &self.name {
                Some(server) => local.gather_one(&**front, listing, server, reading).await?,
                None => local.gather(&**front, listing, reading).await,
            };
            local.remember(Kind::Prompt, &read);
            Ok(Items::new(local, &read, Kind::Prompt))
        })
    }
}

// === impl Items ===

impl Items {
    fn new(local: &Local, read: &ReadLists, kind: Kind) -> Self {
        let visible = local.hub.visible_items(&read.gathered, kind, &operator());
        let items = visible.into_iter().map(|(server, item)| ListedItem {
            server: server.clone(),
            name: item.name.clone(),
            definition: item.definition.clone(),
            provenance: read.provenance(server),
        });
        Self {
            items: items.collect(),
            named: false,
            missing: Missing::of(&local.hub, &read.gathered),
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

    /// True if no server is missing.
    pub fn is_empty(&self) -> bool {
        self.failed.is_empty() && self.pending.is_empty()
    }
}

/// Finds a prompt in a saved list if there is one, else in that of its server.
async fn find_prompt(
    local: &Local,
    front: &dyn Interact,
    name: &str,
    reading: Reading,
) -> Result<ListedItem, AppError> {
    let target = Target::prompt(name);
    for id in local.hub.ids_of(&target) {
        if let Some(read) = local.saved_list(Listing::Prompts, &id.server, reading).await {
            let found = Items::new(local, &read, Kind::Prompt).items.into_iter();
            if let Some(item) = found.into_iter().find(|item| item.name == id.item) {
                return Ok(item);
            }
        }
    }
    front.status(&format!("looking for `{name}`"));
    let (id, prompt) = local.hub.find_prompt(&operator(), name).await?;
    let provenance = Provenance::default();
    Ok(ListedItem {
        server: id.server,
        name: prompt.name,
        definition: prompt.definition,
        provenance,
    })
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
