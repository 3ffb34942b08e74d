//! The connections of a server, as the hub uses them.

use std::sync::{Arc, Mutex, Weak};

use capstan_hub::ports::{About, BoxFuture, Connection, Item, Lane, Listing};
use capstan_hub::{Answer, Message, Outgoing, SideOp};
use capstan_model::CallError;
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;
use tracing::{Instrument, Span};

use super::{Lifecycle, Server, lock, note_loss};
use crate::server::slot::Role;
use crate::server::sticky::{StickyRequest, StickyRequests};
use crate::session::Session;

/// The parts of a server that its session reports to.
pub(crate) struct SessionOwner {
    /// A weak reference, because the server owns the session.
    pub(super) lifecycle: Weak<Mutex<Lifecycle>>,
    pub(super) sticky: Arc<StickyRequests>,
    pub(super) role: Role,
    pub(super) span: Span,
}

/// The connection of a server that offers nothing.
/// Nothing runs and its lists are empty; the server is connected when something is sent.
pub(super) struct DormantConnection(pub(super) Arc<Server>);

// === impl Session ===

impl Connection for Session {
    fn identity(&self) -> Option<Arc<About>> {
        Some(Arc::clone(&self.about))
    }

    fn listed(&self, listing: Listing) -> Option<Arc<[Item]>> {
        self.known(listing)
    }

    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        if let Some(items) = self.known(listing) {
            return ready(Ok(items)).boxed();
        }
        async move {
            let result = Self::list(&self, listing).instrument(self.span()).await;
            self.report(|lifecycle, owner| match &result {
                Err(error) if self.connection.requests().gone().is_none() => {
                    lifecycle.could_not_read(listing, error);
                }
                Err(_) => note_loss(&owner.span, lifecycle, &self),
                Ok(_) if self.offers_nothing() => {
                    // The connection is of no use: disconnect it.
                    lifecycle.attempt = None;
                    lifecycle.dormant = true;
                }
                Ok(_) => lifecycle.could_read(listing),
            });
            result
        }
        .boxed()
    }

    fn list_members(&self, listing: Listing) -> Option<Json> {
        Self::list_members(self, listing)
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            self.claim_for_all();
            let result = self.dispatch(outgoing).instrument(self.span()).await;
            match (&result, outgoing.message()) {
                (Ok(_), Message::Call(..)) if self.connection.process().is_none() => {
                    self.report(|lifecycle, _| lifecycle.worked());
                }
                (Ok(_), Message::Side(admission)) if *admission.op() == SideOp::Subscribe => {
                    let request = StickyRequest::Subscribe(admission.id().item.clone());
                    self.report(|_, owner| owner.sticky.record(&request, owner.role));
                }
                (Ok(_), _) => {}
                (Err(_), _) => {
                    self.report(|lifecycle, owner| note_loss(&owner.span, lifecycle, self));
                }
            }
            result
        }
        .boxed()
    }
}

impl Session {
    fn span(&self) -> Span {
        self.owner.get().map_or_else(Span::current, |owner| owner.span.clone())
    }

    /// Updates the server's state with the result of a request.
    fn report(&self, what: impl FnOnce(&mut Lifecycle, &SessionOwner)) {
        if let Some(owner) = self.owner.get()
            && let Some(lifecycle) = owner.lifecycle.upgrade()
        {
            what(&mut lock(&lifecycle), owner);
        }
    }
}

// === impl DormantConnection ===

impl Connection for DormantConnection {
    fn listed(&self, _: Listing) -> Option<Arc<[Item]>> {
        None
    }

    fn list(self: Arc<Self>, _: Listing) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        ready(Ok(Arc::from([]))).boxed()
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            let session = self.0.home.session(Lane::ANY).await?;
            Connection::send(&*session, outgoing).await
        }
        .boxed()
    }
}
