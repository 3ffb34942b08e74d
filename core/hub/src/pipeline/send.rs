//! Step 5: sends the call to its server, at most twice.

use std::sync::Arc;

use capstan_model::CallError;
use capstan_wire::object;

use super::admit::Ticket;
use crate::Answer;
use crate::elicit::Gate;
use crate::hub::Hub;
use crate::ports::{Backend, Operator};
use crate::trace::{Ending, Side, Span, Step, TraceContext, Tracer};

/// How often a call is sent at the most. Trying again is free of quota.
const MAX_ATTEMPTS: usize = 2;

pub(super) async fn send(
    hub: &Hub,
    ticket: &mut Ticket,
    operator: Arc<dyn Operator>,
) -> Result<Answer, CallError> {
    // The server can be removed between resolving and sending; to the caller that is the same
    // as its never having been there.
    let Some(backend) = hub.servers.get(&ticket.id().server) else {
        let name = ticket.id().to_string();
        return Err(CallError::Unknown { kind: ticket.kind(), name, nearest: Vec::new() });
    };
    let gate: Arc<dyn Operator> = Arc::new(Gate::new(hub, &ticket.id().server, operator));
    let mut attempt = 1;
    loop {
        let result = match &hub.tracer {
            None => backend.run(ticket, Arc::clone(&gate)).await,
            // Rare, and large: kept out of what every call carries along.
            Some(tracer) => Box::pin(traced(&**tracer, &**backend, ticket, &gate)).await,
        };
        match result {
            Err(error) if attempt < MAX_ATTEMPTS && never_ran(&error) => attempt += 1,
            result => return result,
        }
    }
}

/// Sends a call as a step of its trace: the server is told the step's place in it.
async fn traced(
    tracer: &dyn Tracer,
    backend: &dyn Backend,
    ticket: &mut Ticket,
    gate: &Arc<dyn Operator>,
) -> Result<Answer, CallError> {
    let before = TraceContext::of(ticket.params());
    let span = tracer.begin(Step {
        side: Side::Asking,
        kind: ticket.kind(),
        item: &ticket.id().item,
        server: Some(&ticket.id().server),
        caller: None,
        protocol: None,
        context: before.as_ref(),
    });
    let params = span.context().map(|context| context.put(ticket.params()));
    let untraced = params.map(|params| ticket.replace_params(params));
    let mut result = backend.run(ticket, Arc::clone(gate)).await;
    if let Some(untraced) = untraced {
        // A second attempt is another step, not one inside this.
        ticket.replace_params(untraced);
    }
    end(span, &mut result);
    result
}

/// Ends the span of an answer, or has it ended with one that is still coming.
fn end(span: Box<dyn Span>, result: &mut Result<Answer, CallError>) {
    let is_error =
        |result| object::get(result, "isError").is_some_and(|json| json.as_bytes() == b"true");
    match result {
        Ok(Answer::Flowing(flow)) => flow.watched(move |ending| span.end(ending)),
        Ok(Answer::Whole(result)) if is_error(result) => span.end(Ending::ToolError),
        Ok(Answer::Whole(_)) => span.end(Ending::Answered),
        Err(error) => span.end(Ending::failed(error)),
    }
}

/// A call that never reached its server, or that only reads, can be sent again; any other might
/// run twice, and its backend says so with another error.
fn never_ran(error: &CallError) -> bool {
    matches!(error, CallError::Unreachable { .. })
}
