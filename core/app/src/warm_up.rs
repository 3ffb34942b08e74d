//! Connects servers once, so that their lists are known before a client asks for them.

use std::time::Duration;

use capstan_hub::Hub;
use capstan_hub::catalog::{Ask, Patience};
use capstan_hub::ports::{BoxFuture, Listing};
use capstan_model::ServerName;
use serde::Serialize;

use crate::{AppError, Setup};

/// Connects servers once, and stores their lists as a gateway does.
pub trait WarmUp: Send + Sync {
    /// Connects these servers, all at the same time, and stops them.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    fn warm_up<'a>(
        &'a self,
        setup: &'a Setup,
        servers: &'a [ServerName],
        limit: Duration,
    ) -> BoxFuture<'a, Result<Vec<Warmed>, AppError>>;
}

/// A server that was connected once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warmed {
    /// The server.
    pub server: ServerName,
    /// The number of its tools; `None` if it could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// The reason why it could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Lists the items of servers, with this limit on the wait for all of them.
pub async fn list_once(hub: &Hub, servers: &[ServerName], limit: Duration) -> Vec<Warmed> {
    let how = |name: &ServerName| if servers.contains(name) { Ask::List } else { Ask::Nothing };
    let tools = hub.gather_from(Listing::Tools, Patience::UpTo(limit), &how).await;
    let answered =
        |name: &ServerName| if tools.lists.contains_key(name) { how(name) } else { Ask::Nothing };
    for listing in [Listing::Prompts, Listing::Resources] {
        // These lists are a convenience; a failure shows when they are used.
        drop(hub.gather_from(listing, Patience::UpTo(limit), &answered).await);
    }
    let known = servers.iter().filter(|name| hub.has(name));
    let warmed = known.map(|name| {
        let found = tools.lists.get(name).map(|items| hub.count_usable(name, items));
        let failed = tools.failed.get(name).map(ToString::to_string);
        let error = match found {
            Some(_) => None,
            None => Some(failed.unwrap_or_else(|| format!("no answer within {limit:?}"))),
        };
        Warmed { server: name.clone(), tools: found, error }
    });
    warmed.collect()
}
