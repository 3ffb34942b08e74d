//! The resolved configuration of one document.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan_http::{Client, WebAddress};
use capstan_model::{Credentials, Secret, ServerName};
use capstan_policy::Glob;
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;

/// An OpenAPI document and how to use it.
#[derive(Clone, Debug)]
pub struct OpenApiSettings {
    /// The server's name.
    pub name: ServerName,
    /// The location of the document.
    pub source: Source,
    /// The address that requests go to; `None` for the address in the document. Its query is sent
    /// with every request.
    pub base_url: Option<Secret<String>>,
    /// Headers sent with every request.
    pub headers: Vec<(String, Secret<String>)>,
    /// The credentials of requests, by the names of the document's security schemes.
    pub auth: Vec<(String, Credentials)>,
    /// Values that must not appear in answers, or in anything else that is shown.
    pub secrets: Vec<Secret<String>>,
    /// Only operations with one of these tags; `None` means all.
    pub tags: Option<Vec<String>>,
    /// Only operations that one of these matches; `None` means all.
    /// They match a tool name, an `operationId`, or method and path as in `GET /pets/*`.
    pub only: Option<Vec<Glob>>,
    /// Operations that one of these matches are excluded.
    pub except: Vec<Glob>,
    /// The network addresses that may be connected to, for documents and tokens as well.
    pub addresses: AddressPolicy,
    /// The timeout for loading the document.
    pub startup_timeout: Duration,
    /// The timeout of a call.
    pub timeout: Duration,
    /// The largest number of bytes read of an answer.
    pub answer: usize,
    /// The folder in which fetched documents are cached; `None` disables the cache.
    pub cache: Option<PathBuf>,
}

/// The location of a document.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// A web address, which may contain a token.
    Web(Secret<String>),
}

// === impl OpenApiSettings ===

impl OpenApiSettings {
    /// Creates a client for an address, which sends these headers and masks secrets in errors.
    pub(crate) fn client(
        &self,
        address: &WebAddress,
        headers: &[(String, Secret<String>)],
    ) -> Result<Client, String> {
        let secrets = headers.iter().map(|(_, value)| value).chain(&self.secrets);
        let masker = Masker::new(secrets.map(|secret| secret.reveal().clone()));
        Client::new(address, headers, Arc::new(masker), &self.addresses)
    }

    /// True if requests are sent with secrets.
    pub(crate) fn sends_secrets(&self) -> bool {
        let secrets = || self.secrets.iter().map(Secret::reveal).filter(|one| !one.is_empty());
        let mut headers = self.headers.iter().map(|(_, value)| value.reveal());
        !self.auth.is_empty()
            || headers.any(|value| secrets().any(|one| value.contains(one.as_str())))
    }
}
