//! What a configuration says of an OpenAPI document.

use std::fmt;

use capstan_model::{Credentials, Secret};
use indexmap::IndexMap;

use capstan_safety::mask::mask_url;

/// An OpenAPI document used as a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OpenApi {
    /// The document: a file or an address.
    pub document: String,
    /// Where requests go; `None` for where the document says.
    pub base_url: Option<String>,
    /// Only operations with one of these tags; `None` means all.
    pub tags: Option<Vec<String>>,
    /// Only operations that one of these patterns means; `None` means all.
    pub only: Option<Vec<String>>,
    /// Never operations that one of these patterns means.
    pub except: Vec<String>,
    /// Headers sent with every request.
    pub headers: IndexMap<String, Secret<String>>,
    /// What requests make themselves known by, by the names of the document's security schemes.
    pub auth: IndexMap<String, Credentials>,
}

// === impl OpenApi ===

impl OpenApi {
    /// Takes over what another entry for the server keeps from being used.
    pub(crate) fn keep_restrictions_of(&mut self, other: &Self) {
        for (own, theirs) in [(&mut self.tags, &other.tags), (&mut self.only, &other.only)] {
            if let Some(only) = theirs {
                own.get_or_insert_with(|| only.clone()).retain(|one| only.contains(one));
            }
        }
        self.except.extend(other.except.iter().cloned());
    }
}

// An address may carry a secret, so it is not shown as it is.
impl fmt::Debug for OpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenApi")
            .field("document", &mask_url(&self.document))
            .field("base_url", &self.base_url.as_deref().map(mask_url))
            .field("tags", &self.tags)
            .field("only", &self.only)
            .field("except", &self.except)
            .field("headers", &self.headers)
            .field("auth", &self.auth)
            .finish()
    }
}
