//! A vault in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use capstan_hub::ports::{
    BoxFuture, Vault, VaultError, VaultKey, VaultKind, VaultLock, VaultPlace,
};
use capstan_model::Secret;
use futures::FutureExt;
use futures::future::ready;
use tokio::sync::Semaphore;

/// A vault in memory, which several logins can share as processes do.
#[derive(Default)]
pub struct MemoryVault {
    entries: Mutex<Entries>,
    locks: Mutex<BTreeMap<VaultKey, Arc<Semaphore>>>,
}

type Entries = BTreeMap<VaultKey, Secret<String>>;

// === impl MemoryVault ===

impl MemoryVault {
    /// The value of every entry of a kind.
    pub fn values(&self, kind: VaultKind) -> Vec<String> {
        self.with(|entries| {
            let own = entries.iter().filter(|(key, _)| key.kind == kind);
            own.map(|(_, value)| value.reveal().clone()).collect()
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Entries) -> T) -> T {
        work(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn place() -> VaultPlace {
        VaultPlace::File("memory".to_owned())
    }
}

impl Vault for MemoryVault {
    fn read<'a>(
        &'a self,
        key: &'a VaultKey,
    ) -> BoxFuture<'a, Result<Option<Secret<String>>, VaultError>> {
        ready(Ok(self.with(|entries| entries.get(key).cloned()))).boxed()
    }

    fn write<'a>(
        &'a self,
        key: &'a VaultKey,
        value: &'a Secret<String>,
    ) -> BoxFuture<'a, Result<VaultPlace, VaultError>> {
        self.with(|entries| entries.insert(key.clone(), value.clone()));
        ready(Ok(Self::place())).boxed()
    }

    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
        ready(Ok(self.with(|entries| entries.remove(key).is_some()))).boxed()
    }

    fn list(
        &self,
        kind: VaultKind,
    ) -> BoxFuture<'_, Result<Vec<(VaultKey, VaultPlace)>, VaultError>> {
        let keys = self.with(|entries| {
            let keys = entries.keys().filter(|key| key.kind == kind);
            keys.map(|key| (key.clone(), Self::place())).collect()
        });
        ready(Ok(keys)).boxed()
    }

    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        async move {
            let permit = lock.acquire_owned().await.map_err(|_| VaultError::Busy)?;
            Ok(VaultLock(Box::new(permit)))
        }
        .boxed()
    }
}
