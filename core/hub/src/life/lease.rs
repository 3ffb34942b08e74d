//! Leases: the right to use the connections of a server, which is not stopped meanwhile.
//!
//! A lease belongs to one lane. Lists are read on the server's home connection, and everything else
//! is sent on the lane's own connection if it has one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::CallError;
use capstan_wire::{Json, object, protocol};

use super::holds::Holds;
use super::memory::News;
use super::server::Server;
use super::supervisor::lock;
use crate::Answer;
use crate::pipeline::{Message, Outgoing};
use crate::ports::{About, Connected, Connection, Item, Lane, Listing, Principal};

/// The right to use the connections of one lane of a server.
pub(crate) struct Lease {
    /// Dropped before the hold of the server, which holds everything.
    lane: Option<LaneLease>,
    home: Arc<dyn Connection>,
    /// The account that both connections belong to.
    principal: Principal,
    hold: Hold,
}

/// The own connection of a lane, which is not closed meanwhile.
struct LaneLease {
    lane: Lane,
    connection: Arc<dyn Connection>,
    _hold: LaneHold,
}

/// Keeps a server from being stopped until it is dropped.
pub(super) struct Hold(Arc<Server>);

/// Keeps the connections of lanes from being closed until it is dropped.
struct LaneHold(Arc<Server>);

// === impl Lease ===

impl Lease {
    pub(super) fn new(hold: Hold, lane: Lane, Connected { home, own }: Connected) -> Self {
        let leased = |connection| LaneLease { lane, connection, _hold: LaneHold::new(&hold.0) };
        Self { lane: own.map(leased), home, principal: lane.principal, hold }
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.hold.0
    }

    /// True if calls are sent in the modern protocol.
    pub(crate) fn is_modern(&self) -> bool {
        let about = self.home.identity().or_else(|| self.server().about());
        let is_modern = about.is_some_and(|about| about.protocol == protocol::MODERN);
        // The own connection of a lane speaks the other era.
        is_modern != self.lane.is_some()
    }

    /// The lane whose connection calls are sent on. Later requests about a call use it as well.
    pub(crate) fn lane(&self) -> Lane {
        let era = self.lane.as_ref().and_then(|lane| lane.lane.era);
        Lane { era, principal: self.principal }
    }

    /// Returns a list of the running server, if no waiting is necessary.
    pub(crate) fn listed(&self, listing: Listing) -> Option<Arc<[Item]>> {
        let items = self.home.listed(listing)?;
        match &self.server().care {
            Some(care) => self.server().memory(care).adopted(listing, &items),
            None => Some(items),
        }
    }

    /// The server's identity on the lane's own connection, if it has one.
    pub(crate) fn own_about(&self) -> Option<Arc<About>> {
        self.lane.as_ref()?.connection.identity()
    }

    /// Returns the members of a list's result besides its items, as the server sends them to
    /// callers of the lane.
    pub(crate) async fn list_members(&self, listing: Listing) -> Option<Json> {
        let Some(lane) = &self.lane else { return self.home.list_members(listing) };
        if lane.connection.listed(listing).is_none() {
            Arc::clone(&lane.connection).list(listing).await.ok()?;
        }
        lane.connection.list_members(listing)
    }

    /// Returns the member `key` of each tool on the lane's own connection, by the name of the tool.
    /// Calls of these tools are sent there. Reads no list: both must be known.
    pub(crate) fn own_members(&self, key: &str) -> HashMap<String, Json> {
        let listing = Listing::Tools;
        let own = self.lane.as_ref().and_then(|lane| lane.connection.listed(listing));
        let (Some(own), Some(home)) = (own, self.home.listed(listing)) else {
            return HashMap::new();
        };
        let defined: HashMap<&str, &Json> =
            home.iter().rev().map(|item| (item.name.as_str(), &item.definition)).collect();
        let agreement = &self.server().agreement;
        own.iter()
            .filter_map(|item| Some((item, object::get(&item.definition, key)?)))
            .filter(|(item, _)| {
                let home = defined.get(item.name.as_str());
                home.is_some_and(|home| agreement.find(listing, &own, (&item.name, home)))
            })
            .map(|(item, member)| (item.name.clone(), member))
            .collect()
    }

    /// Returns a list of the running server.
    pub(crate) async fn list(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        let items = self.read(listing).await?;
        let server = self.server();
        let (items, news) = server.adopt(listing, items);
        if news == News::Changed {
            server.tell_changed(listing);
        }
        server.compare();
        Ok(items)
    }

    /// Returns a list as the server sent it.
    pub(super) async fn read(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        Arc::clone(&self.home).list(listing).await
    }

    /// True if calls of the item are known to mean the same on the connection that they are sent
    /// on; false if that has yet to be found out.
    pub(crate) fn agrees(&self, listing: Listing, item: &str, definition: &Json) -> bool {
        let Some(lane) = &self.lane else { return true };
        let Some(items) = lane.connection.listed(listing) else { return false };
        self.server().agreement.known(listing, &items, (item, definition)) == Some(true)
    }

    /// Compares the item's definition on the lane's own connection with the given one. If they
    /// differ, calls are sent on the home connection, whose list has the given one.
    pub(crate) async fn agree(&mut self, listing: Listing, item: &str, definition: &Json) {
        let Some(lane) = &self.lane else { return };
        let agrees = match Arc::clone(&lane.connection).list(listing).await {
            Ok(items) => self.server().agreement.find(listing, &items, (item, definition)),
            Err(error) => {
                tracing::debug!(server = %self.server().name(), %error, "a lane cannot be listed");
                false
            }
        };
        if !agrees {
            self.lane = None;
        }
    }

    /// Sends a message that the pipeline admitted.
    pub(crate) async fn send(&self, outgoing: Outgoing<'_>) -> Result<Answer, CallError> {
        let server = self.server();
        let message = outgoing.message();
        if let (Message::Call(..), Some(supervisor)) = (message, &server.supervisor) {
            supervisor.called(server.name());
        }
        let connection = self.lane.as_ref().map_or(&self.home, |lane| &lane.connection);
        let answer = connection.send(outgoing).await?;
        if let Answer::Whole(answer) = &answer {
            let now = server.supervisor.as_ref().map_or(Duration::ZERO, |one| one.now());
            lock(&server.holds).answered(message, answer, now);
            if self.lane.is_some() {
                lock(&server.lane_holds).answered(message, answer, now);
            }
        }
        server.compare();
        Ok(answer)
    }
}

// === impl Hold ===

impl Hold {
    pub(super) fn new(server: &Arc<Server>) -> Self {
        begin(server, |server| &server.holds);
        Self(Arc::clone(server))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        end(&self.0, |server| &server.holds);
        if let Some(care) = &self.0.care {
            *lock(&care.silent) = None;
        }
    }
}

// === impl LaneHold ===

impl LaneHold {
    fn new(server: &Arc<Server>) -> Self {
        begin(server, |server| &server.lane_holds);
        Self(Arc::clone(server))
    }
}

impl Drop for LaneHold {
    fn drop(&mut self) {
        end(&self.0, |server| &server.lane_holds);
    }
}

fn begin(server: &Server, holds: impl Fn(&Server) -> &std::sync::Mutex<Holds>) {
    if let (Some(_), Some(supervisor)) = (&server.care, &server.supervisor) {
        lock(holds(server)).begin(supervisor.now());
    }
}

fn end(server: &Server, holds: impl Fn(&Server) -> &std::sync::Mutex<Holds>) {
    if let (Some(_), Some(supervisor)) = (&server.care, &server.supervisor) {
        lock(holds(server)).end(supervisor.now());
    }
}
