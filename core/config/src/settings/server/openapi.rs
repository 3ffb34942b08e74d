//! The key `openapi`: a document alone, or a table.

use capstan_model::Credentials;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde_json::Value as Json;

use super::OpenApi;
use super::credentials::{self, CredentialKeys};
use crate::fields::Fields;
use crate::read::kind::{address, warn_port};
use crate::settings::define::keys;
use crate::settings::form::{Form, Table};
use crate::source::problem::Problem;
use capstan_safety::mask::mask_url;

keys! {
    /// A document with options.
    pub(crate) table OpenApiKeys
    by_hand {
        /// The document: an address, or a file relative to the folder of the configuration file.
        document: String;
    }
    keys {
        /// The address for requests, instead of the document's own. Its query is sent with every request.
        base_url: String as Address;
        /// Offer only operations with one of these tags.
        tags: Vec<String>;
        /// Offer only these operations, by tool name, `operationId`, or method and path: `"GET /pets*"`.
        only: Vec<String>;
        /// Operations to leave out, even if `only` lists them.
        except: Vec<String> = Vec::new();
    }
    by_hand {
        /// Credentials for requests, by the names of the document's security schemes.
        auth: IndexMap<String, <CredentialKeys as Table>::Keys>;
    }
}

/// A document, alone or with more.
#[derive(JsonSchema)]
#[schemars(untagged, title = "string or table")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum OpenApiSchema {
    /// The document alone.
    Document(String),
    /// The document with options.
    Table(Box<<OpenApiKeys as Table>::Keys>),
}

/// The form of an address that requests are sent to.
pub(super) struct Address;

/// Reads the document, and returns it with its masked target.
///
/// The headers are read with those of other servers.
pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<(OpenApi, String)> {
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
    let OpenApiKeys { base_url, tags, only, except } = OpenApiKeys::read(&mut nested);
    let auth = auth(&mut nested);
    nested.finish();
    let document = document?;
    let (target, document) = (mask_url(document.shown()), document.value.clone());
    Some((OpenApi { document, base_url, tags, only, except, auth, ..OpenApi::default() }, target))
}

/// Reads the credentials, by the name of their security scheme.
fn auth(fields: &mut Fields<'_, '_>) -> IndexMap<String, Credentials> {
    let mut read = IndexMap::new();
    fields.each_table("auth", |name, fields| {
        if let Some(credentials) = credentials::read(fields) {
            read.insert(name.to_owned(), credentials);
        }
    });
    read
}

// === impl Address ===

impl Form for Address {
    type Value = String;
    type Schema = String;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<String> {
        address(fields, key, "https://example.com/v1").map(|text| text.value.clone())
    }

    fn write(value: &String) -> Json {
        Json::from(value.as_str())
    }
}
