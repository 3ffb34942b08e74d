//! The shape of what is said of an OpenAPI document.

use indexmap::IndexMap;
use schemars::JsonSchema;

/// A document, alone or with more.
#[derive(JsonSchema)]
#[schemars(untagged, title = "string or table")]
pub(crate) enum OpenApi {
    /// The document alone.
    Document(String),
    /// The document with more.
    Table(Box<OpenApiTable>),
}

/// A document with more.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct OpenApiTable {
    /// A file, found from the folder of the configuration file, or an address.
    document: String,
    /// Where requests go, instead of where the document says. What stands behind `?` is sent with every request.
    base_url: String,
    /// Only operations with one of these tags.
    tags: Vec<String>,
    /// Only these operations, by tool name, `operationId`, or method and path: `"GET /pets*"`.
    only: Vec<String>,
    /// Never these operations, whatever `only` says.
    except: Vec<String>,
    /// What requests make themselves known by, by the names of the document's security schemes.
    auth: IndexMap<String, OpenApiAuth>,
}

/// What belongs to a security scheme of the document: `token`, or `username` and `password`, or `client_id` and `client_secret`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct OpenApiAuth {
    /// A key or a bearer token: `"${TOKEN}"`.
    token: String,
    /// A name, for HTTP basic.
    username: String,
    /// The password that belongs to it.
    password: String,
    /// What this program is called where it gets tokens (OAuth client credentials).
    client_id: String,
    /// What it proves that by.
    client_secret: String,
    /// Where tokens are. Needed where the document names none, or another server than the interface's own.
    token_url: String,
    /// What tokens shall be good for.
    scopes: Vec<String>,
}
