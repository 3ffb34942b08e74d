//! A server that callers use with accounts of their own: each has a connection of its own.
//!
//! **Invariant:** a request of one caller never goes over the connection of another, nor over that
//! of the operator, who has an account too.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_http::Credentials;
use capstan_hub::System;
use capstan_hub::ports::{
    About, Backend, BoxFuture, Connected, Footprint, Lane, Listener, Principal, PrincipalId,
};
use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::join_all;

use super::Server;
use crate::settings::{HttpSettings, LoginCredentials};

/// The largest number of callers with a connection. The least recently used one is closed first.
const MAX_CALLERS: usize = 256;

/// Finds the logins of callers to one server.
#[derive(Clone)]
pub struct CallerCredentials(pub Arc<dyn FindCredentials>);

/// Finds the login of a caller.
pub trait FindCredentials: Send + Sync {
    /// The credentials of this caller; `None` if it has not signed in. The error says why they
    /// cannot be read.
    fn find(
        &self,
        caller: PrincipalId,
    ) -> BoxFuture<'_, Result<Option<Arc<dyn Credentials>>, String>>;
}

/// A server with a connection for each caller.
pub struct PerCallerServer {
    /// The connection of the operator. Its lists are shown to callers who have not signed in.
    operator: Arc<Server>,
    settings: HttpSettings,
    credentials: CallerCredentials,
    listener: Arc<dyn Listener>,
    callers: Mutex<Callers>,
}

#[derive(Default)]
struct Callers {
    servers: HashMap<PrincipalId, Own>,
    /// Counts uses, as the clock of the LRU order.
    uses: u64,
}

struct Own {
    server: Arc<Server>,
    used: u64,
}

// === impl CallerCredentials ===

impl fmt::Debug for CallerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerCredentials")
    }
}

// === impl PerCallerServer ===

impl PerCallerServer {
    /// Creates a server that is not connected yet. Must be called within a tokio runtime.
    pub fn new(
        settings: HttpSettings,
        credentials: CallerCredentials,
        listener: Arc<dyn Listener>,
    ) -> Self {
        let operator = Server::heard_by(settings.clone(), Arc::clone(&listener));
        let callers = Mutex::default();
        Self { operator: Arc::new(operator), settings, credentials, listener, callers }
    }

    fn callers(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, caller: PrincipalId) -> Option<Arc<Server>> {
        let mut callers = self.callers();
        callers.uses += 1;
        let now = callers.uses;
        let own = callers.servers.get_mut(&caller)?;
        own.used = now;
        let server = Arc::clone(&own.server);
        drop(callers);
        Some(server)
    }

    /// The server of a caller, who must have signed in.
    async fn of(&self, caller: PrincipalId) -> Result<Arc<Server>, CallError> {
        if let Some(server) = self.known(caller) {
            return Ok(server);
        }
        let needs_login = |reason: String| {
            let server = self.settings.name.clone();
            CallError::NeedsLogin { server, reason }
        };
        let found = self.credentials.0.find(caller).await.map_err(needs_login)?;
        let login = found.ok_or_else(|| needs_login("this caller has not signed in".to_owned()))?;
        let login = Some(LoginCredentials(login));
        let settings = HttpSettings { login, ..self.settings.clone() };
        let server = Arc::new(Server::heard_by(settings, Arc::clone(&self.listener)));
        let mut callers = self.callers();
        callers.uses += 1;
        let used = callers.uses;
        if callers.servers.len() >= MAX_CALLERS && !callers.servers.contains_key(&caller) {
            let oldest = callers.servers.iter().min_by_key(|(_, own)| own.used);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                callers.servers.remove(&oldest);
            }
        }
        // Of two requests at the same time, both use the first one's server.
        let own = callers.servers.entry(caller).or_insert(Own { server, used });
        let server = Arc::clone(&own.server);
        drop(callers);
        Ok(server)
    }

    /// The servers of all callers, and that of the operator.
    fn all(&self) -> Vec<Arc<Server>> {
        let mut all = vec![Arc::clone(&self.operator)];
        all.extend(self.callers().servers.values().map(|own| Arc::clone(&own.server)));
        all
    }

    fn own(&self) -> Vec<Arc<Server>> {
        self.callers().servers.values().map(|own| Arc::clone(&own.server)).collect()
    }
}

/// The lane of a request at the server of its principal.
fn inner(lane: Lane) -> Lane {
    Lane { principal: Principal::Operator, ..lane }
}

impl Backend for PerCallerServer {
    fn name(&self) -> &ServerName {
        self.operator.name()
    }

    fn state(&self) -> ServerState {
        let is_connected = |server: &Arc<Server>| server.state() == ServerState::Connected;
        let state = self.operator.state();
        let may_differ = matches!(state, ServerState::Idle | ServerState::NeedsLogin);
        if may_differ && self.own().iter().any(is_connected) {
            return ServerState::Connected;
        }
        state
    }

    fn about(&self) -> Option<Arc<About>> {
        self.operator.about().or_else(|| {
            let about = self.own().iter().find_map(|server| server.about())?;
            // The instructions may be those for one account.
            Some(Arc::new(About { instructions: None, ..About::clone(&about) }))
        })
    }

    fn connected(self: Arc<Self>, lane: Lane) -> Option<Connected> {
        let server = match lane.principal {
            Principal::Operator => Arc::clone(&self.operator),
            Principal::Caller(caller) => self.known(caller)?,
            Principal::Nobody => return None,
        };
        server.connected(inner(lane))
    }

    fn connect(self: Arc<Self>, lane: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        async move {
            let server = match lane.principal {
                Principal::Operator => Arc::clone(&self.operator),
                Principal::Caller(caller) => self.of(caller).await?,
                Principal::Nobody => {
                    let reason = "the caller has not authenticated".to_owned();
                    return Err(CallError::NeedsLogin { server: self.name().clone(), reason });
                }
            };
            server.connect(inner(lane)).await
        }
        .boxed()
    }

    fn may_have_lanes(&self) -> bool {
        self.operator.may_have_lanes()
    }

    fn disconnect(&self) {
        self.all().iter().for_each(|server| server.disconnect());
    }

    fn disconnect_lanes(&self) -> bool {
        self.all().iter().filter(|server| server.disconnect_lanes()).count() > 0
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let own = self.own();
            let told = join_all(own.iter().map(|server| server.inform(system))).await;
            let operator = self.operator.inform(system).await;
            told.into_iter().fold(operator, Result::and)
        }
        .boxed()
    }

    fn footprint(&self) -> Option<Footprint> {
        None
    }

    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            let all = self.all();
            join_all(all.iter().map(|server| server.close())).await;
        }
        .boxed()
    }
}
