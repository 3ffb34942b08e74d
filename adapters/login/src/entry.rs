//! The stored tokens of a login.
//!
//! An entry is found by the server's address and the name of the login; its key also has the
//! issuer, so that tokens of different issuers are never mixed up.

use std::time::Duration;

use capstan_http::Url;
use capstan_hub::ports::{Clock, Vault, VaultKey, VaultKind, VaultLock, VaultPlace};
use capstan_model::Secret;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::discovery::{Discovered, canonical};
use crate::error::LoginError;
use crate::token::Granted;

/// The longest time before expiry at which a token is renewed.
const MARGIN: Duration = Duration::from_mins(1);

/// The name of a login that has none.
const UNNAMED: &str = "default";

/// The largest number of times that more scopes are requested without success.
const MAX_STEP_UPS: u32 = 3;

/// The version of stored entries.
const VERSION: u32 = 1;

/// The tokens of a login, as they are stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) issuer: Option<String>,
    /// The `resource` that the tokens were requested for.
    pub(crate) resource: String,
    pub(crate) token_url: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) revocation_url: Option<String>,
    pub(crate) client: Client,
    access: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    refresh: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// The time of the grant, in seconds since 1970.
    granted: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) expires: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) account: Option<String>,
    /// Scopes that the server wants in addition.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) wanted: Vec<String>,
    /// How often more scopes were requested since a request last worked.
    #[serde(default)]
    pub(crate) step_ups: u32,
}

/// The place of a login's entry in the vault.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// The end of the key: the server's address and the name of the login.
    end: String,
    /// Serializes changes of the login over all processes.
    lock: VaultKey,
}

// === impl Slot ===

impl Slot {
    pub(crate) fn new(server: &Url, login: Option<&str>) -> Self {
        let end = format!(" {} {}", canonical(server), login.unwrap_or(UNNAMED));
        let lock = VaultKey { kind: VaultKind::Tokens, name: end.trim_start().to_owned() };
        Self { end, lock }
    }

    /// The names of all logins to a server; `None` is the one without a name.
    pub(crate) async fn names(
        server: &Url,
        vault: &dyn Vault,
    ) -> Result<Vec<Option<String>>, LoginError> {
        let middle = format!(" {} ", canonical(server));
        let keys = vault.list(VaultKind::Tokens).await?;
        let names = keys.iter().filter_map(|(key, _)| {
            let (_, name) = key.name.split_once(&middle)?;
            Some((name != UNNAMED).then(|| name.to_owned()))
        });
        let mut names: Vec<Option<String>> = names.collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Takes the lock of the login. The issuer is not part of it, because it may change.
    pub(crate) async fn lock(&self, vault: &dyn Vault) -> Result<VaultLock, LoginError> {
        Ok(vault.lock(&self.lock).await?)
    }

    /// Reads the entry, with its key.
    pub(crate) async fn read(
        &self,
        vault: &dyn Vault,
    ) -> Result<Option<(VaultKey, Entry)>, LoginError> {
        let keys = vault.list(VaultKind::Tokens).await?;
        for (key, _) in keys.into_iter().filter(|(key, _)| key.name.ends_with(&self.end)) {
            let Some(text) = vault.read(&key).await? else { continue };
            if let Ok(entry) = serde_json::from_str::<Entry>(text.reveal())
                && entry.version == VERSION
            {
                return Ok(Some((key, entry)));
            }
        }
        Ok(None)
    }

    /// The place of the entry, if there is one.
    pub(crate) async fn place(&self, vault: &dyn Vault) -> Result<Option<VaultPlace>, LoginError> {
        let keys = vault.list(VaultKind::Tokens).await?;
        let mut own = keys.into_iter().filter(|(key, _)| key.name.ends_with(&self.end));
        Ok(own.next().map(|(_, place)| place))
    }

    /// Stores the entry, then removes those of other issuers.
    pub(crate) async fn write(
        &self,
        vault: &dyn Vault,
        entry: &Entry,
    ) -> Result<VaultPlace, LoginError> {
        let issuer = entry.issuer.as_deref().unwrap_or(&entry.token_url);
        let key = VaultKey { kind: VaultKind::Tokens, name: format!("{issuer}{}", self.end) };
        let text = serde_json::to_string(entry).unwrap_or_default();
        let place = vault.write(&key, &Secret::new(text)).await?;
        self.remove_except(vault, Some(&key)).await?;
        Ok(place)
    }

    /// Removes the entry. Returns false if there is none.
    pub(crate) async fn remove(&self, vault: &dyn Vault) -> Result<bool, LoginError> {
        self.remove_except(vault, None).await
    }

    async fn remove_except(
        &self,
        vault: &dyn Vault,
        kept: Option<&VaultKey>,
    ) -> Result<bool, LoginError> {
        let mut removed = false;
        for (key, _) in vault.list(VaultKind::Tokens).await? {
            if key.name.ends_with(&self.end) && Some(&key) != kept {
                removed |= vault.remove(&key).await?;
            }
        }
        Ok(removed)
    }
}

// === impl Entry ===

impl Entry {
    /// The entry for tokens that were just granted. `requested` are the scopes that were requested.
    pub(crate) fn new(
        discovered: &Discovered,
        client: Client,
        requested: &[String],
        granted: Granted,
        clock: &dyn Clock,
    ) -> Self {
        Self {
            version: VERSION,
            issuer: discovered.issuer.clone(),
            resource: discovered.resource.clone(),
            token_url: discovered.token.url().to_string(),
            revocation_url: discovered.revocation.as_ref().map(|one| one.url().to_string()),
            client,
            access: granted.access.reveal().clone(),
            refresh: granted.refresh.map(|token| token.reveal().clone()),
            scopes: granted.scopes.unwrap_or_else(|| requested.to_vec()),
            granted: clock.now().as_second(),
            expires: granted.expires,
            account: granted.account,
            wanted: Vec::new(),
            step_ups: 0,
        }
    }

