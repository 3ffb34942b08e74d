//! Messages of servers that belong to no call: completed elicitations, log messages, questions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use capstan_hub::{BackChannel, Requester};
use capstan_model::ServerName;
use capstan_wire::{Json, compose, object};
use futures::future::join_all;
use tokio::sync::OwnedSemaphorePermit;

use crate::client::Client;
use crate::gateway::Gateway;
use crate::questions::notice_filter::NoticeFilter;
use crate::questions::operator::ClientOperator;

impl Gateway {
    /// Forwards that a URL was visited. Only the client that was asked has the id.
    pub(crate) fn tell_visited(&self, server: &ServerName, method: &str, params: Option<&Json>) {
        let message = Bytes::from(compose::notification(method, params));
        for client in self.seeing(server).filter(|client| client.can("elicitation")) {
            client.tell(message.clone());
        }
    }

    /// Forwards a log message to the only client that sees the server.
    ///
    /// With several clients, or with clients on other machines, it is dropped.
    pub(crate) fn tell_log(&self, server: &ServerName, method: &str, params: &Json) {
        let Some(client) = self.only_client_of(server) else { return };
        let level = object::get_string(params, "level").unwrap_or_else(|| "info".to_owned());
        if NoticeFilter::of(&client, None).logs.passes(&level) {
            client.tell(compose::notification(method, Some(params)).into());
        }
    }

    /// The way to the only client that sees the server, for a question that belongs to no call.
    pub(crate) fn way_to_only_client(&self, server: &ServerName) -> Option<BackChannel> {
        let client = self.only_client_of(server)?;
        let operator = Arc::new(ClientOperator::standing(client, self.call_context()));
        let Requester { client, identity, .. } = operator.requester();
        Some(BackChannel::new(&self.hub(), server, client, identity))
    }

    /// Forwards that the roots of a client have changed, to the servers that can mean only this
    /// client when they ask for roots.
    pub(crate) fn roots_changed(self: &Arc<Self>, client: &Client) {
        let Some(turn) = turn_of(client) else { return };
        self.tell_roots_changed(client, Some(turn), &|server| {
            self.only_client_of(server).is_some_and(|only| only.number == client.number)
        });
    }

    /// Handles that a client can be asked from now on.
    pub(crate) fn client_initialized(self: &Arc<Self>, client: &Client) {
        let Some(turn) = turn_of(client) else { return };
        self.tell_roots_changed(client, Some(turn), &|_| self.own.load(Ordering::Relaxed));
    }

    /// Says to servers that their roots may have changed, because a client with roots leaves: another
    /// client may be the only one now, or none.
    pub(crate) fn rooted_client_left(self: &Arc<Self>, client: &Client) {
        self.tell_roots_changed(client, None, &|_| self.own.load(Ordering::Relaxed));
    }

    /// Tells the servers of a client that their roots may have changed. A client has a limited number
    /// of turns, except that it always leaves.
    fn tell_roots_changed(
        self: &Arc<Self>,
        client: &Client,
        turn: Option<OwnedSemaphorePermit>,
        concerns: &dyn Fn(&ServerName) -> bool,
    ) {
        if !client.can("roots") || !self.is_ready() {
            return;
        }
        let mut servers = self.shown(&client.view);
        servers.retain(|server| concerns(server) && self.shows(server, &client.caller));
        if servers.is_empty() {
            return;
        }
        let hub = self.hub();
        tokio::spawn(async move {
            let told = servers.iter().map(|server| {
                let hub = &hub;
                async move {
                    if let Err(error) = hub.roots_changed(server).await {
                        tracing::debug!(%server, %error, "a server was not told of changed roots");
                    }
                }
            });
            join_all(told).await;
            drop(turn);
        });
    }

    /// The only client that sees the server, if only this machine has access.
    fn only_client_of(&self, server: &ServerName) -> Option<Arc<Client>> {
        let mut seeing = self.seeing(server);
        let (Some(client), None) = (seeing.next(), seeing.next()) else { return None };
        self.own.load(Ordering::Relaxed).then_some(client)
    }

    /// The connected clients that see a server.
    fn seeing<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = Arc<Client>> + 'a {
        let sees = move |client: &Arc<Client>| {
            client.view.has(server) && self.shows(server, &client.caller)
        };
        self.subscribers.connected().into_iter().filter(sees)
    }
}

/// A turn of a client to have a notification forwarded; `None` if too many wait.
fn turn_of(client: &Client) -> Option<OwnedSemaphorePermit> {
    let turn = client.begin_notification();
    if turn.is_none() {
        tracing::debug!("too many notifications wait for servers; one is dropped");
    }
    turn
}
