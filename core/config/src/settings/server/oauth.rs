//! The key `oauth_config`: the client, the endpoints and the grant of a login.

use capstan_model::Secret;
use serde_json::Value as Json;

use super::PER_CALLER;
use super::openapi::Address;
use crate::fields::{Fields, Words};
use crate::settings::define::keys;
use crate::settings::form::{Form, OneOf, SecretText, Table};
use crate::source::problem::Problem;
use crate::url;

keys! {
    /// Settings of a login.
    pub table OAuthConfig
    keys {
        /// The ID of the client. An `https://` address is the address of its metadata document, which is used where the authorization server supports that.
        client_id: String;
        /// The secret of the client: `"${CLIENT_SECRET}"`.
        client_secret: Secret<String> as SecretText;
        /// The private key of the client, in PEM: it signs a token instead of sending a secret.
        private_key: Secret<String> as SecretText;
        /// How the client authenticates. Default: the first of these that the authorization server supports and that has its secret.
        client_auth: ClientAuth;
        /// How tokens are granted: to a person in a browser (`code`), to a person with a code for another device (`device`), to the client itself (`client_credentials`), or by the identity provider of a company (`enterprise`).
        grant: Grant = Grant::Code;
        /// The page where a person logs in.
        auth_url: String as Address;
        /// The token endpoint.
        token_url: String as Address;
        /// The endpoint for the registration of clients.
        registration_url: String as Address;
        /// The authorization server, if the server names several or none.
        issuer: String as Address;
        /// The address of the authorization server's metadata.
        metadata_url: String as Address;
        /// The scopes to request, instead of those that the server asks for.
        scopes: Vec<String>;
        /// The `audience` to request, for authorization servers that need it.
        audience: Vec<String> as OneOrMore = Vec::new();
        /// The `resource` to request. Default: the one that the server names, or its address.
        resource: String;
        /// The port of the callback on 127.0.0.1. Default: a free one.
        callback_port: u16 as Port;
        /// The callback as the client is registered with it: an address on this machine, with a port.
        redirect_uri: String as Callback;
        /// The token endpoint of the identity provider, for `enterprise`.
        idp_token_url: String as Address;
        /// The ID of the client at the identity provider, for `enterprise`.
        idp_client_id: String;
        /// The secret of the client at the identity provider, for `enterprise`.
        idp_client_secret: Secret<String> as SecretText;
        /// The ID token of the person, for `enterprise`: `"${ID_TOKEN}"`.
        id_token: Secret<String> as SecretText;
    }
}

/// How tokens are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// To a person in a browser.
    #[default]
    Code,
    /// To a person who enters a code on another device.
    Device,
    /// To the client itself.
    ClientCredentials,
    /// By the identity provider of a company.
    Enterprise,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// With its ID alone.
    None,
    /// With its secret in the header `Authorization`.
    Basic,
    /// With its secret in the body.
    Post,
    /// With a token that its private key signs.
    PrivateKey,
}

/// The form of the table `oauth_config`.
pub(super) struct OAuthTable;

/// The form of a text or a list of texts.
struct OneOrMore;

/// The form of a port.
struct Port;

/// The form of the address of a callback.
struct Callback;

/// Keys of other programs that ask for something that is never done, and the reason.
const REFUSED: [(&str, &str); 2] = [
    ("token_parameter", "asks for the token in the address, where logs would show it"),
    ("enterprise_managed", "needs the identity provider's settings"),
];

/// Checks `oauth` against `oauth_config`.
pub(crate) fn check(fields: &mut Fields<'_, '_>) {
    check_per_caller(fields);
    let word = fields.peek("oauth").and_then(|entry| entry.node.as_text());
    let (is_manual, is_off) = (word == Some("manual"), word == Some("off"));
    let path = fields.key("oauth_config");
    let Some(table) = fields.peek("oauth_config").map(|entry| &entry.node) else {
        if is_manual {
            let message =
                format!("`{}` is `manual`, and there is no `{path}`", fields.key("oauth"));
            let help = "add the table with `client_id`, `auth_url` and `token_url`, or use `auto`";
            fields.problem("oauth", Problem::error(message).help(help));
        }
        return;
    };
    if is_off {
        let message = format!("`{path}` has no effect, because `{}` is `off`", fields.key("oauth"));
        let help = "remove one of them";
        fields.problem("oauth_config", Problem::error(message).help(help));
    }
    let has = |key: &str| table.as_table().is_some_and(|table| table.get(key).is_some());
    let grant = table.as_table().and_then(|table| table.get("grant")?.node.as_text());
    let needed: &[&str] = match grant {
        Some("client_credentials" | "enterprise") => &["client_id", "token_url"],
        _ => &["client_id", "auth_url", "token_url"],
    };
    let missing: Vec<String> =
        needed.iter().filter(|key| !has(key)).map(|key| format!("`{key}`")).collect();
    if is_manual && !missing.is_empty() {
        let message = format!("`{path}` has no {}", missing.join(", "));
        let help = "`oauth = \"manual\"` needs them; `auto` finds them out";
        fields.problem("oauth_config", Problem::error(message).help(help));
    }
}

