//! The keys of `[gateway.auth.oauth_as.upstream]`: the provider at which users sign in.

use capstan_model::Secret;
use capstan_safety::address::Network;
use serde_json::Value as Json;

use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::form::{Form, SecretText, Table};
use crate::settings::server::networks::Networks;
use crate::source::problem::Problem;
use crate::url;

keys! {
    /// The OpenID Connect provider at which users of the authorization server sign in.
    pub table UpstreamProvider
    keys {
        /// The issuer, exactly as its ID tokens name it in `iss`: `https://login.example.com/realms/acme`.
        issuer: String;
        /// The ID of the gateway as a client of the provider. Its callback there is `/authorize/callback` of the gateway.
        client_id: String;
        /// The secret of the client: `"${CLIENT_SECRET}"`. Without it, the client is public.
        client_secret: Secret<String> as SecretText;
        /// The scopes to request.
        scopes: Vec<String> = vec!["openid".to_owned(), "profile".to_owned()];
        /// The claim of the ID token with the name of the user.
        subject_claim: String = "sub".to_owned();
        /// The claim with the user's roles, a list or words separated by spaces. Dots lead into nested claims.
        roles_claim: String = "roles".to_owned();
        /// Networks that the provider may be reached in although they are not public, in CIDR notation. Loopback is allowed if the configured address is on it.
        networks: Vec<Network> as Networks = Vec::new();
    }
}

/// The form of the table.
pub(super) struct UpstreamTable;

// === impl UpstreamTable ===

impl Form for UpstreamTable {
    // Few gateways have one, and every configuration would carry its size.
    type Value = Box<UpstreamProvider>;
    type Schema = <UpstreamProvider as Table>::Keys;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Box<UpstreamProvider>> {
        let mut nested = fields.nested(key)?;
        let keys = UpstreamProvider::read(&mut nested);
        for key in ["issuer", "client_id"] {
            if !nested.has(key) {
                let message = format!("`{}` has no `{key}`", nested.path());
                let help = "register the gateway at the provider, and copy both values from there";
                nested.table_problem(Problem::error(message).help(help));
            }
        }
        if keys.issuer.as_deref().is_some_and(|issuer| !url::is_https_or_loopback(issuer)) {
            let message = format!("`{}` must be an `https://` address", nested.key("issuer"));
            let help = "plain `http://` is accepted only for `localhost` and loopback addresses";
            nested.problem("issuer", Problem::error(message).help(help));
        }
        if !keys.scopes.iter().any(|scope| scope == "openid") {
            let message = format!("`{}` has no `openid`", nested.key("scopes"));
            let help = "without it, the provider does not say who signed in";
            nested.problem("scopes", Problem::error(message).help(help));
        }
        nested.finish();
        Some(Box::new(keys))
    }

    fn write(_: &Self::Value) -> Json {
        Json::Null
    }
}
