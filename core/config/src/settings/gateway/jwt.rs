//! The keys of `[gateway.auth.jwt]`: tokens of an OpenID Connect issuer.

use std::time::Duration;

use capstan_safety::address::Network;
use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::fields::{Fields, Words, nearest};
use crate::settings::define::keys;
use crate::settings::form::{Form, OneOf, Wait, WordSchema};
use crate::settings::server::networks::Networks;
use crate::source::problem::Problem;
use crate::url;

/// The longest difference between the clocks of issuer and gateway.
const MAX_LEEWAY: Duration = Duration::from_mins(5);

keys! {
    /// Tokens (JWT) of an OpenID Connect issuer, such as Keycloak, Auth0 or Entra ID.
    pub table JwtAuth
    keys {
        /// The issuer, exactly as its tokens name it in `iss`: `https://login.example.com/realms/acme`.
        issuer: String;
        /// The address of the issuer's keys. Default: `jwks_uri` of its OpenID Connect or OAuth metadata.
        jwks_url: String;
        /// The values of `aud` that are accepted. Default: `gateway.public_url`, and its `/mcp`.
        audience: Vec<String> as Audience = Vec::new();
        /// The signature algorithms that are accepted.
        algorithms: Vec<JwtAlgorithm> as Algorithms = JwtAlgorithm::DEFAULT.to_vec();
        /// The claim with the name of the caller.
        subject_claim: String = "sub".to_owned();
        /// The claim with the caller's roles, a list or words separated by spaces. Dots lead into nested claims: `realm_access.roles`.
        roles_claim: String = "roles".to_owned();
        /// Claims that a token must have, each with its value: `{ azp = "capstan" }`. In a list or in words separated by spaces, one must be the value.
        required_claims: IndexMap<String, String> as Claims = IndexMap::new();
        /// Accept only tokens that the issuer marks as access tokens, with the type `at+jwt` (RFC 9068). Evident ID tokens are refused in any case.
        access_tokens_only: bool = false;
        /// The difference between the clocks of issuer and gateway that is tolerated.
        leeway: Duration as Wait = Duration::from_secs(30);
        /// Networks that the issuer may be reached in although they are not public, in CIDR notation. Loopback is allowed if the configured address is on it.
        networks: Vec<Network> as Networks = Vec::new();
    }
}

/// A signature algorithm of tokens. Only asymmetric ones: the gateway has no secret of the issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JwtAlgorithm {
    /// RSA PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// RSA PKCS#1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS#1 v1.5 with SHA-512.
    Rs512,
    /// RSA PSS with SHA-256.
    Ps256,
    /// RSA PSS with SHA-384.
    Ps384,
    /// RSA PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// The form of the list of algorithms.
struct Algorithms;

/// The form of one audience or several.
struct Audience;

/// The form of required claims.
struct Claims;

/// Reads the table.
pub(super) fn read(mut fields: Fields<'_, '_>) -> JwtAuth {
    let read = JwtAuth::read(&mut fields);
    if !fields.has("issuer") {
        let message = format!("`{}` has no `issuer`", fields.path());
        let help = "add the issuer, exactly as its tokens name it in `iss`";
        fields.table_problem(Problem::error(message).help(help));
    }
    for (key, address) in [("issuer", &read.issuer), ("jwks_url", &read.jwks_url)] {
        if let Some(address) = address {
            check_url(&mut fields, key, address);
        }
    }
    if read.leeway > MAX_LEEWAY {
        let message = format!("`{}` is longer than five minutes", fields.key("leeway"));
        let help = "correct the clocks instead; usual values are \"30s\" or \"1m\"";
        fields.problem("leeway", Problem::error(message).help(help));
    }
    fields.finish();
    read
}

/// Reports an address that is not HTTPS, except on this machine.
fn check_url(fields: &mut Fields<'_, '_>, key: &'static str, address: &str) {
    if url::is_https_or_loopback(address) {
        return;
    }
    let message = format!("`{}` must be an `https://` address", fields.key(key));
    let help = "plain `http://` is accepted only for `localhost` and loopback addresses: anyone \
                on the way could replace the keys";
    fields.problem(key, Problem::error(message).help(help));
}

// === impl JwtAlgorithm ===

impl JwtAlgorithm {
    /// The algorithms that are accepted if the configuration names none.
    pub const DEFAULT: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The name in the header of a token.
    pub fn as_str(self) -> &'static str {
        self.word()
    }
}

impl OneOf for JwtAlgorithm {
    const WORDS: Words<Self> = &[
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];
}

// === impl Algorithms ===

impl Form for Algorithms {
    type Value = Vec<JwtAlgorithm>;
    type Schema = Vec<WordSchema<JwtAlgorithm>>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<JwtAlgorithm>> {
        let texts = fields.texts(key)?;
        let path = fields.key(key);
        let words = || JwtAlgorithm::WORDS.iter().map(|(word, _)| *word);
        let mut read = Vec::new();
        for text in texts {
            let word = text.value.value.as_str();
            if let Some((_, known)) = JwtAlgorithm::WORDS.iter().find(|(known, _)| *known == word) {
                read.push(*known);
                continue;
            }
            let help = match (nearest(word, words()), word.starts_with("HS")) {
                (Some(near), false) => format!("did you mean \"{near}\"?"),
                _ => format!("use {}", words().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("`{path}` cannot be \"{}\"", text.value.shown());
            fields.report().add(Problem::error(message).help(help), path.clone(), &text.span);
        }
        if read.is_empty() {
            let message = format!("`{path}` names no algorithm, so no token could be accepted");
            fields.problem(key, Problem::error(message).help("remove it, or write [\"RS256\"]"));
        }
        Some(read)
    }

    fn write(value: &Vec<JwtAlgorithm>) -> Json {
        value.iter().map(|one| one.word()).collect()
    }
}

// === impl Audience ===

impl Form for Audience {
    type Value = Vec<String>;
    type Schema = Vec<String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<String>> {
        let read = fields.strings(key)?;
        if read.is_empty() {
            let message = format!("`{}` is empty, which could mean all or none", fields.key(key));
            let help = "name the audience, or remove it to use `gateway.public_url`";
            fields.problem(key, Problem::error(message).help(help));
        }
        Some(read)
    }

    fn write(value: &Vec<String>) -> Json {
        Json::from(value.as_slice())
    }
}

// === impl Claims ===

impl Form for Claims {
    type Value = IndexMap<String, String>;
    type Schema = IndexMap<String, String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<IndexMap<String, String>> {
        fields.entry(key)?;
        let map = fields.string_map(key);
        Some(map.into_iter().map(|(name, given)| (name, given.value.value.clone())).collect())
    }

    fn write(value: &IndexMap<String, String>) -> Json {
        value.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect()
    }
}
