//! Notifications of servers that belong to no call: completed elicitations and log messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use capstan_model::ServerName;
use capstan_wire::{Json, compose, object};

use crate::client::{Client, View};
use crate::gateway::Gateway;
use crate::questions::notice_filter::NoticeFilter;

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
        let mut seeing = self.seeing(server);
        let (Some(client), None) = (seeing.next(), seeing.next()) else { return };
        let level = object::get_string(params, "level").unwrap_or_else(|| "info".to_owned());
        if self.own.load(Ordering::Relaxed) && NoticeFilter::of(&client, None).logs.passes(&level) {
            client.tell(compose::notification(method, Some(params)).into());
        }
    }

    /// The connected clients that see a server.
    fn seeing<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = Arc<Client>> + 'a {
        let sees = move |client: &Arc<Client>| {
            let is_shown = match &client.view {
                View::All => true,
                View::One(one) => one == server,
            };
            is_shown && self.shows(server, &client.caller)
        };
        self.subscribers.connected().into_iter().filter(sees)
    }
}
