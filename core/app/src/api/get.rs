//! Shows one server in full.

use std::sync::Arc;

use capstan_config::{Kind, Severity};
use capstan_hub::catalog::capped_instructions;
use capstan_hub::ports::{About, BoxFuture, Lane, Listing};
use capstan_hub::{Freshness, Hub};
use capstan_model::{ServerName, ServerState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::list::count_visible;
use super::reading::saved_at;
use super::{Interact, Local, Operation, Reading, Source};
use crate::{AppError, HubPurpose, scope_word};

/// Shows one server; the result is a map in display order.
#[derive(Debug, Serialize, Deserialize)]
pub struct GetServer {
    /// The slug or display name.
    pub name: String,
    /// How the lists are read.
    pub reading: Reading,
}

/// Lines of stderr shown for a failed server.
const STDERR_SHOWN: usize = 10;

impl Operation for GetServer {
    const NAME: &'static str = "servers/get";
    const PURPOSE: HubPurpose = HubPurpose::Lists;
    type Output = Map<String, Value>;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Self::Output, AppError>> {
        Box::pin(get(self, local, &**front))
    }
}

async fn get(
    asked: &GetServer,
    local: &Local,
    front: &dyn Interact,
) -> Result<Map<String, Value>, AppError> {
    let hub = &*local.hub;
    let entry = local.setup.server(&asked.name)?;
    local.tell_problems(front, |problem| {
        let is_error = problem.severity == Severity::Error;
        problem.server.is_none() || (problem.server.as_ref() == Some(&entry.name) && !is_error)
    });
    if !hub.has(&entry.name) {
        return Err(AppError::not_found(format!("server `{}` is not in use", asked.name)));
    }
    let saved = saved_at(hub, &entry.name, Listing::Tools, asked.reading);
    if saved.is_none() {
        front.status(&format!("starting `{}`", entry.name));
    }
    let about = introduce(hub, &entry.name, asked.reading.source).await;
    let mut shown = Map::new();
    let mut set = |key: &str, value: Value| {
        if !value.is_null() {
            shown.insert(key.to_owned(), value);
        }
    };
    set("name", json!(entry.name));
    if entry.display != entry.name.as_str() {
        set("display", json!(entry.display));
    }
    set("file", json!(format!("{}:{}", entry.origin.file, entry.origin.line)));
    set("scope", json!(scope_word(&entry.origin)));
    if let Ok(server) = &entry.status {
        set("transport", json!(server.kind.as_str()));
        set("target", json!(server.target));
        if let Kind::Stdio(program) = &server.kind {
            set("cwd", json!(program.cwd));
        }
        set("description", json!(server.description));
        set("trust", json!(server.trust));
        let networks: Vec<String> = server.networks.iter().map(ToString::to_string).collect();
        if !networks.is_empty() {
            set("networks", json!(networks));
        }
        set("timeout", json!(humantime::format_duration(server.timeout).to_string()));
    }
    counts(hub, &entry.name, about.as_deref(), &mut set).await;
    let state = hub.state(&entry.name);
    let reason = state.as_ref().and_then(ServerState::reason);
    set("discovery", json!(discovery(state.as_ref(), about.as_deref())));
    set("state", json!(state.as_ref().map(|state| state.name().as_str())));
    if let Some(seen) = saved {
        set("stale", json!(true));
        set("seen", json!(seen));
    }
    set("error", json!(reason));
    if reason.is_some() {
        let lines = hub.stderr(&entry.name);
        let tail = lines.get(lines.len().saturating_sub(STDERR_SHOWN)..).unwrap_or_default();
        set("stderr", if tail.is_empty() { Value::Null } else { json!(tail) });
    }
    Ok(shown)
}

/// The identity of a server. Its state tells the reason of a failure.
async fn introduce(hub: &Hub, server: &ServerName, source: Source) -> Option<Arc<About>> {
    if source == Source::Servers {
        drop(hub.start(server).await);
    }
    hub.introduce(server, Lane::ANY).await.ok()
}

async fn counts(
    hub: &Hub,
    server: &ServerName,
    about: Option<&About>,
    set: &mut impl FnMut(&str, Value),
) {
    let Some(about) = about else { return };
    set("protocol", json!(about.protocol));
    set("title", json!(about.title));
    set("version", json!(about.version));
    let screens = &hub.catalog().screens;
    let text = about.instructions.as_deref();
    let instructions = text.and_then(|text| capped_instructions(screens, server, text));
    set("instructions", json!(instructions));
    for (key, listing) in [
        ("tools", Listing::Tools),
        ("prompts", Listing::Prompts),
        ("resources", Listing::Resources),
        ("templates", Listing::Templates),
    ] {
        // A list that was never read does not start a server that is known.
        let is_connected =
            matches!(hub.state(server), Some(ServerState::Connected | ServerState::Degraded(_)));
        if !is_connected && hub.saved_at(server, listing).is_none() {
            continue;
        }
        if let Ok(items) = hub.list(server, listing, Freshness::Remembered).await {
            let all = items.len();
            let count = count_visible(hub, server, listing, items);
            set(key, json!(count));
            if listing == Listing::Tools && count < all {
                set("hidden", json!(all - count));
            }
        }
    }
}

/// How far the server's lists are known.
fn discovery(state: Option<&ServerState>, about: Option<&About>) -> &'static str {
    match (state, about) {
        (Some(ServerState::Connecting), _) => "in_progress",
        (_, Some(_)) => "completed",
        (_, None) => "not_started",
    }
}
