//! A server that has only tools, which are read on first use.

use std::sync::Arc;

use capstan_hub::ports::{
    About, Backend, BoxFuture, Connected, Connection, Footprint, Item, Lane, Listing,
};
use capstan_hub::{Answer, BackChannel, Message, Outgoing, System, SystemMessage, Ticket};
use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::ready;

use crate::{Attempt, Outcome};

/// A source of tools, such as a program or a document.
pub trait ToolSource: Send + Sync + 'static {
    /// The result of reading the source.
    type Known: AsRef<Offer> + Send + Sync + 'static;

    /// The name of the server.
    fn name(&self) -> &ServerName;

    /// Reads the source.
    fn read(&self) -> impl Future<Output = Outcome<Self::Known>> + Send + 'static;

    /// Runs the call of a ticket. `closing` ends when the server is closed.
    fn call<'a>(
        &'a self,
        known: &'a Self::Known,
        ticket: &'a Ticket,
        back: &'a BackChannel,
        closing: &'a Attempt<Self::Known>,
    ) -> impl Future<Output = Result<Answer, CallError>> + Send + 'a;

    /// Checks that calls can be made. Waiting for `known` reads the source.
    fn ping<'a>(
        &'a self,
        known: impl Future<Output = Result<Arc<Self::Known>, CallError>> + Send + 'a,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'a;

    /// The last lines that the source printed for people.
    fn stderr(&self) -> Vec<String>;
}

/// A server that has only tools. It needs no connection: it counts as connected once it is read.
pub struct ToolServer<S: ToolSource> {
    source: S,
    known: Attempt<S::Known>,
}

/// The items of a server that has only tools.
pub struct Offer {
    /// The tools.
    pub items: Arc<[Item]>,
    /// The server's description.
    pub about: Arc<About>,
    /// The reason why the server is degraded, if it is.
    pub lacking: Option<String>,
}

// === impl ToolServer ===

impl<S: ToolSource> ToolServer<S> {
    /// Creates a server whose source has not been read yet.
    pub fn new(source: impl Into<S>) -> Self {
        Self { source: source.into(), known: Attempt::default() }
    }

    async fn known(&self) -> Result<Arc<S::Known>, CallError> {
        let known = self.known.get(|_| false, || self.source.read()).await;
        known.map_err(|error| error.into_error(self.source.name()))
    }
}

impl<S: ToolSource> Backend for ToolServer<S> {
    fn name(&self) -> &ServerName {
        self.source.name()
    }

    fn state(&self) -> ServerState {
        self.known.state(|known| known.as_ref().lacking.as_ref())
    }

    fn about(&self) -> Option<Arc<About>> {
        self.known.peek(|known| Arc::clone(&known.as_ref().about))
    }

    fn connected(self: Arc<Self>, _: Lane) -> Option<Connected> {
        self.known.peek(|_| ())?;
        Some(Connected::one(self))
    }

    fn connect(self: Arc<Self>, _: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        async move {
            self.known().await?;
            Ok(Connected::one(self))
        }
        .boxed()
    }

    fn disconnect(&self) {}

    fn disconnect_lanes(&self) -> bool {
        false
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        match system.message() {
            SystemMessage::Ping => self.source.ping(self.known()).boxed(),
            SystemMessage::Level(_)
            | SystemMessage::Unsubscribe(_)
            | SystemMessage::RootsChanged => ready(Ok(())).boxed(),
        }
    }

    fn footprint(&self) -> Option<Footprint> {
        None
    }

    fn stderr(&self) -> Vec<String> {
        self.source.stderr()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.known.close();
        ready(()).boxed()
    }
}

impl<S: ToolSource> Connection for ToolServer<S> {
    fn listed(&self, _: Listing) -> Option<Arc<[Item]>> {
        None
    }

    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        async move {
            let known = self.known().await?;
            Ok(match listing {
                Listing::Tools => Arc::clone(&(*known).as_ref().items),
                Listing::Prompts | Listing::Resources | Listing::Templates => Arc::new([]),
            })
        }
        .boxed()
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        match outgoing.message() {
            Message::Call(ticket, back) => async move {
                let known = self.known().await?;
                self.source.call(&known, ticket, back, &self.known).await
            }
            .boxed(),
            Message::Side(_) | Message::Task(..) | Message::Follow(_) => {
                ready(Err(outgoing.not_offered(self.source.name()))).boxed()
            }
        }
    }
}
