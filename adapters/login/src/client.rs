//! Our client at an authorization server: the configured one, a metadata document, or one that is
//! registered (RFC 7591).
//!
//! **Invariant:** a registered client is used only at the issuer that registered it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_hub::ports::{Clock, Vault, VaultError, VaultKey, VaultKind};
use capstan_model::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use crate::discovery::Discovered;
use crate::error::LoginError;
use crate::settings::{ClientAuth, OAuthSettings};
use crate::web::{Endpoint, Form, Web};
use crate::{assertion, device};

/// The type of a signed token that authenticates a client.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client, as it is stored. `Debug` shows its ID only.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    secret: Option<String>,
    auth: ClientAuth,
    /// The callback that it is registered with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) redirect_uri: Option<String>,
    /// The time at which its secret expires, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    expires: Option<i64>,
    /// True if it was registered by us and can be registered again.
    pub(crate) registered: bool,
}

#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<i64>,
    token_endpoint_auth_method: Option<String>,
}

/// The origin of the client to use.
pub(crate) enum Choice {
    /// A client from the configuration, or the address of a metadata document.
    Known(Client),
    /// A client that must be registered, at this endpoint.
    Register(Endpoint),
}

// === impl Choice ===

impl Choice {
    /// Chooses the client: configured, then a metadata document, then a registered one.
    pub(crate) fn of(
        discovered: &Discovered,
        settings: &OAuthSettings,
    ) -> Result<Self, LoginError> {
        let document = settings.client_id.as_deref().filter(|id| is_document(id));
        if let Some(id) = settings.client_id.as_deref().filter(|_| document.is_none()) {
            return Ok(Self::Known(Client::configured(id, discovered, settings)));
        }
        if let Some(id) = document.filter(|_| discovered.reads_documents) {
            return Ok(Self::Known(Client::public(id)));
        }
        match (&discovered.registration, document) {
            (Some(endpoint), _) => Ok(Self::Register(endpoint.clone())),
            // With configured endpoints it is not known what the authorization server reads.
            (None, Some(id)) if discovered.issuer.is_none() => Ok(Self::Known(Client::public(id))),
            (None, _) => Err(LoginError::NoClient(
                "the authorization server does not register clients, and no client is configured"
                    .to_owned(),
            )),
        }
    }
}

/// True for a client ID that is the address of a metadata document.
fn is_document(id: &str) -> bool {
    id.strip_prefix("https://").is_some_and(|rest| rest.contains('/'))
}

// === impl Client ===

