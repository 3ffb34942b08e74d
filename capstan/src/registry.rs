//! The registry port of the application layer, with the adapter for registries.

use capstan_app::{AppError, ErrorKind, RegistryClient};
use capstan_hub::ports::BoxFuture;
use capstan_import::registry::Offer;
use capstan_registry::{OFFICIAL, Registry, RegistryError};

/// Registries on the web.
pub(crate) struct WebRegistries;

// === impl WebRegistries ===

impl RegistryClient for WebRegistries {
    fn search<'a>(
        &'a self,
        address: Option<&'a str>,
        words: &'a [String],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Offer>, AppError>> {
        Box::pin(async move {
            registry(address)?.search(words, most).await.map_err(|error| failed(&error))
        })
    }

    fn offer<'a>(
        &'a self,
        address: Option<&'a str>,
        name: &'a str,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Offer, AppError>> {
        Box::pin(async move {
            registry(address)?.offer(name, version).await.map_err(|error| failed(&error))
        })
    }

    fn bundle<'a>(
        &'a self,
        address: Option<&'a str>,
        url: &'a str,
        sha256: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AppError>> {
        Box::pin(async move {
            registry(address)?.bundle(url, sha256).await.map_err(|error| failed(&error))
        })
    }
}

fn registry(address: Option<&str>) -> Result<Registry, AppError> {
    Registry::at(address.unwrap_or(OFFICIAL)).map_err(|error| failed(&error))
}

fn failed(error: &RegistryError) -> AppError {
    let (kind, code, hint) = match error {
        RegistryError::Address(_) => {
            (ErrorKind::Usage, "invalid_input", "write it as `https://registry.example.com`")
        }
        RegistryError::Unknown(..) => (
            ErrorKind::NotFound,
            "not_found",
            "find the full name with `capstan registry search WORDS`",
        ),
        RegistryError::Blocked(..) => (
            ErrorKind::Denied,
            "policy_blocked",
            "a registry may be in your network, but its downloads must have public addresses",
        ),
        RegistryError::Unreachable(..)
        | RegistryError::TimedOut(..)
        | RegistryError::Refused(..) => (
            ErrorKind::Unreachable,
            "transient",
            "try again later, or use another registry: `--registry URL`, or CAPSTAN_REGISTRY",
        ),
        RegistryError::TooLarge(..) | RegistryError::Shape(..) => {
            (ErrorKind::Unreachable, "server_error", "use another registry with `--registry URL`")
        }
        RegistryError::Offer(_) => {
            (ErrorKind::Config, "invalid_config", "report this to the publisher of the server")
        }
        RegistryError::Digest(_) | RegistryError::NoDigest(_) => (
            ErrorKind::Denied,
            "policy_blocked",
            "do not use it; report this to the publisher of the server",
        ),
    };
    AppError::caused(kind, error).code(code).hint(hint)
}
