//! Imports clients and refresh tokens from `auth_server.json`, so that nobody has to sign in again.

use std::collections::HashMap;
use std::time::Duration;

use capstan_hub::ports::{
    AuthorizationStore, ClientSource, Clock, StoreError, StoredClient, StoredCode, StoredGrant,
    StoredKey, StoredToken,
};
use capstan_model::Secret;
use jiff::Timestamp;
use serde::Deserialize;

use crate::random;
use crate::register::{MAX_CLIENTS, USED_FOR, clean_name};

/// Most refresh tokens that are imported.
const MAX_TOKENS: usize = 10_000;

/// The number of imported entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// New clients.
    pub clients: usize,
    /// New refresh tokens.
    pub tokens: usize,
}

/// The reason why nothing is imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The text is not the state of an authorization server.
    #[error("it is not the state of an authorization server: {0}")]
    Text(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    clients: HashMap<String, Client>,
    #[serde(default)]
    refresh_tokens: HashMap<String, Token>,
}

#[derive(Deserialize)]
struct Client {
    #[serde(rename = "client_id")]
    id: String,
    #[serde(rename = "client_name")]
    name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    created_at_unix: i64,
}

#[derive(Deserialize)]
struct Token {
    #[serde(rename = "token")]
    text: String,
    client_id: String,
    subject: String,
    #[serde(default)]
    roles: Vec<String>,
    expires_at_unix: i64,
}

/// Imports a text unless it was imported before: what was revoked since must not come back.
pub(crate) async fn import_once(
    text: &str,
    store: &dyn AuthorizationStore,
    resource: &str,
    clock: &dyn Clock,
) -> Result<Imported, ImportError> {
    let mark = StoredKey {
        id: random::digest(&format!("import {text}")),
        usage: format!("import {}", random::digest(text)),
        secret: Secret::default(),
        created_at: clock.now(),
    };
    if store.keys().await?.iter().any(|key| key.usage == mark.usage) {
        return Ok(Imported::default());
    }
    let imported = import(text, store, resource, clock.now()).await?;
    store.add_key(&mark, Timestamp::MIN).await?;
    Ok(imported)
}

/// Imports the clients and refresh tokens of a text. Entries that are known already are kept as
/// they are.
async fn import(
    text: &str,
    store: &dyn AuthorizationStore,
    resource: &str,
    now: Timestamp,
) -> Result<Imported, ImportError> {
    let state: State =
        serde_json::from_str(text).map_err(|error| ImportError::Text(error.to_string()))?;
    let mut imported = Imported::default();
    for client in state.clients.into_values() {
        let client = StoredClient {
            name: client.name.as_deref().and_then(clean_name),
            id: client.id,
            redirect_uris: client.redirect_uris,
            source: ClientSource::Imported,
            created_at: Timestamp::from_second(client.created_at_unix).unwrap_or(now).min(now),
            used_at: now,
            expires_at: now.checked_add(USED_FOR).unwrap_or(now),
        };
        imported.clients += usize::from(store.add_client(&client, MAX_CLIENTS).await?);
    }
    for token in state.refresh_tokens.into_values().take(MAX_TOKENS) {
        imported.tokens += usize::from(import_token(token, store, resource, now).await?);
    }
    Ok(imported)
}

async fn import_token(
    token: Token,
    store: &dyn AuthorizationStore,
    resource: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let digest = random::digest(&token.text);
    let Ok(expires_at) = Timestamp::from_second(token.expires_at_unix) else { return Ok(false) };
    let is_known = store.token(&digest).await?.is_some();
    let has_client = store.client(&token.client_id, now).await?.is_some();
    // Derived from the token, so that two imports make one grant.
    let id = random::digest(&format!("imported {digest}"));
    if is_known || !has_client || expires_at <= now || store.find_grant(&id).await?.is_some() {
        return Ok(false);
    }
    let grant = StoredGrant {
        id: id.clone(),
        client: token.client_id,
        subject: token.subject,
        roles: token.roles,
        scopes: Vec::new(),
        resource: resource.to_owned(),
        expires_at,
        revoked: false,
    };
    // A grant is saved with a code; this one cannot be redeemed, because it has expired.
    let code = StoredCode {
        digest: random::digest(&format!("no code {digest}")),
        redirect_uri: String::new(),
        challenge: String::new(),
        grant: id.clone(),
        expires_at: now.checked_sub(Duration::from_secs(1)).unwrap_or(now),
    };
    store.add_code(&code, &grant).await?;
    store.add_token(&StoredToken { digest, grant: id, expires_at, used_at: None }).await
}
