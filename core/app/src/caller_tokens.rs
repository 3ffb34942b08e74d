//! Tokens that the operator creates for callers of the gateway.

use std::sync::Arc;
use std::time::Duration;

use capstan_config::{AuthProvider, RESERVED_SUBJECTS};
use capstan_hub::ports::{AccessToken, AccessTokens, Clock, StoreError};
use capstan_hub::{Entry, Outcome};
use capstan_model::{Caller, Front, Kind, Secret};
use jiff::SignedDuration;

use crate::{AppError, ErrorKind, Setup};

/// The longest name of a caller or a role, in bytes.
const MAX_NAME: usize = 256;

/// The most tokens that are listed.
const MAX_LISTED: u32 = 10_000;

/// Creates, lists and revokes tokens.
pub struct CallerTokens {
    /// The store of tokens.
    pub store: Arc<dyn AccessTokens>,
    /// The source of new tokens.
    pub source: Arc<dyn TokenSource>,
    /// The audit log.
    pub audit: Arc<dyn AuditWriter>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Makes new tokens.
pub trait TokenSource: Send + Sync {
    /// Makes a token that nobody can guess.
    fn make(&self) -> Result<MadeToken, AppError>;
}

/// Writes to the audit log of a configuration.
pub trait AuditWriter: Send + Sync {
    /// Writes one entry.
    fn write(&self, setup: &Setup, entry: Entry) -> Result<(), AppError>;
}

/// A new token that is not stored yet.
#[derive(Clone, Debug)]
pub struct MadeToken {
    /// The token.
    pub token: Secret<String>,
    /// Its digest.
    pub digest: String,
    /// Its name in lists.
    pub id: String,
}

/// A caller that a token is created for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCaller {
    /// The caller's name.
    pub subject: String,
    /// The caller's roles.
    pub roles: Vec<String>,
    /// The time for which the token is valid; `None` means forever.
    pub valid_for: Option<Duration>,
}

/// A created token.
#[derive(Clone, Debug)]
pub struct CreatedToken {
    /// The token, which cannot be shown again.
    pub token: Secret<String>,
    /// The stored part.
    pub stored: AccessToken,
    /// True if the gateway's configuration accepts such tokens.
    pub is_accepted: bool,
    /// Roles that the access rules do not mention.
    pub unknown_roles: Vec<String>,
}

// === impl CallerTokens ===

impl CallerTokens {
    /// Creates a token.
    ///
    /// # Errors
    /// For a name that cannot be used, or if the token cannot be stored.
    pub async fn create(&self, setup: &Setup, new: NewCaller) -> Result<CreatedToken, AppError> {
        let NewCaller { subject, roles, valid_for } = new;
        check_name("the name of the caller", &subject)?;
        for role in &roles {
            check_name("a role", role)?;
        }
        if RESERVED_SUBJECTS.contains(&subject.as_str()) {
            let message = format!("`{subject}` is reserved");
            return Err(AppError::usage(message).hint("choose another name for the caller"));
        }
        if valid_for.is_some_and(|time| time.is_zero()) {
            let message = "a token that expires at once cannot be used";
            return Err(AppError::usage(message).hint("write `--expires 90d`, or leave it out"));
        }
        let now = self.clock.now();
        let expires_at = match valid_for.map(SignedDuration::try_from) {
            None => None,
            Some(time) => {
                Some(time.ok().and_then(|time| now.checked_add(time).ok()).ok_or_else(|| {
                    AppError::usage("the token would expire too far in the future")
                })?)
            }
        };
        let MadeToken { token, digest, id } = self.source.make()?;
        let stored = AccessToken { id, digest, subject, roles, created_at: now, expires_at };
        self.store.add(&stored).await.map_err(|error| failed(&error))?;
        self.record(setup, "auth/create", &stored)?;
        let auth = setup.loaded.config.gateway.auth.as_ref();
        let is_accepted = auth.is_some_and(|auth| auth.has(AuthProvider::Tokens));
        let unknown_roles = unknown_roles(setup, &stored.roles);
        Ok(CreatedToken { token, stored, is_accepted, unknown_roles })
    }

    /// Lists the tokens, oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self) -> Result<Vec<AccessToken>, AppError> {
        self.store.all(MAX_LISTED).await.map_err(|error| failed(&error))
    }

    /// True if a token can no longer be used.
    pub fn has_expired(&self, token: &AccessToken) -> bool {
        token.expires_at.is_some_and(|end| end <= self.clock.now())
    }

    /// Revokes a token by its id.
    ///
    /// # Errors
    /// If there is none with this id, or it cannot be removed.
    pub async fn revoke(&self, setup: &Setup, id: &str) -> Result<AccessToken, AppError> {
        let revoked = self.store.revoke(id).await.map_err(|error| failed(&error))?;
        let revoked = revoked.ok_or_else(|| {
            AppError::new(ErrorKind::NotFound, format!("there is no token with the id `{id}`"))
                .hint("`capstan auth token list` shows the ids")
        })?;
        self.record(setup, "auth/revoke", &revoked)?;
        Ok(revoked)
    }

    fn record(
        &self,
        setup: &Setup,
        method: &'static str,
        token: &AccessToken,
    ) -> Result<(), AppError> {
        let entry = Entry {
            time: self.clock.now(),
            caller: Arc::new(Caller::operator(Front::Cli)),
            kind: Kind::Tool,
            method: Some(method),
            server: None,
            item: format!("token {} of {}", token.id, token.subject),
            effect: None,
            verdict: None,
            rule: None,
            approval: None,
            arguments: None,
            outcome: Outcome::Answered,
            duration: Duration::ZERO,
            request_bytes: 0,
            answer_bytes: 0,
        };
        self.audit.write(setup, entry)
    }
}

/// Refuses a name that is empty, too long or contains invisible characters.
fn check_name(what: &str, name: &str) -> Result<(), AppError> {
    let is_clear = !name.trim().is_empty() && !name.chars().any(char::is_control);
    if is_clear && name.len() <= MAX_NAME {
        return Ok(());
    }
    let message =
        format!("{what} must have 1 to {MAX_NAME} characters, without control characters");
    Err(AppError::usage(message))
}

/// The roles that no access rule mentions, if there are access rules.
fn unknown_roles(setup: &Setup, roles: &[String]) -> Vec<String> {
    let access = &setup.loaded.config.access;
    let is_known = |role: &String| {
        access.iter().any(|setting| {
            setting.table.roles.iter().any(|(known, _)| known == role)
                || setting.table.rules.iter().any(|rule| rule.roles.contains(role))
        })
    };
    if access.is_empty() {
        return Vec::new();
    }
    roles.iter().filter(|role| !is_known(role)).cloned().collect()
}

fn failed(error: &StoreError) -> AppError {
    AppError::caused(ErrorKind::Internal, error)
}
