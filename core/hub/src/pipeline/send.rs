//! Step 5: hand the ticket to the server's backend.

use std::sync::Arc;

use capstan_model::CallError;

use super::admit::Ticket;
use crate::Answer;
use crate::elicit::Gate;
use crate::hub::Hub;
use crate::ports::Operator;

/// How often a call is sent at the most. Trying again is free of quota.
const MAX_ATTEMPTS: usize = 2;

pub(super) async fn send(
    hub: &Hub,
    ticket: &Ticket,
    operator: Arc<dyn Operator>,
) -> Result<Answer, CallError> {
    // The server can be removed between resolving and sending; to the caller that is the same
    // as its never having been there.
    let Some(backend) = hub.backends.get(&ticket.id().server) else {
        let name = ticket.id().to_string();
        return Err(CallError::Unknown { kind: ticket.kind(), name, nearest: Vec::new() });
    };
    let gate: Arc<dyn Operator> = Arc::new(Gate::new(hub, &ticket.id().server, operator));
    let mut attempt = 1;
    loop {
        match backend.run(ticket, Arc::clone(&gate)).await {
            Err(error) if attempt < MAX_ATTEMPTS && never_ran(&error) => attempt += 1,
            result => return result,
        }
    }
}

/// A call that never reached its server, or that only reads, can be sent again; any other might
/// run twice, and its backend says so with another error.
fn never_ran(error: &CallError) -> bool {
    matches!(error, CallError::Unreachable { .. })
}
