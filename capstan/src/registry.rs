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
            "`capstan registry search WORDS` finds the whole name",
        ),
        RegistryError::Blocked(..) => (
            ErrorKind::Denied,
            "policy_blocked",
            "a registry may be on your network; what it names must be at a public address",
        ),
        RegistryError::Unreachable(..)
        | RegistryError::TimedOut(..)
        | RegistryError::Refused(..) => (
            ErrorKind::Unreachable,
            "transient",
            "try again later, or ask another one: `--registry URL`, or CAPSTAN_REGISTRY",
        ),
        RegistryError::TooLarge(..) | RegistryError::Shape(..) => {
            (ErrorKind::Unreachable, "server_error", "`--registry URL` asks another one")
        }
        RegistryError::Offer(_) => {
            (ErrorKind::Config, "invalid_config", "tell whoever offers the server")
        }
        RegistryError::Digest(_) | RegistryError::NoDigest(_) => {
            (ErrorKind::Denied, "policy_blocked", "do not use it; tell whoever offers the server")
        }
    };
    AppError::caused(kind, error).code(code).hint(hint)
}
