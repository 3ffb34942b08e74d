//! The provider `forwarded`: headers in which a trusted reverse proxy names the user.
//!
//! **Invariant:** headers count only if the peer of the connection is in a trusted network.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_http::header::{HeaderMap, HeaderName};
use capstan_model::Caller;
use capstan_safety::address::Network;

use crate::provider::{Identity, Outcome, Provider, Refusal, Request};

/// Users that are remembered; beyond it, all are forgotten.
const MAX_USERS: usize = 4096;

/// The settings of the provider.
#[derive(Clone, Debug)]
pub struct ForwardedSettings {
    /// The header with the name of the user.
    pub header: String,
    /// The header with the roles, separated by commas.
    pub groups_header: String,
    /// The networks of the proxy.
    pub trusted: Vec<Network>,
}

/// Trusts the headers of a reverse proxy.
pub struct Forwarded {
    header: HeaderName,
    groups_header: HeaderName,
    trusted: Vec<Network>,
    /// Callers by the values of both headers, a line each, so that a user is one caller.
    callers: Mutex<HashMap<String, Arc<Caller>>>,
}

// === impl Forwarded ===

impl Forwarded {
    /// Creates the provider.
    ///
    /// # Errors
    /// The name of a header that cannot be used.
    pub fn new(settings: &ForwardedSettings) -> Result<Self, String> {
        let name = |name: &str| HeaderName::try_from(name).map_err(|_| name.to_owned());
        Ok(Self {
            header: name(&settings.header)?,
            groups_header: name(&settings.groups_header)?,
            trusted: settings.trusted.clone(),
            callers: Mutex::default(),
        })
    }

    fn caller(&self, request: &Request<'_>) -> Result<Arc<Caller>, Refusal> {
        let address = request.from.to_canonical();
        if !self.trusted.iter().any(|network| network.contains(address)) {
            return Err(Refusal::Missing);
        }
        let user = single(request.headers, &self.header)?.ok_or(Refusal::Missing)?.trim();
        if user.is_empty() {
            return Err(Refusal::Missing);
        }
        let groups = single(request.headers, &self.groups_header)?.unwrap_or_default();
        // No value of a header contains a line break.
        let key = format!("{user}\n{groups}");
        if let Some(caller) = self.callers().get(&key) {
            return Ok(Arc::clone(caller));
        }
        let roles = groups.split(',').map(str::trim).filter(|role| !role.is_empty());
        let roles = roles.map(ToOwned::to_owned).collect();
        let identity = Identity { subject: user.to_owned(), roles };
        let caller = identity.caller().ok_or(Refusal::Invalid)?;
        let mut callers = self.callers();
        if callers.len() >= MAX_USERS {
            callers.clear();
        }
        callers.insert(key, Arc::clone(&caller));
        drop(callers);
        Ok(caller)
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<String, Arc<Caller>>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Forwarded {
    fn name(&self) -> &'static str {
        "forwarded"
    }

    fn authenticate<'a>(&'a self, request: &Request<'a>) -> Outcome<'a> {
        Outcome::Ready(self.caller(request))
    }
}

/// The only value of a header.
///
/// With two values, one may be the client's: a proxy that appends instead of replacing is not safe.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Refusal::Invalid);
    }
    std::str::from_utf8(value.as_bytes()).map(Some).map_err(|_| Refusal::Invalid)
}
