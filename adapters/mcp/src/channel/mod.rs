//! The connection to a server, independent of the transport.

pub(crate) mod requests;
pub(crate) mod outbox;
pub(crate) mod pending;
mod deadline;
mod tasks;
pub(crate) mod dispatch;
pub(crate) mod inbound;
#[cfg(test)]
mod test_clients;
mod truncated;

use std::convert::Infallible;
use std::time::Duration;

use capstan_hub::Flow;
use capstan_hub::ports::{BoxFuture, Item};
use capstan_wire::{EnvelopeError, Json, Reply};
use futures::FutureExt;

use crate::channel::pending::Recipient;
use crate::channel::requests::Requests;
use crate::fault::Fault;
use crate::session::MayRun;
use crate::session::era::Era;

/// The fate of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It was handed to the transport, which gets no answer to it.
    Yes,
    /// The server takes no notifications, so it was not sent.
    NotTaken,
}

/// Carries messages to a connected server and back.
pub(crate) trait Channel: Send + Sync {
    /// The requests of this connection.
    fn requests(&self) -> &Requests;

    /// Sets the era that is spoken from now on.
    fn agree(&self, era: Era);

    /// Sends a notification to the server.
    fn notify<'a>(&'a self, method: &'a str, params: Option<&'a Json>) -> BoxFuture<'a, Sent>;

    /// Sends a request and waits for its reply; progress restarts the request's time limit.
    ///
    /// Dropping the future cancels the request at the server.
    fn request<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, RequestError>>;

    /// Sends a request like `request`, for a caller that can stream a large reply.
    /// If the reply breaks off, the error says by `_may_run` if the request may have had an effect.
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        _may_run: MayRun,
    ) -> BoxFuture<'a, Result<Response<Box<Flow>>, RequestError>> {
        self.request(request).map(|reply| reply.map(Response::Reply)).boxed()
    }

    /// Sends a request whose reply is not awaited, such as a subscription, and returns its id.
    fn start<'a>(&'a self, method: &'static str, params: &'a Json) -> BoxFuture<'a, u64>;

    /// Ends a request that [`Channel::start`] sent.
    fn stop(&self, id: u64);

    /// The process id of the server, if we started it on this machine.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Removes the tools that cannot be called over this transport.
    fn callable_tools(&self, tools: Vec<Item>) -> Vec<Item>;
}

/// A request and its time limit.
pub(crate) struct Request<'a> {
    /// From [`Requests::next_id`].
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Json,
    pub(crate) limit: Duration,
    /// The receiver of the server's progress, questions or notifications.
    pub(crate) recipient: Option<Recipient>,
}

/// The result of a request.
pub(crate) enum Response<F> {
    Reply(Reply),
    /// A large reply that is still arriving.
    Flow(F),
}

/// The reason why a request has no reply.
#[derive(Clone, Debug)]
pub(crate) enum RequestError {
    /// The connection was lost before the request could be sent.
    NotSent(String),
    /// The connection was lost after the request was sent.
    Gone(String),
    /// The server did not reply in time.
    TimedOut(Duration),
    /// The response was not a reply.
    Refused(Fault),
}

// === impl RequestError ===

impl RequestError {
    pub(crate) fn garbled(problem: &EnvelopeError) -> Self {
        Self::Refused(Fault::NotMcp(format!("malformed reply: {problem}")))
    }
}

// === impl Response ===

impl From<Response<Infallible>> for Reply {
    fn from(response: Response<Infallible>) -> Self {
        match response {
            Response::Reply(reply) => reply,
            Response::Flow(never) => match never {},
        }
    }
}
