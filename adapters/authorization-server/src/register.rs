//! Dynamic registration of clients, RFC 7591.

use std::time::Duration;

use capstan_http::StatusCode;
use capstan_hub::ports::{ClientSource, StoredClient};
use serde::Deserialize;
use serde_json::json;

use crate::error::OauthError;
use crate::events::Event;
use crate::http::{Request, Response};
use crate::random;
use crate::redirect;
use crate::server::AuthorizationServer;

/// Most clients that are registered at the same time.
pub(crate) const MAX_CLIENTS: u32 = 1000;

/// Time after which a client that nobody let in is forgotten.
const UNUSED_FOR: Duration = Duration::from_hours(7 * 24);

/// Time after its last use at which a client is forgotten.
pub(crate) const USED_FOR: Duration = Duration::from_hours(365 * 24);

/// Most redirect addresses of a client.
const MAX_REDIRECTS: usize = 16;

/// The grants that the server offers.
const GRANTS: [&str; 2] = ["authorization_code", "refresh_token"];

/// The metadata that a client sends. Its logo and links are not used.
#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    redirect_uris: Vec<String>,
    client_name: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
}

// === impl AuthorizationServer ===

impl AuthorizationServer {
    pub(crate) async fn register(&self, request: &Request) -> Result<Response, OauthError> {
        let now = self.ports.clock.monotonic();
        if !self.limits.registrations.admit(request.peer, now) {
            return Err(OauthError::too_many());
        }
        if !request.has_kind("application/json") {
            return Err(bad("the body must be `application/json`"));
        }
        let metadata: Metadata = serde_json::from_slice(&request.body)
            .map_err(|_| bad("the body is not the metadata of a client"))?;
        self.check_redirects(&metadata.redirect_uris)?;
        let asked = metadata.grant_types.unwrap_or_else(|| GRANTS.map(str::to_owned).to_vec());
        let grants: Vec<&str> =
            GRANTS.into_iter().filter(|grant| asked.iter().any(|word| word == grant)).collect();
        if !grants.contains(&"authorization_code") {
            return Err(bad("`grant_types` must contain `authorization_code`"));
        }
        let codes = |types: &Vec<String>| types.iter().any(|word| word == "code");
        if metadata.response_types.as_ref().is_some_and(|types| !codes(types)) {
            return Err(bad("`response_types` must contain `code`"));
        }
        let now = self.ports.clock.now();
        let client = StoredClient {
            id: format!("mcp_{}", random::text().map_err(|_| unavailable())?),
            name: metadata.client_name.as_deref().and_then(clean_name),
            redirect_uris: metadata.redirect_uris,
            source: ClientSource::Registered,
            created_at: now,
            used_at: now,
            expires_at: now.checked_add(UNUSED_FOR).unwrap_or(now),
        };
        if !self.ports.store.add_client(&client, MAX_CLIENTS).await? {
            return Err(unavailable());
        }
        self.record(Event::Registered { client: &client.id, peer: request.peer });
        let mut body = json!({
            "client_id": client.id,
            "client_id_issued_at": now.as_second(),
            "redirect_uris": client.redirect_uris,
            "grant_types": grants,
            "response_types": ["code"],
            // Clients prove possession of the code with PKCE, so that none gets a secret.
            "token_endpoint_auth_method": "none",
        });
        if let (Some(body), Some(name)) = (body.as_object_mut(), client.name) {
            body.insert("client_name".to_owned(), name.into());
        }
        Ok(Response::json(StatusCode::CREATED, &body))
    }

    fn check_redirects(&self, uris: &[String]) -> Result<(), OauthError> {
        let wrong = |words: String| OauthError::new("invalid_redirect_uri", words);
        if uris.is_empty() || uris.len() > MAX_REDIRECTS {
            let words = format!("`redirect_uris` must have 1 to {MAX_REDIRECTS} addresses");
            return Err(wrong(words));
        }
        for uri in uris {
            redirect::check(uri, &self.settings.redirects).map_err(|error| {
                let shown: String = uri.chars().filter(char::is_ascii_graphic).take(200).collect();
                wrong(format!("`{shown}` {error}"))
            })?;
        }
        Ok(())
    }
}

/// Cleans the name of a client, for display.
pub(crate) fn clean_name(name: &str) -> Option<String> {
    let name = capstan_model::caller::label(name)?;
    Some(name.chars().take(80).collect())
}

fn bad(words: &str) -> OauthError {
    OauthError::new("invalid_client_metadata", words)
}

fn unavailable() -> OauthError {
    OauthError {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "temporarily_unavailable",
        description: "no further client can be registered now".to_owned(),
    }
}
