//! The settings of an OpenAPI document.

use std::fmt;

use capstan_model::{Credentials, Secret};
use indexmap::IndexMap;

use capstan_safety::mask::mask_url;

/// An OpenAPI document used as a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OpenApi {
    /// The document: a file or an address.
    pub document: String,
    /// The address that requests are sent to; `None` for the one in the document.
    pub base_url: Option<String>,
    /// Only operations with one of these tags; `None` means all.
    pub tags: Option<Vec<String>>,
    /// Only operations that match one of these patterns; `None` means all.
    pub only: Option<Vec<String>>,
    /// Never operations that match one of these patterns.
    pub except: Vec<String>,
    /// Headers to send with every request.
    pub headers: IndexMap<String, Secret<String>>,
    /// The credentials of requests, by the names of the document's security schemes.
    pub auth: IndexMap<String, Credentials>,
}

// === impl OpenApi ===

impl OpenApi {
    /// Adds the restrictions of another entry for the same server.
    pub(crate) fn keep_restrictions_of(&mut self, other: &Self) {
        for (own, theirs) in [(&mut self.tags, &other.tags), (&mut self.only, &other.only)] {
            if let Some(only) = theirs {
                own.get_or_insert_with(|| only.clone()).retain(|one| only.contains(one));
            }
        }
        self.except.extend(other.except.iter().cloned());
    }
}

// An address may contain a secret, so it is masked.
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
