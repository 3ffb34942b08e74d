//! Finds the authorization server of a server: RFC 9728 (protected resource), RFC 8414 and
//! `OpenID` Connect (authorization server).
//!
//! **Invariant:** the metadata of a resource counts only for this resource, and the metadata of an
//! issuer only if it names exactly this issuer.

use capstan_http::Url;
use serde::Deserialize;

use crate::challenge::BearerChallenge;
use crate::error::LoginError;
use crate::settings::{Grant, OAuthSettings};
use crate::web::{Endpoint, Web};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

const THE_RESOURCE: &str = "the server's metadata";
const THE_SERVER: &str = "the authorization server's metadata";
const THE_PAGE: &str = "the page for logins";
const THE_TOKENS: &str = "the token endpoint";

/// The authorization server of a server, and what to ask it for.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    /// The issuer; `None` if the endpoints are configured without it.
    pub(crate) issuer: Option<String>,
    /// The page where a person logs in.
    pub(crate) authorization: Option<Endpoint>,
    pub(crate) token: Endpoint,
    pub(crate) registration: Option<Endpoint>,
    pub(crate) device: Option<Endpoint>,
    pub(crate) revocation: Option<Endpoint>,
    /// How clients may authenticate; `None` if that is not known.
    pub(crate) auth_methods: Option<Vec<String>>,
    /// True if an answer of the page must name the issuer.
    pub(crate) names_issuer: bool,
    /// True if a client ID may be the address of a document.
    pub(crate) reads_documents: bool,
    /// The scopes of the authorization server.
    pub(crate) scopes: Vec<String>,
    /// The scopes of the server; `None` if it does not name any.
    pub(crate) resource_scopes: Option<Vec<String>>,
    /// The `resource` to request.
    pub(crate) resource: String,
}

#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct ServerMetadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    scopes_supported: Option<Vec<String>>,
}

/// Finds the authorization server, from the configuration or from what the server says.
pub(crate) async fn discover(
    web: &Web,
    settings: &OAuthSettings,
    challenge: Option<&BearerChallenge>,
) -> Result<Discovered, LoginError> {
    if let Some(configured) = configured(web, settings)? {
        return Ok(configured);
    }
    let resource = match settings.metadata_url {
        // The operator vouches for the authorization server, so the server is not asked for it.
        Some(_) => None,
        None => resource_metadata(web, challenge).await?,
    };
    let metadata = match (&settings.metadata_url, &resource) {
        (Some(url), _) => {
            let from = Web::configured(THE_SERVER, url)?;
            let found: Option<ServerMetadata> = web.fetch(&from).await?;
            found.ok_or_else(|| from.unusable("there is no document"))?
        }
        (None, resource) => {
            server_metadata(web, &issuer(web, settings, resource.as_ref())?).await?
        }
    };
    let own = canonical(web.server().url());
    let named = resource.as_ref().and_then(|resource| resource.resource.clone());
    let discovered = Discovered {
        resource: settings.resource.clone().or(named).unwrap_or(own),
        resource_scopes: resource.and_then(|resource| resource.scopes_supported),
        ..metadata.endpoints(web, settings)?
    };
    Ok(discovered)
}

/// The endpoints of the configuration, if they are complete.
fn configured(web: &Web, settings: &OAuthSettings) -> Result<Option<Discovered>, LoginError> {
    let Some(token) = &settings.token_url else { return Ok(None) };
    if settings.auth_url.is_none() && !settings.grant.is_automatic() {
        return Ok(None);
    }
    let endpoint = |what, url: &Option<String>| {
        url.as_deref().map(|url| Web::configured(what, url)).transpose()
    };
    let own = canonical(web.server().url());
    Ok(Some(Discovered {
        issuer: settings.issuer.clone(),
        authorization: endpoint(THE_PAGE, &settings.auth_url)?,
        token: Web::configured(THE_TOKENS, token)?,
        registration: endpoint("the registration endpoint", &settings.registration_url)?,
        device: None,
        revocation: None,
        auth_methods: None,
        names_issuer: false,
        reads_documents: false,
        scopes: Vec::new(),
        resource_scopes: None,
        resource: settings.resource.clone().unwrap_or(own),
    }))
}

/// The metadata of the server: where its challenge says, else at the well-known addresses.
async fn resource_metadata(
    web: &Web,
    challenge: Option<&BearerChallenge>,
) -> Result<Option<ResourceMetadata>, LoginError> {
    let own = web.server().url();
    let mut places = Vec::new();
    if let Some(named) = challenge.and_then(|challenge| challenge.resource_metadata.as_deref()) {
        places.push(named.to_owned());
    }
    let path = own.path().trim_end_matches('/');
    places.extend([at(own, &format!("{RESOURCE}{path}")), at(own, RESOURCE)]);
    places.dedup();
    for place in places {
        let from = web.found(THE_RESOURCE, &place)?;
        let found: Option<ResourceMetadata> = web.fetch(&from).await?;
        let Some(metadata) = found else { continue };
        match &metadata.resource {
            Some(resource) if !covers(resource, own) => {
                return Err(LoginError::Untrusted(format!(
                    "the server's metadata is for another resource, `{}`, so nothing is requested for it",
                    crate::web::words(resource)
                )));
            }
            Some(_) | None => return Ok(Some(metadata)),
        }
    }
    Ok(None)
}

