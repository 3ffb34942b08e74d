//! Secrets that the user named, and references to them such as `keyring:NAME`.

mod references;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_hub::ports::{BoxFuture, Vault, VaultError, VaultKey, VaultKind, VaultPlace};
use capstan_model::{Secret, SecretName};

use crate::{AppError, ErrorKind, nearest};

pub use references::{
    ResolvedHeaders, ResolvedServer, known_headers, must_be_resolved, must_fetch_headers,
};

/// The secrets that the user named.
pub struct Secrets {
    /// The store.
    pub vault: Arc<dyn Vault>,
    /// Runs programs that print secrets.
    pub commands: Arc<dyn SecretCommands>,
}

/// Runs programs that print secrets.
pub trait SecretCommands: Send + Sync {
    /// Runs a program without a shell, with a bounded time and output, and with these variables
    /// beside the harmless ones. Returns its output; the reason of a failure contains no secret.
    fn run(
        &self,
        words: Vec<String>,
        variables: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<Secret<String>, String>>;
}

// === impl Secrets ===

impl Secrets {
    /// Stores a secret under a name, which replaces the old one; returns its place.
    ///
    /// # Errors
    /// If the name or the value cannot be used, or neither place can store it.
    pub async fn set(&self, name: &str, value: Secret<String>) -> Result<VaultPlace, AppError> {
        let key = key(name)?;
        if value.reveal().is_empty() {
            return Err(AppError::usage("the secret is empty")
                .hint(format!("`capstan secret remove {name}` removes a secret")));
        }
        if value.reveal().contains('\0') {
            return Err(AppError::usage("the secret contains a NUL character"));
        }
        self.vault.write(&key, &value).await.map_err(|error| failed(&error))
    }

    /// Returns the names of all secrets with their places, sorted by name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self) -> Result<Vec<(String, VaultPlace)>, AppError> {
        let listed = self.vault.list(VaultKind::Secret).await.map_err(|error| failed(&error))?;
        Ok(listed.into_iter().map(|(key, place)| (key.name, place)).collect())
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// If there is none of this name, or it cannot be removed.
    pub async fn remove(&self, name: &str) -> Result<(), AppError> {
        let key = key(name)?;
        if self.vault.remove(&key).await.map_err(|error| failed(&error))? {
            return Ok(());
        }
        let known = self.list().await?;
        let error = AppError::not_found(format!("no secret named `{name}`"));
        Err(match nearest(name, known.iter().map(|(name, _)| name.as_str())) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`capstan secret list` shows all secrets"),
        })
    }
}

fn key(name: &str) -> Result<VaultKey, AppError> {
    let name = SecretName::parse(name).map_err(|error| AppError::usage(error.to_string()))?;
    Ok(VaultKey { kind: VaultKind::Secret, name: name.as_str().to_owned() })
}

fn failed(error: &VaultError) -> AppError {
    let failure = AppError::new(ErrorKind::Internal, error.to_string());
    match error {
        VaultError::Busy => AppError { retryable: true, ..failure },
        VaultError::Unavailable { .. } => {
            failure.hint("`CAPSTAN_KEYRING=off` uses the file and no keyring")
        }
        VaultError::Damaged { .. } => failure,
    }
}
