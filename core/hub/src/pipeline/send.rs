//! Step 8: sends the call on its lease, and once more if it did not run.
//!
//! Before each attempt, the definition is compared with the one that the decision was based on, on
//! the same connection that the call goes to. If the definition of a tool or prompt has changed,
//! the call is not sent.

use std::sync::Arc;

use capstan_model::CallError;
use capstan_model::rpc_code::HEADER_MISMATCH;
use capstan_wire::object;

use super::admit::Ticket;
use super::outgoing::Outgoing;
use super::sign_in::{self, Accounts, Asked, sign_in};
use super::wake::listing_of;
use crate::back_channel::BackChannel;
use crate::hub::Hub;
use crate::life::Lease;
use crate::ports::Lane;
use crate::trace::{Ending, Side, Span, Step, TraceContext, Tracer};
use crate::{Answer, Requester};

/// The maximum number of attempts. A retry does not count against the quota.
const MAX_ATTEMPTS: usize = 2;

/// Sends the call. Returns the answer and the lease that the call was sent with.
pub(super) async fn send(
    hub: &Hub,
    ticket: &mut Ticket,
    requester: Requester<'_>,
) -> Result<(Answer, Lease), CallError> {
    let Requester { client, identity, lane, .. } = requester;
    let caller = Arc::clone(ticket.caller());
    let asked_client = Arc::clone(&client);
    let asked = Asked { caller: &caller, client: Some(&*asked_client) };
    let back = BackChannel::new(hub, &ticket.id().server, client, identity);
    let mut attempt = 1;
    loop {
        let mut lease = match ticket.take_lease() {
            Some(lease) => lease,
            None => Box::pin(again(hub, ticket, lane, asked)).await?,
        };
        if !is_at_hand(&lease, ticket) {
            // Boxed because it is rare and large, to keep the future of every call small.
            Box::pin(compare(&mut lease, ticket)).await?;
        }
        let result = match &hub.tracer {
            None => lease.send(Outgoing::call(ticket, &back)).await,
            Some(tracer) => Box::pin(traced(&**tracer, &lease, ticket, &back)).await,
        };
        match result {
            Err(error) if attempt < MAX_ATTEMPTS && never_ran(&error, &lease) => attempt += 1,
            // Refused before it ran: the token of the caller is no longer valid.
            Err(error @ CallError::NeedsLogin { .. }) => {
                drop(lease);
                let server = &ticket.id().server;
                if attempt >= MAX_ATTEMPTS {
                    return Err(Accounts::at(hub, server).explain(error, lane));
                }
                Box::pin(sign_in(hub, server, lane, asked, error)).await?;
                attempt += 1;
            }
            result => return result.map(|answer| (answer, lease)),
        }
    }
}

/// Takes a new lease of the ticket's server, in the same lane.
async fn again(
    hub: &Hub,
    ticket: &Ticket,
    lane: Lane,
    asked: Asked<'_>,
) -> Result<Lease, CallError> {
    // The server can be removed between `resolve` and `send`. The caller gets the same error as for
    // a server that never existed.
    let Some(server) = hub.servers.get(&ticket.id().server) else {
        let name = ticket.id().to_string();
        return Err(CallError::Unknown { kind: ticket.kind(), name, nearest: Vec::new() });
    };
    match server.lease(lane) {
        Some(lease) => Ok(lease),
        None => sign_in::wake(hub, server, lane, asked).await,
    }
}

/// True if the list is the one that the decision was based on, and the connection that the call is
/// sent on defines the item in the same way.
fn is_at_hand(lease: &Lease, ticket: &Ticket) -> bool {
    match (listing_of(ticket.kind()), ticket.items()) {
        (None, _) => true,
        (Some(listing), Some(decided)) => {
            lease.listed(listing).is_some_and(|items| Arc::ptr_eq(&items, decided))
                && lease.agrees(listing, &ticket.id().item, ticket.definition())
        }
        (Some(_), None) => false,
    }
}

/// Refuses a call if the definition of its item has changed since the decision. If only the lane's
/// own connection defines it differently, the call goes to the home connection.
async fn compare(lease: &mut Lease, ticket: &Ticket) -> Result<(), CallError> {
    let Some(listing) = listing_of(ticket.kind()) else { return Ok(()) };
    let items = lease.list(listing).await?;
    let now = items.iter().find(|item| item.name == ticket.id().item);
    if now.is_some_and(|item| item.definition == *ticket.definition()) {
        lease.agree(listing, &ticket.id().item, ticket.definition()).await;
        return Ok(());
    }
    Err(CallError::DefinitionChanged { item: ticket.id().to_string() })
}

/// Sends a call as a span of its trace. The server receives the span's trace context.
async fn traced(
    tracer: &dyn Tracer,
    lease: &Lease,
    ticket: &mut Ticket,
    back: &BackChannel,
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
    let mut result = lease.send(Outgoing::call(ticket, back)).await;
    if let Some(untraced) = untraced {
        // A second attempt is a sibling span, not a child of this one.
        ticket.replace_params(untraced);
    }
    end(span, &mut result);
    result
}

/// Ends the span with the answer, or when a streamed answer ends.
fn end(span: Box<dyn Span>, result: &mut Result<Answer, CallError>) {
    let is_error =
        |result| object::get(result, "isError").is_some_and(|json| json.as_bytes() == b"true");
    match result {
        Ok(Answer::Streaming(flow)) => flow.watched(move |ending| span.end(ending)),
        Ok(Answer::Whole(result)) if is_error(result) => span.end(Ending::ToolError),
        Ok(Answer::Whole(_)) => span.end(Ending::Answered),
        Err(error) => span.end(Ending::failed(error)),
    }
}

/// True if the call can be sent again without running twice. It never reached its server, or the
/// server refused it because of its headers. Only the modern protocol defines the code for that; a
/// legacy server may use it for an error of a call that ran.
fn never_ran(error: &CallError, lease: &Lease) -> bool {
    let is_mismatch = matches!(error, CallError::Server { code: HEADER_MISMATCH, .. });
    matches!(error, CallError::Unreachable { .. }) || (is_mismatch && lease.is_modern())
}
