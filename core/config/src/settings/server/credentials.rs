//! The keys of `[servers.NAME.openapi.auth.SCHEME]`: credentials for a security scheme.

use capstan_model::{Credentials, Secret};

use super::openapi::Address;
use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::form::SecretText;
use crate::source::problem::Problem;

keys! {
    /// Credentials for a security scheme of the document: `token`, or `username` and `password`, or `client_id` and `client_secret`.
    pub(crate) table CredentialKeys
    keys {
        /// An API key or a bearer token: `"${TOKEN}"`.
        token: Secret<String> as SecretText;
        /// The user name for HTTP Basic.
        username: String;
        /// The password for HTTP Basic.
        password: Secret<String> as SecretText;
        /// The client ID for the OAuth client credentials grant.
        client_id: String;
        /// The client secret for the OAuth client credentials grant.
        client_secret: Secret<String> as SecretText;
        /// The token endpoint. Required if the document names none, or one on another host than the API.
        token_url: String as Address;
        /// The OAuth scopes to request.
        scopes: Vec<String>;
    }
}

/// Reads the credentials of a scheme; `None` if they are incomplete or contradict each other.
pub(super) fn read(mut fields: Fields<'_, '_>) -> Option<Credentials> {
    let keys = CredentialKeys::read(&mut fields);
    let CredentialKeys { token, username, password, client_id, client_secret, token_url, scopes } =
        keys;
    let for_client = token_url.is_some() || scopes.is_some();
    let empty = [&token, &password, &client_secret]
        .into_iter()
        .any(|given| given.as_ref().is_some_and(|given| given.reveal().trim().is_empty()));
    let read = match (token, (username, password), (client_id, client_secret)) {
        (Some(token), (None, None), (None, None)) if !for_client => Some(Credentials::Token(token)),
        (None, (Some(username), Some(password)), (None, None)) if !for_client => {
            Some(Credentials::Password { username, password })
        }
        (None, (None, None), (Some(id), Some(secret))) => {
            let scopes = scopes.unwrap_or_default();
            Some(Credentials::Client { id, secret, token_url, scopes })
        }
        _ => None,
    };
    let read = read.filter(|_| !empty);
    if read.is_none() {
        let path = fields.path();
        let message = if empty {
            format!("`{path}` has an empty secret")
        } else {
            format!("`{path}` must have exactly one kind of credentials")
        };
        let help = "give it a `token`, or `username` and `password`, or `client_id` and \
                    `client_secret` (with `token_url` and `scopes` if needed)";
        fields.table_problem(Problem::error(message).help(help));
    }
    fields.finish();
    read
}
