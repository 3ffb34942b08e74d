//! The keys of `[gateway.auth.oauth_as]`: the gateway's own authorization server.

use std::time::Duration;

use capstan_model::Secret;
use capstan_safety::address::Network;
use capstan_safety::app_scheme::is_app_scheme;
use serde::Serialize;

use super::auth::{check_header, check_networks};
use super::upstream::{UpstreamProvider, UpstreamTable};
use crate::fields::{Fields, Words};
use crate::settings::define::keys;
use crate::settings::form::{OneOf, SecretText, Time};
use crate::settings::server::networks::Networks;
use crate::source::problem::Problem;
use crate::url;

/// The smallest size of `jwt_secret`, in bytes: that of the hash it keys.
const MIN_SECRET: usize = 32;

keys! {
    /// The gateway's own authorization server, for clients such as Claude.ai and ChatGPT.
    pub table OauthAs
    keys {
        /// The public address of the authorization server, `iss` of its tokens. Default: `gateway.public_url`.
        issuer_url: String;
        /// A secret of at least 32 bytes that signs tokens with HS256. Without it, the server makes its own keys.
        jwt_secret: Secret<String> as SecretText;
        /// The algorithm of tokens that the server signs with its own keys: `"ES256"` or `"EdDSA"`. Not used with `jwt_secret`.
        token_algorithm: TokenAlgorithm = TokenAlgorithm::Es256;
        /// The header in which a trusted proxy names the user who signs in.
        trusted_user_header: String = "x-forwarded-user".to_owned();
        /// The header in which it names the user's groups, separated by commas. They become roles.
        trusted_groups_header: String = "x-forwarded-groups".to_owned();
        /// The networks of the trusted proxy. Without it, users sign in at the gateway itself.
        trusted_source_cidrs: Vec<Network> as Networks = Vec::new();
        /// The OpenID Connect provider at which users sign in. Without it and without `trusted_source_cidrs`, they are users of `capstan user`.
        upstream: Box<UpstreamProvider> as UpstreamTable;
        /// The time for which an access token is valid.
        access_token_ttl: Duration as Time = Duration::from_hours(1);
        /// The time for which a refresh token is valid.
        refresh_token_ttl: Duration as Time = Duration::from_hours(30 * 24);
        /// The time for which an authorization code is valid.
        authorization_code_ttl: Duration as Time = Duration::from_mins(1);
        /// The scopes that the metadata lists.
        scopes_supported: Vec<String> = Vec::new();
        /// The redirect addresses that clients may register. `*` is allowed at the end, and as one segment of the path.
        redirect_uri_allowlist: Vec<String> = Vec::new();
        /// Roles that all callers with a token of this server have.
        injected_roles: Vec<String> = Vec::new();
    }
}

/// The algorithm of tokens that the authorization server signs with its own keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum TokenAlgorithm {
    /// ECDSA on P-256.
    #[default]
    Es256,
    /// Ed25519.
    EdDsa,
}

impl OneOf for TokenAlgorithm {
    const WORDS: Words<Self> = &[("ES256", Self::Es256), ("EdDSA", Self::EdDsa)];
}

/// Reads the table.
pub(super) fn read(mut fields: Fields<'_, '_>) -> OauthAs {
    let read = OauthAs::read(&mut fields);
    if let Some(issuer) = &read.issuer_url
        && !url::is_origin_or_path(issuer)
    {
        let message = format!("`{}` is not an `http` or `https` address", fields.key("issuer_url"));
        let help = "write the public address of the gateway: \"https://mcp.example.com\"";
        fields.problem("issuer_url", Problem::error(message).help(help));
    }
    if read.jwt_secret.as_ref().is_some_and(|secret| secret.reveal().len() < MIN_SECRET) {
        let message = format!("`{}` is shorter than {MIN_SECRET} bytes", fields.key("jwt_secret"));
        let help = "use a random secret, as `openssl rand -hex 32` prints";
        fields.problem("jwt_secret", Problem::error(message).help(help));
    }
    check_header(&mut fields, "trusted_user_header", &read.trusted_user_header);
    check_header(&mut fields, "trusted_groups_header", &read.trusted_groups_header);
    check_networks(&mut fields, "trusted_source_cidrs");
    if read.upstream.is_some() && !read.trusted_source_cidrs.is_empty() {
        let message = format!(
            "`{}` and `{}` are two ways to sign in",
            fields.key("upstream"),
            fields.key("trusted_source_cidrs")
        );
        fields.problem("upstream", Problem::error(message).help("remove one of them"));
    }
    check_patterns(&mut fields, &read.redirect_uri_allowlist);
    fields.finish();
    read
}

/// Reports a missing list of redirect patterns, and patterns that could match another host.
fn check_patterns(fields: &mut Fields<'_, '_>, patterns: &[String]) {
    let key = "redirect_uri_allowlist";
    let path = fields.key(key);
    if patterns.is_empty() {
        let message = format!("`{path}` names no address, so no client could register");
        let help = "list the addresses: [\"https://claude.ai/api/mcp/auth_callback\"]";
        fields.problem(key, Problem::error(message).help(help));
    }
    for pattern in patterns.iter().filter(|pattern| !is_pattern(pattern)) {
        let message = format!("`{path}` has the pattern `{pattern}`, which is not safe");
        let help = "write an `https` address, an `http` address of this machine, or the address of \
                    an app (\"cursor://anysphere.cursor-mcp/*\"), with `*` only at the end of the \
                    path or as one segment of it";
        fields.problem(key, Problem::error(message).help(help));
    }
}

/// True for an address with `*` only at the end of its path, or as a whole segment of it.
fn is_pattern(pattern: &str) -> bool {
    let Some((scheme, rest)) = pattern.split_once("://") else { return false };
    let Some((host, path)) = rest.split_once('/') else {
        return !rest.contains('*') && url::is_origin_or_path(pattern);
    };
    if host.is_empty() || host.contains('*') || path.contains(['#', '?']) {
        return false;
    }
    let segments: Vec<&str> = path.split('/').collect();
    let last = segments.len().saturating_sub(1);
    let fits = |(at, segment): (usize, &&str)| match segment.find('*') {
        None => *segment != "..",
        Some(0) if segment.len() == 1 => true,
        Some(star) => at == last && star + 1 == segment.len(),
    };
    let is_app = is_app_scheme(scheme) && !host.contains(['@', ':', '\\']);
    let is_safe = is_app || url::is_origin_or_path(&format!("{scheme}://{host}/"));
    is_safe && segments.iter().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_pattern_has_its_star_at_the_end_or_as_one_segment() {
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chat.openai.com/aip/*/oauth/callback",
            "https://chatgpt.com/connector/*",
            "https://chatgpt.com/connector/oauth_*",
            "http://localhost:3000/cb",
            "https://app.example.com",
            "cursor://anysphere.cursor-mcp/*",
            "cursor://anysphere.cursor-mcp/oauth/callback",
        ] {
            assert!(is_pattern(good), "{good}");
        }
        for bad in [
            "*",
            "https://*",
            "https://*/cb",
            "https://*.example.com/cb",
            "https://example.com*",
            "https://example.com/a*b/cb",
            "https://example.com/a*/cb",
            "https://example.com/**",
            "https://example.com/../*",
            "https://example.com/cb?x=*",
            "https://example.com/cb#x",
            "https:///cb",
            "javascript:alert(1)//*",
            "javascript://x/*",
            "file://x/*",
            "cursor:///*",
            "cursor://*/cb",
            "cursor://user@app/*",
            "example.com/cb",
            "",
        ] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }
}
