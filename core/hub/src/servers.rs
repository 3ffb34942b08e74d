//! What a front may know of servers: data, never a server itself.

use std::sync::Arc;

use capstan_model::{CallError, ServerName, ServerState};

use crate::hub::Hub;
use crate::life::Server;
use crate::pipeline::System;
use crate::ports::{About, Footprint, Item, Listing, Pace};

/// How up to date a list has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// A remembered list will do, and a server that starts when a client lists is not started.
    Remembered,
    /// A remembered list will do while the server is not connected; a client asks for it.
    Known,
    /// As the running server lists it; connects if need be.
    Current,
}

/// The state of one server, its use and its resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Vitals {
    /// Which one.
    pub server: ServerName,
    /// Its state.
    pub state: ServerState,
    /// How it is used, where that is counted.
    pub pace: Option<Pace>,
    /// What it uses up, where it runs on this machine.
    pub footprint: Option<Footprint>,
}

/// Connections that a newer hub does not use. They are closed when this is told to.
pub struct Retired(Vec<Arc<Server>>);

impl Hub {
    /// The names of the servers, in the order of the configuration.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &ServerName> {
        self.servers.keys()
    }

    /// Whether there is a server of that name.
    pub fn has(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }

    /// The state of a server.
    pub fn state(&self, server: &ServerName) -> Option<ServerState> {
        self.servers.get(server).map(|server| server.state())
    }

    /// Who a server is, as far as that is known; starts nothing.
    pub fn about(&self, server: &ServerName) -> Option<Arc<About>> {
        self.servers.get(server)?.about()
    }

    /// The state of a server, how it is used, and what it uses up. Starts nothing.
    ///
    /// Looks at the system's processes, which takes a moment.
    pub fn vitals_of(&self, server: &ServerName) -> Option<Vitals> {
        self.servers.get(server).map(vitals)
    }

    /// The same of all servers, in the order of the configuration.
    pub fn vitals(&self) -> Vec<Vitals> {
        self.servers.values().map(vitals).collect()
    }

    /// The last lines that a server wrote to its stderr, oldest first.
    pub fn stderr(&self, server: &ServerName) -> Vec<String> {
        self.servers.get(server).map(|server| server.stderr()).unwrap_or_default()
    }

    /// Whether a server is the same one, with the same connection, in another hub.
    pub fn shares(&self, other: &Self, server: &ServerName) -> bool {
        match (self.servers.get(server), other.servers.get(server)) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (Some(_) | None, _) => false,
        }
    }

    /// The servers that another hub does not share.
    pub fn retired(&self, now: &Self) -> Retired {
        let gone = self.servers.iter().filter(|(name, _)| !self.shares(now, name));
        Retired(gone.map(|(_, server)| Arc::clone(server)).collect())
    }

    /// Connects to a server of the operator's choice, for example one that is required, and says
    /// who it is.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub async fn start(&self, server: &ServerName) -> Result<(), CallError> {
        self.server(server)?.wake().await.map(drop)
    }

    /// Who a server is; connects if that is not known.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub async fn introduce(&self, server: &ServerName) -> Result<Arc<About>, CallError> {
        let server = self.server(server)?;
        if let Some(about) = server.about() {
            return Ok(about);
        }
        drop(server.wake().await?);
        Ok(server.about().unwrap_or_default())
    }

    /// Asks a server that is connected whether it is still there.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn check(&self, server: &ServerName) -> Result<(), CallError> {
        self.server(server)?.inform(&System::ping()).await
    }

    /// Tells a server how much to log; starts nothing.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn set_level(&self, server: &ServerName, level: &str) -> Result<(), CallError> {
        self.server(server)?.inform(&System::level(level.to_owned())).await
    }

    /// Ends a subscription; starts nothing.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn unsubscribe(&self, server: &ServerName, uri: &str) -> Result<(), CallError> {
        self.server(server)?.inform(&System::unsubscribe(uri.to_owned())).await
    }

    /// What a server lists. Tools are compared with what was approved of them before anything is
    /// decided about them.
    ///
    /// # Errors
    /// When the server cannot be used, and nothing that will do is remembered.
    pub async fn list(
        &self,
        server: &ServerName,
        listing: Listing,
        freshness: Freshness,
    ) -> Result<Arc<[Item]>, CallError> {
        self.judged(self.server(server)?, listing, freshness).await.map(|(items, _)| items)
    }

    /// What a running server lists, where nothing has to be waited for.
    pub fn listed(&self, server: &ServerName, listing: Listing) -> Option<Arc<[Item]>> {
        let lease = self.servers.get(server)?.lease()?;
        self.judged_at_once(&lease, listing).map(|(items, _)| items)
    }

    /// What a server lists, for as long as that takes; another hub may take the place of this one
    /// meanwhile.
    pub fn list_in_background(
        &self,
        server: &ServerName,
        listing: Listing,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
        let server = self.server(server).cloned();
        async move { server?.list(listing, Freshness::Known).await.map(drop) }
    }

    pub(crate) fn server(&self, name: &ServerName) -> Result<&Arc<Server>, CallError> {
        self.servers.get(name).ok_or_else(|| {
            let reason = "it is not in use".to_owned();
            CallError::Unreachable { server: name.clone(), reason }
        })
    }
}

fn vitals(server: &Arc<Server>) -> Vitals {
    Vitals {
        server: server.name().clone(),
        state: server.state(),
        pace: server.pace(),
        footprint: server.footprint(),
    }
}

// === impl Retired ===

impl Retired {
    /// Whether there is nothing to close.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends the connections, all at the same time.
    pub async fn close(&self) {
        futures::future::join_all(self.0.iter().map(|server| server.close())).await;
    }
}
