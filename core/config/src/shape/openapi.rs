//! The shape of what is said of an OpenAPI document.

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
}
