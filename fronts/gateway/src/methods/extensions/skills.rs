//! The skills of all servers as one list.

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::DIRECTORY;
use capstan_hub::ports::{About, Listing};
use capstan_hub::{ExtensionMethod, Hub, SideOp};
use capstan_model::ServerName;
use capstan_wire::{Json, compose, object};
use futures::future::join_all;

use super::ExtensionRequest;
use crate::client::Client;
use crate::exchange::answer::Payload;
use crate::gateway::Gateway;
use crate::methods::lists::Reader;
use crate::protocol::capabilities::SKILLS;
use crate::protocol::fault::Fault;

pub(super) const LIST: &str = "skills/list";
pub(super) const GET: &str = "skills/get";

/// Longest wait for the skills of one server.
const WAIT: Duration = Duration::from_secs(10);

/// Maximum number of pages that are read from one server.
const MAX_PAGES: usize = 64;

/// Maximum number of skills of one server.
const MAX_SKILLS: usize = 4096;

/// Number of skills on one page.
const PAGE: usize = 100;

/// The skills of one server.
struct Skills {
    entries: Vec<Json>,
    /// How long the list may be cached, in milliseconds, and if by anyone.
    ttl: u64,
    is_public: bool,
}

impl Gateway {
    /// `skills/list` at the endpoint of all servers.
    pub(super) async fn list_skills(
        self: &Arc<Self>,
        client: &Arc<Client>,
        params: &Json,
    ) -> Result<Payload, Fault> {
        let at = match object::get(params, "cursor").filter(|cursor| cursor.as_bytes() != b"null") {
            None => 0,
            Some(cursor) => {
                let cursor = cursor.read::<String>().ok();
                let at = cursor.and_then(|cursor| self.position(client, 's', &cursor));
                at.ok_or_else(|| Fault::invalid("`cursor` is unknown"))?
            }
        };
        let hub = self.hub();
        // A server that has listed its tools by then has also described itself.
        self.gather(&hub, Listing::Tools, Reader::Client).await;
        let reached =
            |server: &&ServerName| hub.policy().out_of_reach(&client.caller, server).is_none();
        let servers: Vec<&ServerName> = hub.servers().filter(reached).collect();
        let asked = servers.into_iter().map(|server| {
            let hub = &hub;
            async move {
                let about = hub.about_in(server, client.lane());
                let about = about.filter(|about| are_offered(about))?;
                drop(about);
                let read = read(hub, client, server, params);
                tokio::time::timeout(WAIT, read).await.ok().flatten()
            }
        });
        let all: Vec<Skills> = join_all(asked).await.into_iter().flatten().collect();
        let ttl = all.iter().map(|skills| skills.ttl).min().unwrap_or(0);
        let is_public = !all.is_empty() && all.iter().all(|skills| skills.is_public);
        let entries: Vec<&Json> = all.iter().flat_map(|skills| &skills.entries).collect();
        let page = compose::array(entries.iter().skip(at).take(PAGE).copied());
        let next = compose::string(&self.cursor(client, 's', at.saturating_add(PAGE)));
        let scope = compose::string(if is_public { "public" } else { "private" });
        let ttl = compose::number(ttl);
        let mut members = vec![("skills", &page)];
        if entries.len() > at.saturating_add(PAGE) {
            members.push(("nextCursor", &next));
        }
        members.extend([("ttlMs", &ttl), ("cacheScope", &scope)]);
        Ok(Payload::from(client.era.completion(compose::object(&members))))
    }
}

/// Reads the skills of one server; `None` if it cannot be asked. Each request is recorded.
async fn read(
    hub: &Arc<Hub>,
    client: &Client,
    server: &ServerName,
    params: &Json,
) -> Option<Skills> {
    let mut skills = Skills { entries: Vec::new(), ttl: u64::MAX, is_public: true };
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = object::without_member(params, "cursor").ok()?;
        let params = match &cursor {
            Some(cursor) => object::with_member(&params, "cursor", cursor).ok()?,
            None => params,
        };
        let op = SideOp::Extension { method: ExtensionMethod::parse(LIST)?, params };
        let request = ExtensionRequest::begin(Arc::clone(hub), client, Some(server), op);
        let page = match request.run(client, server, are_offered).await {
            Ok(page) => page,
            Err(error) => {
                tracing::debug!(%server, %error, "the skills of a server are left out");
                return None;
            }
        };
        let [entries, ttl, scope, next] =
            object::peek(&page, ["skills", "ttlMs", "cacheScope", "nextCursor"]);
        for entry in entries.and_then(|entries| object::items(&entries).ok())? {
            let uri = object::get_string(&entry, "uri");
            // A skill that the caller may not read is not shown.
            if skills.entries.len() >= MAX_SKILLS
                || !uri.is_some_and(|uri| hub.shows_resource(&client.caller, server, &uri))
            {
                continue;
            }
            let shown = hub.catalog().uris.shown_skill(server, &entry);
            skills.entries.push(shown.unwrap_or(entry));
        }
        skills.ttl = skills.ttl.min(ttl.and_then(|ttl| ttl.read().ok()).unwrap_or(0));
        skills.is_public &= scope.is_some_and(|scope| scope.as_bytes() == b"\"public\"");
        match next.filter(|next| next.as_bytes().starts_with(b"\"") && next.len() > 2) {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            Some(_) | None => break,
        }
    }
    Some(skills)
}

/// The result of a request about one skill or directory, with its URIs as clients see them.
pub(super) fn shown(hub: &Hub, server: &ServerName, method: &str, result: &Json) -> Option<Json> {
    let uris = &hub.catalog().uris;
    if method != GET {
        return uris.shown_in(server, result, DIRECTORY);
    }
    let skill = uris.shown_skill(server, &object::get(result, "skill")?)?;
    object::with_member(result, "skill", &skill).ok()
}

/// True if a server declares skills.
pub(super) fn are_offered(about: &About) -> bool {
    let extensions = about.capabilities.as_ref().and_then(|all| object::get(all, "extensions"));
    extensions.is_some_and(|extensions| object::get(&extensions, SKILLS).is_some())
}
