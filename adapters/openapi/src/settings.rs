//! What the configuration says of one document, ready to be used.

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
    /// Where the document is.
    pub source: Source,
    /// Where requests go; `None` for where the document says. What stands behind its `?` is sent
    /// with every request.
    pub base_url: Option<Secret<String>>,
    /// Headers sent with every request.
    pub headers: Vec<(String, Secret<String>)>,
    /// What requests make themselves known by, by the names of the document's security schemes.
    pub auth: Vec<(String, Credentials)>,
    /// Values that must not appear in answers, or in anything else that is shown.
    pub secrets: Vec<Secret<String>>,
    /// Only operations with one of these tags; `None` means all.
    pub tags: Option<Vec<String>>,
    /// Only operations that one of these means, by tool name, `operationId` or as in `GET /pets/*`;
    /// `None` means all.
    pub only: Option<Vec<Glob>>,
    /// Never operations that one of these means.
    pub except: Vec<Glob>,
    /// The addresses that requests may be sent to, for documents and tokens as well.
    pub addresses: AddressPolicy,
    /// How long getting the document may take.
    pub startup_timeout: Duration,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many bytes of an answer are read.
    pub answer: usize,
    /// Where to keep documents that were fetched; `None` keeps nothing.
    pub cache: Option<PathBuf>,
}

/// Where a document is.
#[derive(Clone, Debug)]
pub enum Source {
    /// In a file.
    File(PathBuf),
    /// On the web; the address may carry a token.
    Web(Secret<String>),
}

// === impl OpenApiSettings ===

impl OpenApiSettings {
    /// A client for an address, which sends these headers and keeps secrets out of errors.
    pub(crate) fn client(
        &self,
        address: &WebAddress,
        headers: &[(String, Secret<String>)],
    ) -> Result<Client, String> {
        let secrets = headers.iter().map(|(_, value)| value).chain(&self.secrets);
        let masker = Masker::new(secrets.map(|secret| secret.reveal().clone()));
        Client::new(address, headers, Arc::new(masker), &self.addresses)
    }

    /// Whether requests are sent with anything that is not for all to know.
    pub(crate) fn sends_secrets(&self) -> bool {
        let secrets = || self.secrets.iter().map(Secret::reveal).filter(|one| !one.is_empty());
        let mut headers = self.headers.iter().map(|(_, value)| value.reveal());
        !self.auth.is_empty()
            || headers.any(|value| secrets().any(|one| value.contains(one.as_str())))
    }
}
