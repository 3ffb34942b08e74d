//! Control sockets: opens the one of this gateway, and reaches those of other gateways.

use std::io;
use std::path::Path;
use std::sync::Arc;

use capstan_app::api::{self, Answer, Ask, Event, Interact, ask_front, tell_front};
use capstan_app::reload::LiveConfig;
use capstan_app::{ControlFault, ControlSocket, ControlSockets, Environment, socket_folders};
use capstan_control::{
    Control, ControlEndpoint, ControlError, Declined, Gateway, OperationMessage, ToShell, find,
};
use capstan_hub::ports::BoxFuture;
use capstan_wire::Json;
use futures::FutureExt;
use futures::channel::oneshot;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

/// The sockets of this user's gateways.
pub(crate) struct LocalSockets(pub(crate) Arc<Environment>);

/// The socket of another process.
struct LocalSocket(Gateway);

/// Serves this gateway to shells.
struct Endpoint(Arc<LiveConfig>);

/// The front of an operation, on the other end of the control socket.
struct RemoteFront(Sender<ToShell>);

/// Opens our socket and answers shells there, until the task is aborted.
pub(crate) fn open(environment: &Environment, live: &Arc<LiveConfig>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for folder in socket_folders(environment) {
        match Control::open(&folder) {
            Ok(control) => {
                tasks.spawn(control.serve(Arc::new(Endpoint(Arc::clone(live)))));
                return tasks;
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let cause = cause.unwrap_or_default();
                tracing::warn!(%error, cause, "there is no control socket");
            }
        }
    }
    tasks
}

// === impl LocalSockets ===

impl ControlSockets for LocalSockets {
    fn find(&self) -> Vec<Arc<dyn ControlSocket>> {
        let found = find(&socket_folders(&self.0)).into_iter();
        found.map(|gateway| -> Arc<dyn ControlSocket> { Arc::new(LocalSocket(gateway)) }).collect()
    }
}

// === impl LocalSocket ===

impl ControlSocket for LocalSocket {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn process(&self) -> Option<u32> {
        self.0.process()
    }

    fn digest(&self) -> BoxFuture<'_, Result<String, ControlFault>> {
        async move { self.0.digest().await.map_err(fault) }.boxed()
    }

    fn run<'a>(
        &'a self,
        request: &'a Json,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, ControlFault>> {
        async move {
            let handler = |message: OperationMessage| -> Option<BoxFuture<'static, Json>> {
                match message {
                    OperationMessage::Event(event) => {
                        tell_front(&**front, &event);
                        None
                    }
                    OperationMessage::Ask(question) => {
                        Some(ask_front(Arc::clone(front), &question))
                    }
                }
            };
            self.0.run(request, &handler).await.map_err(fault)
        }
        .boxed()
    }
}

fn fault(error: ControlError) -> ControlFault {
    match error {
        ControlError::Declined(reason) => ControlFault::Declined(reason),
        ControlError::Io { ref cause, .. } => {
            let is = |kinds: &[io::ErrorKind]| kinds.contains(&cause.kind());
            if is(&[io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound]) {
                ControlFault::Gone
            } else if is(&[io::ErrorKind::PermissionDenied]) {
                ControlFault::NoAccess(error.into())
            } else {
                ControlFault::Failed(error.into())
            }
        }
        ControlError::Foreign { .. } => ControlFault::Foreign(error.into()),
        ControlError::Silent { .. } | ControlError::Refused(_) | _ => {
            ControlFault::Failed(error.into())
        }
    }
}

// === impl Endpoint ===

impl ControlEndpoint for Endpoint {
    fn digest(&self) -> String {
        self.0.digest()
    }

    fn run(
        &self,
        request: Json,
        messages: Sender<ToShell>,
    ) -> BoxFuture<'_, Result<Json, Declined>> {
        async move {
            let front: Arc<dyn Interact> = Arc::new(RemoteFront(messages));
            let answered = api::answer(&request, &self.0.digest(), &self.0.local(), &front).await;
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
            drop(self.0.try_send(ToShell::Event(event)));
        }
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        async move {
            let (answer, answered) = oneshot::channel();
            let Ok(question) = Json::from_value(&ask) else { return Answer::Refused };
            if self.0.send(ToShell::Ask(question, answer)).await.is_err() {
                return Answer::Refused;
            }
            let answer = answered.await.ok().and_then(|answer| answer.read().ok());
            answer.unwrap_or(Answer::Refused)
        }
        .boxed()
    }
}
