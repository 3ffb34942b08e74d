//! The view of servers that fronts get: data, never a server itself.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::Json;
use futures::future::join_all;
use jiff::Timestamp;

use crate::hub::Hub;
use crate::life::Server;
use crate::pipeline::System;
use crate::ports::{About, Footprint, Item, Lane, Listing, Pace};

/// The required freshness of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// A saved list is sufficient. A server that starts on listing is not started.
    Remembered,
    /// A saved list is sufficient while the server is not connected. Counts as listing by a client.
    Known,
    /// The list of the running server; connects if there is no connection.
    Current,
}

/// The state of one server, its use and its resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Vitals {
    /// The server.
    pub server: ServerName,
    /// Its state.
    pub state: ServerState,
    /// Its use, if that is counted.
    pub pace: Option<Pace>,
    /// Its resource use, if it runs on this machine.
    pub footprint: Option<Footprint>,
}

/// Servers that a newer hub does not use. Their connections are closed by [`Self::close`].
pub struct Retired(Vec<Arc<Server>>);

impl Hub {
    /// The names of the servers, in the order of the configuration.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &ServerName> {
        self.servers.keys()
    }

    /// True if there is a server of that name.
    pub fn has(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }

    /// The state of a server.
    pub fn state(&self, server: &ServerName) -> Option<ServerState> {
        self.servers.get(server).map(|server| server.state())
    }

    /// The identity of a server, if it is known. Starts nothing.
    pub fn about(&self, server: &ServerName) -> Option<Arc<About>> {
        self.servers.get(server)?.about()
    }

    /// The identity of a server as callers of the lane see it; that of its home connection if no
    /// other is known. Starts nothing.
    pub fn about_in(&self, server: &ServerName, lane: Lane) -> Option<Arc<About>> {
        let server = self.servers.get(server)?;
        server.about_in(lane).or_else(|| server.about())
    }

    /// The time at which a saved list of a server was last confirmed. `None` if there is none, or
    /// the server is connected. Starts nothing.
    pub fn saved_at(&self, server: &ServerName, listing: Listing) -> Option<Timestamp> {
        self.servers.get(server)?.saved_at(listing)
    }

    /// Reads and saves all lists of the connected servers. Starts nothing.
    pub async fn save_lists(&self) {
        join_all(self.servers.values().map(Server::save_lists)).await;
    }

    /// Returns the members of a list's result besides its items, as the server sends them to
    /// callers of the lane. Starts no server, but opens the lane's connection.
    pub async fn list_members(
        &self,
        server: &ServerName,
        listing: Listing,
        lane: Lane,
    ) -> Option<Json> {
        let server = self.servers.get(server)?;
        let lane = server.separate(lane);
        let lease = match server.lease(lane) {
            Some(lease) => lease,
            None if server.is_connected() => server.wake(lane).await.ok()?,
            None => return None,
        };
        lease.list_members(listing).await
    }

    /// Returns the member `key` of a server's tools on the own connection of the lane, by the name of
    /// the tool, for tools whose calls are sent there. Opens nothing: the lists must have been read.
    pub fn own_members(&self, server: &ServerName, lane: Lane, key: &str) -> HashMap<String, Json> {
        let server = self.servers.get(server);
        let lease = server.and_then(|server| server.lease(server.separate(lane)));
        lease.map(|lease| lease.own_members(key)).unwrap_or_default()
    }

    /// Returns the state, use and resource use of a server. Starts nothing.
    ///
    /// Reads the system's process table, which takes a moment.
    pub fn vitals_of(&self, server: &ServerName) -> Option<Vitals> {
        self.servers.get(server).map(vitals)
    }

    /// Returns the state, use and resource use of all servers, in the order of the configuration.
    pub fn vitals(&self) -> Vec<Vitals> {
        self.servers.values().map(vitals).collect()
    }

    /// The last lines that a server wrote to its stderr, oldest first.
    pub fn stderr(&self, server: &ServerName) -> Vec<String> {
        self.servers.get(server).map(|server| server.stderr()).unwrap_or_default()
    }

    /// True if another hub uses the same server with the same connection.
    pub fn shares(&self, other: &Self, server: &ServerName) -> bool {
        match (self.servers.get(server), other.servers.get(server)) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (Some(_) | None, _) => false,
        }
    }

    /// Returns the servers that the hub `now` does not share.
    pub fn retired(&self, now: &Self) -> Retired {
        let gone = self.servers.iter().filter(|(name, _)| !self.shares(now, name));
        Retired(gone.map(|(_, server)| Arc::clone(server)).collect())
    }

    /// Connects to a server that the operator chose, for example a required one.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub async fn start(&self, server: &ServerName) -> Result<(), CallError> {
        self.server(server)?.wake(Lane::ANY).await.map(drop)
    }

    /// Returns the identity of a server as callers of the lane see it; connects if it is not known.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub async fn introduce(
        &self,
        server: &ServerName,
        lane: Lane,
    ) -> Result<Arc<About>, CallError> {
        let server = self.server(server)?;
        if let Some(about) = server.about_in(lane) {
            return Ok(about);
        }
        let lease = server.wake(server.separate(lane)).await?;
        Ok(lease.own_about().or_else(|| server.about()).unwrap_or_default())
    }

    /// Pings a connected server.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn check(&self, server: &ServerName) -> Result<(), CallError> {
        self.server(server)?.inform(&System::ping()).await
    }

    /// Sets the log level of a server. Starts nothing.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn set_level(&self, server: &ServerName, level: &str) -> Result<(), CallError> {
        self.server(server)?.inform(&System::level(level.to_owned())).await
    }

    /// Says to a server that the folders of its client have changed. Starts nothing.
    ///
    /// # Errors
    /// When there is no such server, or the message cannot be sent.
    pub async fn roots_changed(&self, server: &ServerName) -> Result<(), CallError> {
        self.server(server)?.inform(&System::roots_changed()).await
    }

    /// Ends a subscription. Starts nothing.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn unsubscribe(&self, server: &ServerName, uri: &str) -> Result<(), CallError> {
        self.server(server)?.inform(&System::unsubscribe(uri.to_owned())).await
    }

    /// Returns a list of a server. Tools are compared with their approved definitions before
    /// anything is decided about them.
    ///
    /// # Errors
    /// When the server cannot be used and there is no sufficient saved list.
    pub async fn list(
        &self,
        server: &ServerName,
        listing: Listing,
        freshness: Freshness,
    ) -> Result<Arc<[Item]>, CallError> {
        self.judged(self.server(server)?, listing, freshness).await.map(|(items, _)| items)
    }

    /// Returns a list of a running server, if no waiting is necessary.
    pub fn listed(&self, server: &ServerName, listing: Listing) -> Option<Arc<[Item]>> {
        let lease = self.servers.get(server)?.lease(Lane::ANY)?;
        self.judged_at_once(&lease, listing).map(|(items, _)| items)
    }

    /// True if a connected server has another list than the known one, or may have: it has reported a
    /// change, and the list was not read since. Starts nothing.
    pub fn is_outdated(&self, server: &ServerName, listing: Listing) -> bool {
        let Some(known) = self.servers.get(server) else { return false };
        let lease = known.lease(Lane::ANY);
        known.remembered(listing).is_some_and(|items| !items.is_empty())
            && lease.is_some_and(|lease| lease.listed(listing).is_none())
    }

    /// True if a list of a server was read before, by this hub or an earlier one, so that no client
    /// has to wait for it. Starts nothing.
    pub fn has_seen(&self, server: &ServerName, listing: Listing) -> bool {
        let Some(known) = self.servers.get(server) else { return false };
        known.remembered(listing).is_some() || self.listed(server, listing).is_some()
    }

    /// Reads a list of a server in the background. The future does not borrow the hub, which may be
    /// replaced meanwhile.
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
    /// True if there is nothing to close.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Closes the connections concurrently.
    pub async fn close(&self) {
        join_all(self.0.iter().map(|server| server.close())).await;
    }
}
