//! Tells clients that a token is needed and where to get one: the challenge of a refusal, and the
//! metadata of the protected resource (RFC 9728).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::chain::Refused;
use crate::provider::Refusal;

/// The path of the metadata, before the path of the resource.
pub const METADATA: &str = "/.well-known/oauth-protected-resource";

/// The public address of the gateway: an origin, and a path if a proxy adds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicAddress {
    origin: String,
    path: String,
}

/// Describes the resource to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorities {
    /// The issuers of tokens. Without one there is no metadata: a client could not get a token.
    pub issuers: Vec<String>,
    /// The scopes that clients may ask for.
    pub scopes: Vec<String>,
}

// === impl PublicAddress ===

impl PublicAddress {
    /// Parses a public address; one that names the endpoint `/mcp` is the address without it.
    ///
    /// Returns `None` for a text that is no `http` or `https` address.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let is_web = ["http", "https"].contains(&scheme.to_ascii_lowercase().as_str());
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("mcp").map_or(path, |before| before.trim_end_matches('/'));
        let path = if path.is_empty() { String::new() } else { format!("/{path}") };
        let origin = format!("{}://{}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
        (is_web && !host.is_empty() && !host.contains(['@', '"', '\\', ' ']))
            .then_some(Self { origin, path })
    }

    /// The resource at a path of the gateway; the empty path is the gateway itself.
    pub fn resource(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, self.path)
    }

    /// The address of the metadata of the resource at a path.
    pub fn metadata(&self, path: &str) -> String {
        format!("{}{METADATA}{}{path}", self.origin, self.path)
    }
}

// === impl Authorities ===

impl Authorities {
    /// The metadata of the resource at a path; `None` if no issuer is known.
    pub fn metadata(&self, at: &PublicAddress, path: &str) -> Option<Value> {
        if self.issuers.is_empty() {
            return None;
        }
        let mut metadata = json!({
            "resource": at.resource(path),
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": "Capstan",
        });
        if !self.scopes.is_empty()
            && let Some(object) = metadata.as_object_mut()
        {
            object.insert("scopes_supported".to_owned(), json!(self.scopes));
        }
        Some(metadata)
    }

    /// The value of `WWW-Authenticate` for a request to a path.
    ///
    /// It does not name the provider that refused the request.
    pub fn challenge(&self, refused: Refused, at: &PublicAddress, path: &str) -> String {
        let mut challenge = "Bearer realm=\"capstan\"".to_owned();
        match refused {
            Refused::Credentials(Refusal::Invalid) => {
                challenge.push_str(
                    ", error=\"invalid_token\", error_description=\"the token is not valid\"",
                );
            }
            Refused::Credentials(Refusal::Missing | Refusal::Unavailable)
            | Refused::TooManyAttempts(_) => {}
        }
        if !self.issuers.is_empty() {
            let _ = write!(challenge, ", resource_metadata=\"{}\"", at.metadata(path));
            let scopes = self.scopes.join(" ");
            if !scopes.is_empty() {
                let _ = write!(challenge, ", scope=\"{scopes}\"");
            }
        }
        challenge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_may_have_a_path_and_name_the_endpoint() {
        for (url, path, resource, metadata) in [
            ("https://h", "", "https://h", "https://h/.well-known/oauth-protected-resource"),
            (
                "https://H/",
                "/mcp",
                "https://h/mcp",
                "https://h/.well-known/oauth-protected-resource/mcp",
            ),
            (
                "https://h:8443/mcp",
                "/mcp",
                "https://h:8443/mcp",
                "https://h:8443/.well-known/oauth-protected-resource/mcp",
            ),
            (
                "https://h/a/mcp/",
                "/mcp",
                "https://h/a/mcp",
                "https://h/.well-known/oauth-protected-resource/a/mcp",
            ),
            (
                "http://127.0.0.1:1/a/",
                "",
                "http://127.0.0.1:1/a",
                "http://127.0.0.1:1/.well-known/oauth-protected-resource/a",
            ),
        ] {
            let address = PublicAddress::parse(url).unwrap();
            assert_eq!(
                (address.resource(path).as_str(), address.metadata(path).as_str()),
                (resource, metadata),
                "{url}"
            );
        }
        for url in ["", "h", "ftp://h", "https://", "https:///mcp", "https://a\"b/", "https://u@h/"]
        {
            assert_eq!(PublicAddress::parse(url), None, "{url}");
        }
    }

    #[test]
    fn a_challenge_says_where_to_get_a_token_and_not_which_provider_refused() {
        let at = PublicAddress::parse("https://h").unwrap();
        let none = Authorities::default();
        let missing = Refused::Credentials(Refusal::Missing);
        assert_eq!(none.challenge(missing, &at, "/mcp"), "Bearer realm=\"capstan\"");
        assert_eq!(none.metadata(&at, "/mcp"), None);
        let one =
            Authorities { issuers: vec!["https://i".to_owned()], scopes: vec!["mcp".to_owned()] };
        assert_eq!(
            one.challenge(Refused::Credentials(Refusal::Invalid), &at, "/mcp"),
            "Bearer realm=\"capstan\", error=\"invalid_token\", error_description=\"the token is not valid\", \
             resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\", scope=\"mcp\""
        );
        let metadata = one.metadata(&at, "").unwrap();
        assert_eq!(metadata["resource"], "https://h");
        assert_eq!(metadata["authorization_servers"], json!(["https://i"]));
    }
}