    /// The entry after a refresh. What the answer does not mention stays.
    pub(crate) fn renewed(&self, granted: Granted, clock: &dyn Clock) -> Self {
        Self {
            access: granted.access.reveal().clone(),
            refresh: granted
                .refresh
                .map(|token| token.reveal().clone())
                .or_else(|| self.refresh.clone()),
            scopes: granted.scopes.unwrap_or_else(|| self.scopes.clone()),
            granted: clock.now().as_second(),
            expires: granted.expires,
            account: granted.account.or_else(|| self.account.clone()),
            ..self.clone()
        }
    }

    pub(crate) fn access(&self) -> Secret<String> {
        Secret::new(self.access.clone())
    }

    pub(crate) fn refresh(&self) -> Option<Secret<String>> {
        self.refresh.clone().map(Secret::new)
    }

    /// Drops the refresh token, because the authorization server rejects it.
    pub(crate) fn without_refresh(&self) -> Self {
        Self { refresh: None, ..self.clone() }
    }

    /// True if the access token can be used now.
    pub(crate) fn is_valid(&self, now: i64) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// The time from which the token is renewed, if it expires.
    pub(crate) fn renew_from(&self) -> Option<i64> {
        let lasts = self.expires?.saturating_sub(self.granted).max(0);
        let margin = i64::try_from(MARGIN.as_secs()).unwrap_or(0).min(lasts / 5);
        Some(self.expires?.saturating_sub(margin))
    }

    /// Notes scopes that the server wants; `None` if asking for them again would be useless.
    pub(crate) fn wanting(&self, scopes: &[String]) -> Option<Self> {
        let is_granted = scopes.iter().all(|scope| self.scopes.contains(scope));
        if is_granted || self.step_ups >= MAX_STEP_UPS {
            return None;
        }
        let mut wanted = self.wanted.clone();
        wanted.extend(scopes.iter().filter(|scope| !self.wanted.contains(scope)).cloned());
        Some(Self { wanted, ..self.clone() })
    }

    /// The secret values of the entry.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let own = [Some(self.access.as_str()), self.refresh.as_deref()];
        own.into_iter().flatten().chain(self.client.secrets())
    }
}