impl Client {
    /// A client without a secret.
    pub(crate) fn public(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            secret: None,
            auth: ClientAuth::None,
            redirect_uri: None,
            expires: None,
            registered: false,
        }
    }

    /// A client at the identity provider of a company.
    pub(crate) fn at_provider(id: &str, secret: Option<&Secret<String>>) -> Self {
        let auth = if secret.is_some() { ClientAuth::Post } else { ClientAuth::None };
        let secret = secret.map(|secret| secret.reveal().clone());
        // Its secret is its own, not that of the client at the authorization server.
        Self { secret, auth, registered: true, ..Self::public(id) }
    }

    /// A client that another program has registered.
    pub(crate) fn imported(
        id: &str,
        secret: Option<Secret<String>>,
        discovered: &Discovered,
    ) -> Self {
        let methods = discovered.auth_methods.as_deref();
        let takes = |word: &str| methods.is_some_and(|all| all.iter().any(|one| one == word));
        let auth = match &secret {
            None => ClientAuth::None,
            Some(_) if takes("client_secret_basic") && !takes("client_secret_post") => {
                ClientAuth::Basic
            }
            Some(_) => ClientAuth::Post,
        };
        let secret = secret.map(|secret| secret.reveal().clone());
        Self { auth, secret, registered: true, ..Self::public(id) }
    }

    /// The client of the configuration. Its secrets are not stored with it.
    fn configured(id: &str, discovered: &Discovered, settings: &OAuthSettings) -> Self {
        let supports = |word: &str| {
            discovered.auth_methods.as_ref().is_none_or(|all| all.iter().any(|one| one == word))
        };
        let has_secret = settings.client_secret.is_some();
        let auth = settings.client_auth.unwrap_or(match settings.private_key {
            Some(_) => ClientAuth::PrivateKey,
            None if !has_secret => ClientAuth::None,
            // The standard's default, unless the metadata says otherwise.
            None if supports("client_secret_basic") || !supports("client_secret_post") => {
                ClientAuth::Basic
            }
            None => ClientAuth::Post,
        });
        Self { auth, ..Self::public(id) }
    }

    /// Registers a client for this callback.
    pub(crate) async fn register(
        web: &Web,
        at: &Endpoint,
        discovered: &Discovered,
        redirect_uri: Option<&str>,
    ) -> Result<Self, LoginError> {
        let method = registered_method(discovered.auth_methods.as_deref());
        // A gateway has a public callback, a person's own machine has a loopback one.
        let is_public = redirect_uri.is_some_and(|uri| uri.starts_with("https://"));
        let kind = if is_public { "web" } else { "native" };
        let mut request = json!({
            "client_name": "Capstan",
            "application_type": kind,
            "token_endpoint_auth_method": method,
        });
        let (uris, responses, grants) = if let Some(uri) = redirect_uri {
            (json!([uri]), json!(["code"]), json!(["authorization_code", "refresh_token"]))
        } else {
            (json!([]), json!([]), json!([device::GRANT, "refresh_token"]))
        };
        put(&mut request, "redirect_uris", uris);
        put(&mut request, "response_types", responses);
        put(&mut request, "grant_types", grants);
        let answer = web.post_json(at, &request).await?;
        if let Some(error) = answer.error(at) {
            let LoginError::Refused { code, description } = error else { return Err(error) };
            return Err(LoginError::NoClient(format!(
                "the authorization server refused to register a client: {code} {description}"
            )));
        }
        let registration = Registration::deserialize(&answer.body)
            .map_err(|_| at.unusable("it names no client"))?;
        Ok(registration.client(redirect_uri))
    }

    /// Reads the client that is registered at an issuer, if it can still be used.
    pub(crate) async fn stored(
        vault: &dyn Vault,
        clock: &dyn Clock,
        issuer: &str,
    ) -> Result<Option<Self>, LoginError> {
        let Some(text) = vault.read(&key(issuer)).await? else { return Ok(None) };
        let client: Option<Self> = serde_json::from_str(text.reveal()).ok();
        let now = clock.now().as_second();
        Ok(client.filter(|client| client.expires.is_none_or(|expires| now < expires)))
    }

    /// Stores a registered client.
    pub(crate) async fn store(&self, vault: &dyn Vault, issuer: &str) -> Result<(), LoginError> {
        let text = serde_json::to_string(self).unwrap_or_default();
        vault.write(&key(issuer), &Secret::new(text)).await?;
        Ok(())
    }

    /// Forgets the client that is registered at an issuer, because it is rejected there.
    pub(crate) async fn forget(vault: &dyn Vault, issuer: &str) -> Result<(), VaultError> {
        vault.remove(&key(issuer)).await.map(drop)
    }

    /// Adds the client to a form, and returns the header that authenticates it, if one does.
    pub(crate) fn authenticate(
        &self,
        form: &mut Form,
        settings: &OAuthSettings,
        audience: &str,
        clock: &dyn Clock,
    ) -> Result<Option<(String, String)>, LoginError> {
        let configured = settings.client_secret.as_ref().filter(|_| !self.registered);
        let secret = configured.map(|secret| secret.reveal().as_str()).or(self.secret.as_deref());
        match (self.auth, secret) {
            (ClientAuth::PrivateKey, _) => {
                let key = settings.private_key.as_ref().ok_or_else(|| missing("private_key"))?;
                let signed = assertion::sign(&self.id, key, audience, clock)?;
                form.add("client_id", &self.id);
                form.add("client_assertion_type", ASSERTION);
                form.add("client_assertion", signed.reveal());
                Ok(None)
            }
            (ClientAuth::None, _) => {
                form.add("client_id", &self.id);
                Ok(None)
            }
            (ClientAuth::Post, Some(secret)) => {
                form.add("client_id", &self.id);
                form.add("client_secret", secret);
                Ok(None)
            }
            (ClientAuth::Basic, Some(secret)) => {
                // Both are escaped before they are joined, so that neither can contain the colon.
                let escape = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", escape(&self.id), escape(secret));
                let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
                Ok(Some(("authorization".to_owned(), value)))
            }
            (ClientAuth::Basic | ClientAuth::Post, None) => Err(missing("client_secret")),
        }
    }

    /// The secret values of the client.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secret.as_deref().into_iter()
    }
}

// === impl Registration ===

impl Registration {
    fn client(self, redirect_uri: Option<&str>) -> Client {
        let secret = self.client_secret.filter(|secret| !secret.is_empty());
        let auth = match (self.token_endpoint_auth_method.as_deref(), &secret) {
            (Some("none"), _) | (_, None) => ClientAuth::None,
            (Some("client_secret_post"), Some(_)) => ClientAuth::Post,
            (_, Some(_)) => ClientAuth::Basic,
        };
        Client {
            id: self.client_id,
            secret,
            auth,
            redirect_uri: redirect_uri.map(ToOwned::to_owned),
            // Zero means that it never expires.
            expires: self.client_secret_expires_at.filter(|expires| *expires != 0),
            registered: true,
        }
    }
}

/// The method to register with: none where that is possible, because a program of users keeps no
/// secret.
fn registered_method(supported: Option<&[String]>) -> &'static str {
    let known = ["none", "client_secret_basic", "client_secret_post"];
    let supports = |word: &&&str| supported.is_none_or(|all| all.iter().any(|one| one == **word));
    known.iter().find(supports).copied().unwrap_or("none")
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

fn key(issuer: &str) -> VaultKey {
    VaultKey { kind: VaultKind::Client, name: issuer.to_owned() }
}

fn missing(key: &str) -> LoginError {
    LoginError::Settings(format!("`oauth_config` has no `{key}`, which the client needs"))
}
