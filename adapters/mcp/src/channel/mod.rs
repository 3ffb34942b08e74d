//! The way to a server, whatever it is made of.

pub(crate) mod requests;
pub(crate) mod outbox;
pub(crate) mod pending;
mod deadline;
mod started;
pub(crate) mod dispatch;
pub(crate) mod inbound;
mod cut;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::Flow;
use capstan_hub::ports::{BoxFuture, Item, Operator};
use capstan_wire::{EnvelopeError, Json, Reply};
use futures::FutureExt;

use crate::channel::requests::Requests;
use crate::fault::Fault;
use crate::session::MayRun;

/// Carries messages to a connected server and back.
pub(crate) trait Channel: Send + Sync {
    /// The requests of this connection.
    fn requests(&self) -> &Requests;

    /// Is told which revision of the protocol is spoken from now on.
    fn agree(&self, revision: &str);

    /// Tells the server something.
    fn notify<'a>(&'a self, method: &'a str, params: Option<&'a Json>) -> BoxFuture<'a, ()>;

    /// Asks the server and waits for its reply, for as long as the request says since the last
    /// sign of progress.
    ///
    /// When the future is dropped the server is told that nobody waits any more.
    fn request<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, RequestError>>;

    /// Asks as `request` does, for somebody who takes a large reply while it comes. Whether the
    /// request may change something is told should the reply break off.
    fn call<'a>(
        &'a self,
        request: Request<'a>,
        _may_run: MayRun,
    ) -> BoxFuture<'a, Result<Said<Box<Flow>>, RequestError>> {
        self.request(request).map(|reply| reply.map(Said::Reply)).boxed()
    }

    /// Sends a request whose reply nobody waits for, such as a subscription; its id.
    fn start<'a>(&'a self, method: &'static str, params: &'a Json) -> BoxFuture<'a, u64>;

    /// Ends what was started.
    fn stop(&self, id: u64);

    /// The process behind it, where there is one on this machine that we have started.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Looks through the tools of the server and leaves out those that cannot be called this way.
    fn sift(&self, tools: Vec<Item>) -> Vec<Item>;
}

/// What is asked, and for how long an answer is waited for.
pub(crate) struct Request<'a> {
    /// From [`Channel::next_id`].
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Json,
    pub(crate) limit: Duration,
    /// Whom progress and questions of the server go to.
    pub(crate) operator: Option<Arc<dyn Operator>>,
}

/// What came of a request.
pub(crate) enum Said<F> {
    Reply(Reply),
    /// A large reply that is still coming.
    Flow(F),
}

/// Why a request has no reply.
#[derive(Clone, Debug)]
pub(crate) enum RequestError {
    /// The server was gone before the request could be sent.
    NotSent(String),
    /// The server went away after the request was sent.
    Gone(String),
    /// The server did not reply in time.
    TimedOut(Duration),
    /// Something else than a reply came back.
    Refused(Fault),
}

// === impl RequestError ===

impl RequestError {
    pub(crate) fn garbled(problem: &EnvelopeError) -> Self {
        Self::Refused(Fault::NotMcp(format!("a reply that is none: {problem}")))
    }
}

// === impl Said ===

impl From<Said<Infallible>> for Reply {
    fn from(said: Said<Infallible>) -> Self {
        match said {
            Said::Reply(reply) => reply,
            Said::Flow(never) => match never {},
        }
    }
}
