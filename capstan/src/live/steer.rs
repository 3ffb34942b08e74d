//! A running gateway, as shells reach it over the control socket.

use std::sync::Arc;

use capstan_app::{AppError, Host, Setup};
use capstan_cli::Program;
use capstan_cli::far::{Event, Inside, Order, Typed};
use capstan_control::{NotHere, ShellEvent, Steered};
use capstan_hub::ports::BoxFuture;
use capstan_hub::{Approvals, Hub};
use capstan_model::ServerName;
use capstan_wire::Json;
use futures::FutureExt;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{Changed, Live};
use crate::host::LocalHost;

/// The gateway, for commands that run in it.
pub(crate) struct Door(pub(crate) Arc<Live>);

// === impl Door ===

impl Steered for Door {
    fn approvals(&self) -> Arc<Approvals> {
        Arc::clone(self.0.hub().approvals())
    }

    fn digest(&self) -> String {
        self.0.digest()
    }

    fn run(
        &self,
        order: Json,
        events: UnboundedSender<ShellEvent>,
    ) -> BoxFuture<'_, Result<Json, NotHere>> {
        let live = Arc::clone(&self.0);
        async move {
            let order: Order =
                order.read().map_err(|_| NotHere("the command is not understood".to_owned()))?;
            if order.digest.as_ref().is_some_and(|digest| *digest != live.digest()) {
                return Err(NotHere("another configuration is in force".to_owned()));
            }
            let (said, mut saying) = unbounded_channel();
            let local = Arc::new(live.host.clone());
            let host: Arc<dyn Host> = Arc::<LocalHost>::clone(&local);
            let attach = Arc::<LocalHost>::clone(&local);
            let program = Program { host, attach, serve: local };
            let mut running = Box::pin(capstan_cli::run_inside(order, said, live, program));
            let exit = loop {
                tokio::select! {
                    biased;
                    Some(event) = saying.recv() => tell(&events, event),
                    exit = &mut running => break exit,
                }
            };
            while let Ok(event) = saying.try_recv() {
                tell(&events, event);
            }
            let code = u64::from(exit.code());
            Ok(capstan_wire::compose::number(code))
        }
        .boxed()
    }
}

impl Inside for Live {
    fn setup(&self) -> Setup {
        Self::setup(self)
    }

    fn hub(&self) -> Arc<Hub> {
        Self::hub(self)
    }

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

/// Passes on what a command says and asks.
fn tell(events: &UnboundedSender<ShellEvent>, event: Event) {
    let event = match event {
        Event::Said(said) => Json::from_value(&said).ok().map(ShellEvent::Said),
        Event::Ask(prompt, answer) => Json::from_value(&prompt).ok().map(|prompt| {
            let (typed, typing) = std::sync::mpsc::sync_channel::<Json>(1);
            // Whoever asks blocks a thread of its own; so does this until the answer is here.
            tokio::task::spawn_blocking(move || {
                let typed = typing.recv().ok().and_then(|typed| typed.read().ok());
                drop(answer.send(typed.unwrap_or(Typed::Closed)));
            });
            ShellEvent::Ask(prompt, typed)
        }),
    };
    if let Some(event) = event {
        // A shell that is gone hears nothing.
        drop(events.send(event));
    }
}