/// Refuses settings by which callers would share one account although each shall have its own.
fn check_per_caller(fields: &mut Fields<'_, '_>) {
    if fields.peek("login").and_then(|entry| entry.node.as_text()) != Some(PER_CALLER) {
        return;
    }
    let text = |key: &str| fields.peek(key).and_then(|entry| entry.node.as_text());
    let has_header =
        fields.peek("headers").and_then(|entry| entry.node.as_table()).is_some_and(|headers| {
            headers.entries.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
        });
    let grant = fields.peek("oauth_config").and_then(|entry| entry.node.as_table());
    let grant = grant.and_then(|table| table.get("grant")?.node.as_text());
    let shared = if text("oauth") == Some("off") {
        Some("oauth")
    } else if has_header {
        Some("headers")
    } else if grant.is_some_and(|grant| grant != "code") {
        Some("oauth_config")
    } else {
        ["headers_helper", "auth_provider"].into_iter().find(|key| fields.peek(key).is_some())
    };
    if let Some(key) = shared {
        let message = format!(
            "`{}` is `{PER_CALLER}`, and `{}` would let all callers use one account",
            fields.key("login"),
            fields.key(key)
        );
        let help = "remove one of them; callers sign in in a browser";
        fields.problem(key, Problem::error(message).help(help));
    }
}

// === impl OAuthTable ===

impl Form for OAuthTable {
    type Value = OAuthConfig;
    type Schema = <OAuthConfig as Table>::Keys;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<OAuthConfig> {
        let mut nested = fields.nested(key)?;
        for (key, why) in REFUSED {
            let Some(given) = nested.peek(key) else { continue };
            nested.entry(key);
            if given.node.as_bool() != Some(false) {
                let message = format!("`{}` {why}", nested.key(key));
                nested.problem(key, Problem::error(message).help("remove it"));
            }
        }
        let keys = OAuthConfig::read(&mut nested);
        let missing = missing(&keys);
        if !missing.is_empty() {
            let (path, grant) = (nested.path().to_owned(), keys.grant.word());
            let message = format!("`{path}` has no {}", missing.join(", "));
            let help = format!("`grant = \"{grant}\"` needs them");
            nested.table_problem(Problem::error(message).help(help));
        }
        nested.finish();
        Some(keys)
    }

    fn write(_: &OAuthConfig) -> Json {
        Json::Null
    }
}

/// The keys that the grant needs and that are not there.
fn missing(keys: &OAuthConfig) -> Vec<&'static str> {
    let has_secret = keys.client_secret.is_some() || keys.private_key.is_some();
    let needed: &[(&'static str, bool)] = match keys.grant {
        Grant::Code | Grant::Device => &[],
        Grant::ClientCredentials => &[
            ("`client_id`", keys.client_id.is_some()),
            ("`client_secret` or `private_key`", has_secret),
        ],
        Grant::Enterprise => &[
            ("`client_id`", keys.client_id.is_some()),
            ("`idp_token_url`", keys.idp_token_url.is_some()),
            ("`idp_client_id`", keys.idp_client_id.is_some()),
            ("`id_token`", keys.id_token.is_some()),
        ],
    };
    needed.iter().filter(|(_, is_there)| !is_there).map(|(key, _)| *key).collect()
}

// === impl OAuthConfig ===

impl OAuthConfig {
    /// The values that must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret<String>> {
        let Self { client_secret, private_key, idp_client_secret, id_token, .. } = self;
        [client_secret, private_key, idp_client_secret, id_token].into_iter().flatten()
    }
}

// === impl OneOf ===

impl OneOf for Grant {
    const WORDS: Words<Self> = &[
        ("code", Self::Code),
        ("device", Self::Device),
        ("client_credentials", Self::ClientCredentials),
        ("enterprise", Self::Enterprise),
    ];
}

impl OneOf for ClientAuth {
    const WORDS: Words<Self> = &[
        ("none", Self::None),
        ("basic", Self::Basic),
        ("post", Self::Post),
        ("private_key", Self::PrivateKey),
    ];
}

// === impl Form ===

impl Form for OneOrMore {
    type Value = Vec<String>;
    type Schema = Vec<String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<String>> {
        let is_text = fields.peek(key).is_some_and(|entry| entry.node.as_text().is_some());
        if is_text { fields.string(key).map(|text| vec![text]) } else { fields.strings(key) }
    }

    fn write(value: &Vec<String>) -> Json {
        Json::from(value.as_slice())
    }
}

impl Form for Port {
    type Value = u16;
    type Schema = u16;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<u16> {
        let port = fields.count(key)?;
        let read = u16::try_from(port).ok();
        if read.is_none() {
            let message = format!("`{}` is not a port: {port}", fields.key(key));
            fields.problem(key, Problem::error(message).help("choose a number from 0 to 65535"));
        }
        read
    }

    fn write(value: &u16) -> Json {
        Json::from(*value)
    }
}

impl Form for Callback {
    type Value = String;
    type Schema = String;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<String> {
        let text = fields.string(key)?;
        if !url::is_local_callback(&text) {
            let message = format!("`{}` is not the address of a callback here", fields.key(key));
            let help = "write `http://127.0.0.1:PORT/PATH` or `http://localhost:PORT/PATH`";
            fields.problem(key, Problem::error(message).help(help));
            return None;
        }
        Some(text)
    }

    fn write(value: &String) -> Json {
        Json::from(value.as_str())
    }
}
