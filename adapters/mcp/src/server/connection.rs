//! The connections of a server, as the hub uses them.

use std::sync::{Arc, Mutex, Weak};

use capstan_hub::ports::{BoxFuture, Connection, Item, Listing};
use capstan_hub::{Answer, Message, Outgoing, SideOp};
use capstan_model::CallError;
use futures::FutureExt;
use futures::future::ready;
use tracing::{Instrument, Span};

use super::{Life, Server, lock, note_loss};
use crate::server::wanted::{Wanted, Wish};
use crate::session::Session;

/// The parts of a server that its session reports to.
pub(crate) struct Home {
    /// A weak reference, because the server owns the session.
    pub(super) life: Weak<Mutex<Life>>,
    pub(super) wanted: Arc<Wanted>,
    pub(super) span: Span,
}

/// The connection of a server that offers nothing.
/// Nothing runs and its lists are empty; the server is connected when something is sent.
pub(super) struct Resting(pub(super) Arc<Server>);

// === impl Session ===

impl Connection for Session {
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
            self.report(|life, home| match &result {
                Err(error) if self.connection.requests().gone().is_none() => {
                    life.could_not_read(listing, error);
                }
                Err(_) => note_loss(&home.span, life, &self),
                Ok(_) if self.offers_nothing() => {
                    // The connection is of no use: disconnect it.
                    life.link = None;
                    life.resting = true;
                }
                Ok(_) => life.could_read(listing),
            });
            result
        }
        .boxed()
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            let result = self.dispatch(outgoing).instrument(self.span()).await;
            match (&result, outgoing.message()) {
                (Ok(_), Message::Call(..)) if self.connection.process().is_none() => {
                    self.report(|life, _| life.worked());
                }
                (Ok(_), Message::Side(admission)) if *admission.op() == SideOp::Subscribe => {
                    let wish = Wish::Subscribe(admission.id().item.clone());
                    self.report(|_, home| home.wanted.note(&wish));
                }
                (Ok(_), _) => {}
                (Err(_), _) => self.report(|life, home| note_loss(&home.span, life, self)),
            }
            result
        }
        .boxed()
    }
}

impl Session {
    fn span(&self) -> Span {
        self.home.get().map_or_else(Span::current, |home| home.span.clone())
    }

    /// Updates the server's state with the result of a request.
    fn report(&self, what: impl FnOnce(&mut Life, &Home)) {
        if let Some(home) = self.home.get()
            && let Some(life) = home.life.upgrade()
        {
            what(&mut lock(&life), home);
        }
    }
}

// === impl Resting ===

impl Connection for Resting {
    fn listed(&self, _: Listing) -> Option<Arc<[Item]>> {
        None
    }

    fn list(self: Arc<Self>, _: Listing) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        ready(Ok(Arc::from([]))).boxed()
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            let session = self.0.session().await?;
            Connection::send(&*session, outgoing).await
        }
        .boxed()
    }
}
