//! A server whose calls are counted, and that is left alone otherwise: it has no connection that
//! could be kept or stopped.

use std::sync::Arc;

use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::Json;

use super::supervisor::Supervisor;
use crate::Answer;
use crate::catalog::Typing;
use crate::pipeline::Ticket;
use crate::ports::{About, Backend, BoxFuture, Errand, Footprint, Item, Listing, Operator, Pace};

/// A server whose calls are counted.
pub(super) struct Counted {
    server: Arc<dyn Backend>,
    supervisor: Arc<Supervisor>,
}

// === impl Counted ===

impl Counted {
    pub(super) fn new(server: Arc<dyn Backend>, supervisor: Arc<Supervisor>) -> Arc<Self> {
        Arc::new(Self { server, supervisor })
    }
}

impl Backend for Counted {
    fn name(&self) -> &ServerName {
        self.server.name()
    }

    fn state(&self) -> ServerState {
        self.server.state()
    }

    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>> {
        self.server.about()
    }

    fn known(&self) -> Option<Arc<About>> {
        self.server.known()
    }

    fn list(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        self.server.list(listing)
    }

    fn glance(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        self.server.glance(listing)
    }

    fn current(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        self.server.current(listing)
    }

    fn at_hand(&self, listing: Listing) -> Option<Arc<[Item]>> {
        self.server.at_hand(listing)
    }

    fn wake(&self) -> BoxFuture<'_, Result<(), CallError>> {
        self.server.wake()
    }

    fn rest(&self) {
        self.server.rest();
    }

    fn check(&self) -> BoxFuture<'_, Result<(), CallError>> {
        self.server.check()
    }

    fn pace(&self) -> Option<Pace> {
        let calls_per_hour = self.supervisor.calls_per_hour(self.name());
        Some(Pace { calls_per_hour, stops_in: None })
    }

    fn footprint(&self) -> Option<Footprint> {
        self.server.footprint()
    }

    fn run<'a>(
        &'a self,
        ticket: &'a Ticket,
        operator: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.supervisor.called(self.name());
        self.server.run(ticket, operator)
    }

    fn complete<'a>(&'a self, typing: &'a Typing) -> BoxFuture<'a, Result<Vec<String>, CallError>> {
        self.server.complete(typing)
    }

    fn errand<'a>(
        &'a self,
        errand: &'a Errand,
        operator: Option<Arc<dyn Operator>>,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        self.server.errand(errand, operator)
    }

    fn stderr(&self) -> Vec<String> {
        self.server.stderr()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.server.close()
    }
}
