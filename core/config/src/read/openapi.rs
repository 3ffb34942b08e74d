//! The keys of an OpenAPI document: the document alone, or a table of them.

use capstan_model::{Credentials, Secret};
use capstan_safety::mask::mask_url;
use indexmap::IndexMap;

use super::kind::{address, warn_port};
use crate::fields::Fields;
use crate::settings::server::OpenApi;
use crate::source::problem::Problem;

/// Reads the document, and how it may be shown. Headers are read by whoever reads those of others.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<(OpenApi, String)> {
    let is_table = fields.peek("openapi").is_some_and(|entry| entry.node.as_table().is_some());
    if !is_table {
        let document = fields.text("openapi")?;
        warn_port(fields, "openapi", &document.value);
        let target = mask_url(document.shown());
        return Some((OpenApi { document: document.value.clone(), ..OpenApi::default() }, target));
    }
    let mut nested = fields.nested("openapi")?;
    let document = nested.text("document");
    if !nested.has("document") {
        let message = format!("`{}` has no `document`", nested.path());
        let help = "name a file or an address, as in `document = \"api.yaml\"`";
        nested.table_problem(Problem::error(message).help(help));
    }
    if let Some(document) = document {
        warn_port(&mut nested, "document", &document.value);
    }
    let base_url = url(&mut nested, "base_url");
    let tags = nested.strings("tags");
    let only = nested.strings("only");
    let except = nested.strings("except").unwrap_or_default();
    let auth = auth(&mut nested);
    nested.finish();
    let document = document?;
    let (target, document) = (mask_url(document.shown()), document.value.clone());
    Some((OpenApi { document, base_url, tags, only, except, auth, ..OpenApi::default() }, target))
}

fn url(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<String> {
    address(fields, key, "https://example.com/v1").map(|text| text.value.clone())
}

/// What belongs to each of the security schemes that are named.
fn auth(fields: &mut Fields<'_, '_>) -> IndexMap<String, Credentials> {
    let mut read = IndexMap::new();
    fields.each_table("auth", |name, fields| {
        if let Some(credentials) = credentials(fields) {
            read.insert(name.to_owned(), credentials);
        }
    });
    read
}

fn credentials(mut fields: Fields<'_, '_>) -> Option<Credentials> {
    let mut secret = |key| fields.string(key).map(Secret::new);
    let (token, password) = (secret("token"), secret("password"));
    let client_secret = secret("client_secret");
    let (username, id) = (fields.string("username"), fields.string("client_id"));
    let token_url = url(&mut fields, "token_url");
    let scopes = fields.strings("scopes");
    let for_client = token_url.is_some() || scopes.is_some();
    let empty = [&token, &password, &client_secret]
        .into_iter()
        .any(|given| given.as_ref().is_some_and(|given| given.reveal().trim().is_empty()));
    let read = match (token, (username, password), (id, client_secret)) {
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
            format!("`{path}` does not say one thing that it is known by")
        };
        let help = "give it a `token`, or `username` and `password`, or `client_id` and \
                    `client_secret` (with `token_url` and `scopes` where they are needed)";
        fields.table_problem(Problem::error(message).help(help));
    }
    fields.finish();
    read
}
