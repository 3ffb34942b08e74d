//! Subscriptions to changes of lists, resources and tasks, in both eras.
//!
//! A legacy server reports changes of lists unasked, and is told the resources to watch. A modern
//! server reports only what is subscribed to, each subscription in a request that stays open.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::TaskSubscription;
use capstan_hub::ports::Listing;
use capstan_model::CallError;
use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose, object};

use crate::channel::pending::Recipient;
use crate::server::sticky::StickyRequest;
use crate::session::client::own_metadata;
use crate::session::era::Era;
use crate::session::side::OwnerRequest;
use crate::session::{MayRun, Session};

/// How long a server reports on tasks; no task is remembered for longer.
const LONGEST: Duration = Duration::from_hours(24);

/// The open subscriptions at a modern server.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// The kinds of lists whose changes are reported.
    lists: Mutex<HashSet<&'static str>>,
    /// The resources whose changes are reported, with the ids of their subscriptions.
    resources: Mutex<HashMap<String, u64>>,
}

// === impl Session ===

impl Session {
    /// Makes the server report changes of the list, if it supports that.
    pub(crate) async fn subscribe_to_list(&self, listing: Listing) {
        let reports_changes = self
            .capability(listing.capability())
            .and_then(|capability| object::get(&capability, "listChanged"))
            .is_some_and(|json| json.as_bytes() == b"true");
        let key = match listing {
            Listing::Tools => "toolsListChanged",
            Listing::Prompts => "promptsListChanged",
            Listing::Resources | Listing::Templates => "resourcesListChanged",
        };
        if self.era != Era::Modern || !reports_changes {
            return;
        }
        let first = self.subscriptions.lists().insert(key);
        if first {
            self.listen_to(key, &compose::truth()).await;
        }
    }

    /// Sends a subscription, its end, or a log level to the server.
    pub(crate) async fn apply(&self, request: &StickyRequest) -> Result<Json, CallError> {
        match self.era {
            Era::Legacy { .. } => self.apply_legacy(request).await,
            Era::Modern => {
                self.apply_modern(request).await;
                Ok(Json::empty_object())
            }
        }
    }

    async fn apply_legacy(&self, request: &StickyRequest) -> Result<Json, CallError> {
        let params = match request {
            StickyRequest::Level(_) if self.capability("logging").is_none() => {
                return Ok(Json::empty_object());
            }
            StickyRequest::Subscribe(uri) | StickyRequest::Unsubscribe(uri) => {
                compose::object(&[("uri", &compose::string(uri))])
            }
            StickyRequest::Level(level) => compose::object(&[("level", &compose::string(level))]),
        };
        self.result(self.ask(request.method(), &params).await?)
    }

    async fn apply_modern(&self, request: &StickyRequest) {
        match request {
            StickyRequest::Subscribe(uri) => self.watch_resource(uri).await,
            StickyRequest::Unsubscribe(uri) => {
                let subscription = self.subscriptions.resources().remove(uri);
                if let Some(id) = subscription {
                    self.connection.stop(id);
                }
            }
            // A modern server gets the level with each request.
            StickyRequest::Level(_) => {}
        }
    }

    async fn watch_resource(&self, uri: &str) {
        if self.subscriptions.resources().contains_key(uri) {
            return;
        }
        let uris = compose::array(&[compose::string(uri)]);
        let id = self.listen_to("resourceSubscriptions", &uris).await;
        let other = self.subscriptions.resources().insert(uri.to_owned(), id);
        if let Some(id) = other {
            // A concurrent caller subscribed first.
            self.connection.stop(id);
        }
    }

    /// Subscribes to notifications of a modern server, and returns the id of the subscription.
    async fn listen_to(&self, key: &str, what: &Json) -> u64 {
        let notifications = compose::object(&[(key, what)]);
        let meta = own_metadata(&self.settings);
        let params = compose::object(&[("notifications", &notifications), ("_meta", &meta)]);
        self.connection.start("subscriptions/listen", &params).await
    }

    /// Subscribes to the status of tasks, until one side ends it.
    pub(crate) async fn follow_tasks(
        &self,
        subscription: &TaskSubscription,
    ) -> Result<Json, CallError> {
        match self.era {
            Era::Legacy { .. } => {
                let (server, code) = (self.settings.name.clone(), METHOD_NOT_FOUND);
                let message = "its revision has no such subscriptions".to_owned();
                Err(CallError::Server { server, code, message, whole: None, is_modern: false })
            }
            Era::Modern => {
                let ids: Vec<Json> =
                    subscription.ids().iter().map(|id| compose::string(id)).collect();
                let notifications = compose::object(&[("taskIds", &compose::array(&ids))]);
                let params = compose::object(&[("notifications", &notifications)]);
                let (subscriber, capabilities) =
                    (Arc::clone(subscription.subscriber()), subscription.capabilities().clone());
                let recipient = Recipient::Subscriber { subscriber, capabilities };
                let (method, params) = (TaskSubscription::METHOD, &params);
                let (limit, level) = (LONGEST, None);
                let request = OwnerRequest { method, params, limit, level, recipient };
                self.ask_for_owner(request, MayRun::No).await
            }
        }
    }
}

// === impl Subscriptions ===

impl Subscriptions {
    fn lists(&self) -> MutexGuard<'_, HashSet<&'static str>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resources(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
