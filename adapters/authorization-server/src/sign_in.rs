//! Finds out which user is at the authorization endpoint.

use std::net::IpAddr;
use std::sync::Arc;

use capstan_hub::ports::{Clock, StoreError, UserStore};
use capstan_model::Secret;
use tokio::sync::Semaphore;

use crate::http::Request;
use crate::password;
use crate::rate_limit::RateLimit;
use crate::settings::TrustedProxy;

/// Most passwords that are checked at the same time: each needs 19 MiB and a core.
const AT_ONCE: usize = 2;

/// Longest name of a user, in bytes.
pub(crate) const MAX_NAME: usize = 256;

/// A user who has proved who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) subject: String,
    pub(crate) roles: Vec<String>,
}

/// The reason why a proxy's request names no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotNamed {
    #[error("this page is reached only through the sign-in proxy")]
    Elsewhere,
    #[error("the sign-in proxy did not name a user")]
    Nobody,
}

/// The reason why a password is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSignedIn {
    #[error("the name or the password is wrong")]
    Wrong,
    #[error("too many attempts; try again in a few minutes")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks passwords.
pub(crate) struct Passwords {
    clock: Arc<dyn Clock>,
    permits: Semaphore,
    /// A hash of no password, so that unknown users take as long as known ones.
    nobody: tokio::sync::OnceCell<Secret<String>>,
    by_name_and_peer: RateLimit<(String, IpAddr)>,
    by_peer: RateLimit<IpAddr>,
    by_name: RateLimit<String>,
}

// === impl TrustedProxy ===

impl TrustedProxy {
    /// The user that the proxy names.
    pub(crate) fn user(&self, request: &Request) -> Result<User, NotNamed> {
        if !self.networks.iter().any(|network| network.contains(request.peer)) {
            return Err(NotNamed::Elsewhere);
        }
        let subject = request.header(&self.user_header).map(str::trim).unwrap_or_default();
        if subject.is_empty() || subject.len() > MAX_NAME {
            return Err(NotNamed::Nobody);
        }
        let groups = request.header(&self.groups_header).unwrap_or_default().split(',');
        let roles = groups.map(str::trim).filter(|group| !group.is_empty());
        Ok(User { subject: subject.to_owned(), roles: roles.map(ToOwned::to_owned).collect() })
    }
}

// === impl Passwords ===

impl Passwords {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        use std::time::Duration;
        Self {
            clock,
            permits: Semaphore::new(AT_ONCE),
            nobody: tokio::sync::OnceCell::new(),
            by_name_and_peer: RateLimit::new(5, Duration::from_mins(5)),
            by_peer: RateLimit::new(30, Duration::from_mins(5)),
            by_name: RateLimit::new(100, Duration::from_hours(1)),
        }
    }

    /// Checks the password of a user.
    pub(crate) async fn check(
        &self,
        users: &dyn UserStore,
        name: &str,
        password: Secret<String>,
        peer: IpAddr,
    ) -> Result<User, NotSignedIn> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(NotSignedIn::Wrong);
        }
        let now = self.clock.monotonic();
        let admitted = self.by_peer.admit(peer, now)
            && self.by_name_and_peer.admit((name.to_owned(), peer), now)
            && self.by_name.admit(name.to_owned(), now);
        if !admitted {
            return Err(NotSignedIn::TooMany);
        }
        let user = users.user(name).await?;
        let hash = match &user {
            Some(user) => user.password.clone(),
            None => self.nobody().await,
        };
        let Ok(_permit) = self.permits.acquire().await else { return Err(NotSignedIn::TooMany) };
        let checked = tokio::task::spawn_blocking(move || password::verify(&password, &hash));
        match (checked.await, user) {
            (Ok(true), Some(user)) => Ok(User { subject: user.name, roles: user.roles }),
            _ => Err(NotSignedIn::Wrong),
        }
    }

    async fn nobody(&self) -> Secret<String> {
        let make = || async {
            let password = Secret::new("the password of nobody".to_owned());
            let hash = tokio::task::spawn_blocking(move || password::hash(&password)).await;
            // Without a hash, the check still fails.
            hash.ok().and_then(Result::ok).unwrap_or_default()
        };
        self.nobody.get_or_init(make).await.clone()
    }
}
