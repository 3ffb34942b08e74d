//! Carries messages to a running stdio server and back.
//!
//! Three tasks serve a connection: the writer drains its queue into as few writes as possible, the
//! reader dispatches every message to its receiver, and the supervisor ends the process when either
//! side is done. All three end when the [`StdioChannel`] is dropped.

pub(crate) mod missing_variable;
pub(crate) mod supervisor;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use capstan_hub::ports::{BoxFuture, Item};
use capstan_process::spawn::Spawned;
use capstan_wire::{Json, Reply, compose};
use futures::FutureExt;
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::channel::inbound::Inbound;
use crate::channel::outbox::Outbox;
use crate::channel::requests::{ExchangeError, Requests};
use crate::channel::{Channel, Request, RequestError, Sent};
use crate::connect::ServerContext;
use crate::server::tracker::ConnectionGuard;
use crate::session::era::Era;
use crate::settings::StdioSettings;
use crate::stdio::supervisor::{Streams, Supervisor};

/// A running server and the connection to it.
pub(crate) struct StdioChannel {
    requests: Arc<Requests>,
    process: Option<u32>,
    /// Dropping it makes the supervisor end the process.
    _stop: oneshot::Sender<()>,
}

// === impl StdioChannel ===

impl StdioChannel {
    /// Takes over a server that has just been started.
    pub(crate) fn open(
        settings: &StdioSettings,
        spawned: Spawned,
        guard: ConnectionGuard,
        context: ServerContext,
        inbound: impl FnOnce(Arc<Requests>) -> Inbound,
    ) -> Self {
        let ServerContext { ring, masker, tracker, .. } = context;
        let Spawned { keeper, stdin, stdout, stderr } = spawned;
        let process = keeper.process();
        let (out, outgoing) = Outbox::new(&settings.name, &masker);
        let requests = Arc::new(Requests::new(out));
        let (stop, stopped) = oneshot::channel();

        let stderr = ring.clone().fill(stderr, settings.name.clone(), Arc::clone(&masker));
        let stderr = tokio::spawn(stderr.in_current_span());
        let inbound = inbound(Arc::clone(&requests));
        let max_line = settings.max_message;
        let streams = Streams { stdin, outgoing, stdout, max_line, inbound };
        let supervisor =
            Supervisor { keeper, ring, stderr, requests: Arc::clone(&requests), tracker };
        let supervising = async move {
            supervisor.run(streams, stopped).await;
            drop(guard);
        };
        tokio::spawn(supervising.in_current_span());
        Self { requests, process, _stop: stop }
    }
}

impl Channel for StdioChannel {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn agree(&self, _: Era) {}

    fn notify<'a>(&'a self, method: &'a str, params: Option<&'a Json>) -> BoxFuture<'a, Sent> {
        async move {
            self.requests.out.send(compose::notification(method, params)).await;
            Sent::Yes
        }
        .boxed()
    }

    fn request<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, RequestError>> {
        async move {
            let line = compose::request(request.id, request.method, Some(request.params));
            let exchange = pin!(async {
                let queued = self.requests.out.send(line).await;
                if queued { Ok(None::<Infallible>) } else { Err(ExchangeError::Closed) }
            });
            self.requests.ask(request, exchange).await.map(Reply::from)
        }
        .boxed()
    }

    fn start<'a>(&'a self, method: &'static str, params: &'a Json) -> BoxFuture<'a, u64> {
        async move {
            let id = self.requests.next_id();
            self.requests.out.send(compose::request(id, method, Some(params))).await;
            id
        }
        .boxed()
    }

    fn stop(&self, id: u64) {
        self.requests.cancel(id);
    }

    fn process(&self) -> Option<u32> {
        self.process
    }

    fn callable_tools(&self, tools: Vec<Item>) -> Vec<Item> {
        tools
    }
}
