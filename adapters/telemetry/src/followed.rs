//! A server whose calls are watched.

use std::sync::Arc;

use capstan_hub::catalog::Typing;
use capstan_hub::ports::{
    About, Backend, BoxFuture, Errand, Footprint, Item, Listing, Operator, Pace,
};
use capstan_hub::trace::{Ending, Side, Step, TraceContext, Tracer};
use capstan_hub::{Answer, Ticket};
use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::{Json, object};

/// A server whose calls are watched, and which is told where in a trace it is called.
pub struct Followed {
    server: Arc<dyn Backend>,
    tracer: Arc<dyn Tracer>,
}

// === impl Followed ===

impl Followed {
    /// The same server, watched.
    pub fn new(server: Arc<dyn Backend>, tracer: Arc<dyn Tracer>) -> Self {
        Self { server, tracer }
    }

    async fn watch(
        &self,
        ticket: &Ticket,
        operator: Arc<dyn Operator>,
    ) -> Result<Answer, CallError> {
        let context = TraceContext::of(ticket.params());
        let span = self.tracer.begin(Step {
            side: Side::Asking,
            kind: ticket.kind(),
            item: &ticket.id().item,
            server: Some(self.server.name()),
            caller: None,
            protocol: None,
            context: context.as_ref(),
        });
        let told = span.context().map(|context| ticket.told(&context));
        let mut result = self.server.run(told.as_ref().unwrap_or(ticket), operator).await;
        match &mut result {
            Ok(Answer::Flowing(flow)) => flow.watched(move |ending| span.end(ending)),
            Ok(Answer::Whole(result)) if is_error(result) => span.end(Ending::ToolError),
            Ok(Answer::Whole(_)) => span.end(Ending::Answered),
            Err(error) => span.end(Ending::failed(error)),
        }
        result
    }
}

/// Whether the tool says that it failed.
fn is_error(result: &Json) -> bool {
    object::get(result, "isError").is_some_and(|json| json.as_bytes() == b"true")
}

impl Backend for Followed {
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
        self.server.pace()
    }

    fn footprint(&self) -> Option<Footprint> {
        self.server.footprint()
    }

    fn run<'a>(
        &'a self,
        ticket: &'a Ticket,
        operator: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        Box::pin(self.watch(ticket, operator))
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