/// Chooses the authorization server: the configured one, the first that the server names, or, for
/// servers of older revisions, the server itself.
fn issuer(
    web: &Web,
    settings: &OAuthSettings,
    resource: Option<&ResourceMetadata>,
) -> Result<String, LoginError> {
    let named = resource.map(|resource| resource.authorization_servers.as_slice());
    match (&settings.issuer, named) {
        (Some(wanted), Some(named @ [_, ..])) if !named.contains(wanted) => {
            let named: Vec<String> =
                named.iter().map(|one| format!("`{}`", crate::web::words(one))).collect();
            Err(LoginError::Untrusted(format!(
                "the server does not name the configured issuer `{wanted}`, but {}",
                named.join(", ")
            )))
        }
        (Some(wanted), _) => Ok(wanted.clone()),
        (None, Some([first, ..])) => Ok(first.clone()),
        (None, Some([])) => {
            Err(LoginError::NotOffered("its metadata names no authorization server".to_owned()))
        }
        (None, None) => Ok(web.server().url().origin().ascii_serialization()),
    }
}

/// The metadata of an issuer, from the first well-known address that has it.
async fn server_metadata(web: &Web, issuer: &str) -> Result<ServerMetadata, LoginError> {
    let url = web.found("the authorization server", issuer)?.url().clone();
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        at(&url, &format!("{AUTHORIZATION_SERVER}{path}")),
        at(&url, &format!("{OPENID}{path}")),
        at(&url, &format!("{path}{OPENID}")),
    ];
    places.dedup();
    for place in places {
        let from = web.found(THE_SERVER, &place)?;
        let found: Option<ServerMetadata> = web.fetch(&from).await?;
        let Some(metadata) = found else { continue };
        if metadata.issuer != issuer {
            return Err(LoginError::Untrusted(format!(
                "the metadata of the authorization server `{}` is that of another issuer, `{}`",
                crate::web::words(issuer),
                crate::web::words(&metadata.issuer)
            )));
        }
        return Ok(metadata);
    }
    Err(LoginError::NotOffered(format!(
        "`{}` has no metadata of an authorization server",
        url.origin().ascii_serialization()
    )))
}

// === impl ServerMetadata ===

impl ServerMetadata {
    fn endpoints(self, web: &Web, settings: &OAuthSettings) -> Result<Discovered, LoginError> {
        let needs_page = settings.grant == Grant::Code;
        let methods = self.code_challenge_methods_supported.unwrap_or_default();
        if needs_page && !methods.iter().any(|method| method == "S256") {
            return Err(LoginError::Untrusted(
                "the authorization server does not support PKCE with `S256`, so codes could be stolen"
                    .to_owned(),
            ));
        }
        let endpoint =
            |what, configured: &Option<String>, found: &Option<String>| match (configured, found) {
                (Some(url), _) => Web::configured(what, url).map(Some),
                (None, Some(url)) => web.found(what, url).map(Some),
                (None, None) => Ok(None),
            };
        let token = endpoint(THE_TOKENS, &settings.token_url, &self.token_endpoint)?;
        let lacking =
            || LoginError::NotOffered("its authorization server has no token endpoint".to_owned());
        let registration = &self.registration_endpoint;
        Ok(Discovered {
            authorization: endpoint(THE_PAGE, &settings.auth_url, &self.authorization_endpoint)?,
            token: token.ok_or_else(lacking)?,
            registration: endpoint(
                "the registration endpoint",
                &settings.registration_url,
                registration,
            )?,
            device: endpoint("the device endpoint", &None, &self.device_authorization_endpoint)?,
            revocation: endpoint("the revocation endpoint", &None, &self.revocation_endpoint)?,
            issuer: Some(self.issuer),
            auth_methods: self.token_endpoint_auth_methods_supported,
            names_issuer: self.authorization_response_iss_parameter_supported,
            reads_documents: self.client_id_metadata_document_supported,
            scopes: self.scopes_supported.unwrap_or_default(),
            resource_scopes: None,
            resource: String::new(),
        })
    }
}

/// An address with another path and no query.
fn at(url: &Url, path: &str) -> String {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    // A login in the address belongs to the server alone.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// The address of a server as `resource`: without query, fragment, login and trailing slash.
pub(crate) fn canonical(url: &Url) -> String {
    at(url, url.path()).trim_end_matches('/').to_owned()
}

/// True if a resource is the server, or a path above it on the same origin.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (above, path) = (resource.path().trim_end_matches('/'), server.path());
    let rest = path.strip_prefix(above);
    resource.origin() == server.origin()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_only_itself_and_what_is_below_it() {
        let server = Url::parse("https://h.example/a/mcp?x=1").unwrap();
        for resource in [
            "https://h.example/a/mcp",
            "https://h.example/a/mcp/",
            "https://h.example/a",
            "https://h.example",
            "HTTPS://H.example:443/",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://h.example/a/mc",
            "https://h.example/b",
            "https://h.example/a/mcp/x",
            "http://h.example/a/mcp",
            "https://h.example:8443/a/mcp",
            "https://evil.example/a/mcp",
            "https://h.example.evil/a/mcp",
            "nothing",
            "",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
    }

    #[test]
    fn a_server_is_named_without_its_query_login_and_last_slash() {
        for (url, expected) in [
            ("https://me:pw@h.example/mcp/?k=1#f", "https://h.example/mcp"),
            ("https://H.example", "https://h.example"),
        ] {
            assert_eq!(canonical(&Url::parse(url).unwrap()), expected);
        }
    }
}
