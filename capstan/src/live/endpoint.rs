//! The control socket's endpoint of a running gateway, for shells.

use std::sync::Arc;

use capstan_app::AppError;
use capstan_app::api::{self, Answer, Ask, Event, Interact, Local, RunningGateway};
use capstan_control::{ControlEndpoint, Declined, Outgoing};
use capstan_hub::Approvals;
use capstan_hub::ports::BoxFuture;
use capstan_model::ServerName;
use capstan_wire::Json;
use futures::FutureExt;
use futures::channel::oneshot;
use tokio::sync::mpsc::Sender;

use super::{Changed, Live};

/// Serves a gateway to shells.
pub(crate) struct Endpoint(pub(crate) Arc<Live>);

/// The front of an operation, on the other end of the control socket.
struct RemoteFront(Sender<Outgoing>);

// === impl Endpoint ===

impl ControlEndpoint for Endpoint {
    fn approvals(&self) -> Arc<Approvals> {
        Arc::clone(self.0.hub().approvals())
    }

    fn digest(&self) -> String {
        self.0.digest()
    }

    fn run(
        &self,
        request: Json,
        messages: Sender<Outgoing>,
    ) -> BoxFuture<'_, Result<Json, Declined>> {
        let live = Arc::clone(&self.0);
        async move {
            let setup = live.setup();
            let local = Local {
                hub: live.hub(),
                names: (!live.selection.demo).then(|| Arc::new(live.host.clone()) as _),
                usage: Arc::new(live.host.clone()),
                switched_off: live.selection.no_mcp || setup.loaded.environment.no_mcp,
                gateway: Some(Arc::<Live>::clone(&live)),
                setup,
            };
            let front: Arc<dyn Interact> = Arc::new(RemoteFront(messages));
            let answered = api::answer(&request, &live.digest(), &local, &front).await;
            answered.map_err(Declined)
        }
        .boxed()
    }
}

// === impl RemoteFront ===

impl Interact for RemoteFront {
    fn event(&self, event: Event) {
        if let Ok(event) = Json::from_value(&event) {
            // A shell that reads too slowly misses events; a disconnected shell needs none.
            drop(self.0.try_send(Outgoing::Event(event)));
        }
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        async move {
            let (answer, answered) = oneshot::channel();
            let Ok(question) = Json::from_value(&ask) else { return Answer::Refused };
            if self.0.send(Outgoing::Ask(question, answer)).await.is_err() {
                return Answer::Refused;
            }
            let answer = answered.await.ok().and_then(|answer| answer.read().ok());
            answer.unwrap_or(Answer::Refused)
        }
        .boxed()
    }
}

// === impl Live ===

impl RunningGateway for Live {
    fn add<'a>(
        &'a self,
        name: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<ServerName, AppError>> {
        Self::add(self, name, text).boxed()
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, AppError>> {
        Self::remove(self, name).boxed()
    }

    fn reload(&self) -> BoxFuture<'_, Result<bool, AppError>> {
        Self::reload(self).map(|changed| Ok(changed? == Changed::Something)).boxed()
    }

    fn trouble(&self) -> Option<String> {
        Self::trouble(self)
    }

    fn needs_restart(&self) -> Vec<&'static str> {
        Self::needs_restart(self)
    }
}
