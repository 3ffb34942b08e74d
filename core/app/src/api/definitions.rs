//! Lists the definitions of tools as their servers wrote them, also of tools that are hidden.

use std::sync::Arc;

use capstan_hub::catalog::Gathered;
use capstan_hub::ports::{BoxFuture, Item, Lane, Listing};
use capstan_model::{Kind, ServerName};
use capstan_wire::Json;
use serde::{Deserialize, Serialize};

use super::items::Missing;
use super::reading::{Provenance, Reading};
use super::{Interact, Local, NoServers, Operation};
use crate::{AppError, HubPurpose};

/// Lists the definitions of tools, for a review of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListDefinitions {
    /// One server, by its slug or display name; `None` for all.
    pub server: Option<String>,
    /// How the lists are read.
    pub reading: Reading,
}

/// The result of [`ListDefinitions`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Definitions {
    /// The servers, in the order of the configuration.
    pub servers: Vec<ServerDefinitions>,
    /// Servers that are missing from the list.
    pub missing: Missing,
    /// The reason why there are no tools; `None` if there are servers.
    pub none: Option<NoServers>,
    /// A required server that failed.
    pub required: Option<ServerName>,
}

/// The definitions of one server's tools.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerDefinitions {
    /// The server.
    pub server: ServerName,
    /// The definitions, each with the name of its tool.
    pub tools: Vec<(String, Json)>,
    /// The server's instructions, as it wrote them, if they are known.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Where they come from.
    pub provenance: Provenance,
}

impl Operation for ListDefinitions {
    const NAME: &'static str = "tools/definitions";
    const PURPOSE: HubPurpose = HubPurpose::Lists;
    type Output = Definitions;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Definitions, AppError>> {
        Box::pin(async move {
            let (front, reading) = (&**front, self.reading);
            local.tell_problems_of_list(front);
            let read = match &self.server {
                Some(name) => local.gather_one(front, Listing::Tools, name, reading).await?,
                None => local.gather(front, Listing::Tools, reading).await,
            };
            local.remember(Kind::Tool, &read);
            let tool = |item: &Item| (item.name.clone(), item.definition.clone());
            let servers = read.gathered.lists.iter().map(|(server, items)| ServerDefinitions {
                server: server.clone(),
                tools: items.iter().map(tool).collect(),
                instructions: instructions(local, server),
                provenance: read.provenance(server),
            });
            Ok(Definitions {
                servers: servers.collect(),
                missing: Missing::of(&local.hub, &read.gathered),
                none: local.none(),
                required: local.required(read.gathered.failed.keys()),
            })
        })
    }
}

/// The instructions of a server, as far as they are known. Connects nothing.
fn instructions(local: &Local, server: &ServerName) -> Option<String> {
    local.hub.about_in(server, Lane::ANY)?.instructions.clone()
}

// === impl Definitions ===

impl Definitions {
    /// The definitions as lists of a hub.
    pub fn gathered(&self) -> Gathered {
        let mut gathered = Gathered::default();
        for one in &self.servers {
            let item = |(name, definition): &(String, Json)| Item {
                name: name.clone(),
                definition: definition.clone(),
            };
            gathered.lists.insert(one.server.clone(), one.tools.iter().map(item).collect());
        }
        gathered
    }
}
