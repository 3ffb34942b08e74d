//! A server in care: listed from what is remembered, started when it is needed, stopped when it is
//! not.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;
use tracing::info;

use super::holds::Holds;
use super::idle::IdleRule;
use super::manifest::Manifest;
use super::memory::{Memory, News};
use super::supervisor::{Supervisor, lock};
use crate::catalog::Typing;
use crate::pipeline::Ticket;
use crate::ports::{
    About, Backend, BoxFuture, Errand, Footprint, Item, Listener, Listing, Operator, Pace,
};
use crate::{Answer, Flow};

/// How a server is to be tended.
#[derive(Clone, Debug)]
pub struct Terms {
    /// When it is started.
    pub start: Start,
    /// When it is stopped.
    pub idle: IdleRule,
    /// What its manifest is kept under: another for each other thing that it could be. `None` when
    /// nothing is to be remembered.
    pub key: Option<String>,
}

/// When a server whose lists are remembered is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With us.
    Eager,
    /// When somebody asks what there is.
    OnList,
    /// When somebody uses it.
    #[default]
    Lazy,
}

/// A server in care.
pub(super) struct Tended {
    pub(super) server: Arc<dyn Backend>,
    terms: Terms,
    pub(super) supervisor: Arc<Supervisor>,
    me: Weak<Self>,
    memory: Mutex<Memory>,
    pub(super) holds: Mutex<Holds>,
    /// When it was asked last whether it is there.
    pub(super) checked: Mutex<Duration>,
    /// Why it does not seem to be there although it is connected.
    pub(super) silent: Mutex<Option<String>>,
    /// Whether what is remembered was compared with what the server says, or is about to be.
    compared: AtomicBool,
}

/// Somebody needs the server, as long as this is there.
struct Need<T: Deref<Target = Tended>>(T);

// === impl Tended ===

impl Tended {
    pub(super) fn new(
        server: Arc<dyn Backend>,
        terms: Terms,
        supervisor: Arc<Supervisor>,
    ) -> Arc<Self> {
        let text = terms.key.as_ref().and_then(|key| supervisor.ports.manifests.load(key));
        let manifest = text.and_then(Manifest::from_text);
        let memory = Mutex::new(manifest.map(Memory::of).unwrap_or_default());
        let it = Arc::new_cyclic(|me| Self {
            server,
            terms,
            supervisor,
            me: Weak::clone(me),
            memory,
            holds: Mutex::default(),
            checked: Mutex::default(),
            silent: Mutex::default(),
            compared: AtomicBool::new(false),
        });
        if it.terms.start == Start::Eager {
            it.compare();
        }
        it
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.terms.idle.timeout(self.supervisor.calls_per_hour(self.name()))
    }

    fn need(&self) -> Need<&Self> {
        lock(&self.holds).begin(self.supervisor.now());
        Need(self)
    }

    /// The same, for as long as an answer comes.
    fn need_on(&self, flow: &mut Flow) {
        let Some(tended) = self.me.upgrade() else { return };
        lock(&self.holds).begin(self.supervisor.now());
        let need = Need(tended);
        flow.watched(move |_| drop(need));
    }

    fn remembered(&self, listing: Listing) -> Option<Arc<[Item]>> {
        lock(&self.memory).list(listing)
    }

    /// What the server itself lists, and whether that is new.
    async fn read(&self, listing: Listing) -> Result<(Arc<[Item]>, News), CallError> {
        let need = self.need();
        let items = self.server.list(listing).await?;
        drop(need);
        let (items, news) = lock(&self.memory).adopt(listing, &items);
        if news != News::None {
            self.remember();
        }
        Ok((items, news))
    }

    /// Keeps who the server is and what it offers for those who come after us.
    fn remember(&self) {
        let about = self.server.known();
        let mut memory = lock(&self.memory);
        if about.is_some() {
            memory.about = about;
        }
        let Some(key) = &self.terms.key else { return };
        let manifest = memory.manifest();
        drop(memory);
        if let Some(text) = manifest.as_ref().and_then(Manifest::to_text) {
            self.supervisor.ports.manifests.save(key, &|to| text.write_to(to));
        }
    }

    /// Compares what is remembered with what the server says, once, beside everything else.
    fn compare(&self) {
        if self.terms.key.is_none() || self.compared.swap(true, Ordering::AcqRel) {
            return;
        }
        self.in_background(|tended| async move { tended.compare_all().await }.boxed());
    }

    async fn compare_all(&self) {
        let before = lock(&self.memory).about.clone();
        for listing in Listing::ALL {
            match self.read(listing).await {
                Ok((_, News::Changed)) => {
                    self.supervisor.ports.changes.list_changed(self.name(), listing);
                }
                Ok((_, News::None | News::First)) => {}
                // The next who reaches it compares.
                Err(_) if !is_connected(&self.server.state()) => {
                    self.compared.store(false, Ordering::Release);
                    return;
                }
                Err(error) => info!(server = %self.name(), %error, "a list cannot be read"),
            }
        }
        if self.server.known().is_some_and(|about| before.as_ref() != Some(&about)) {
            self.remember();
        }
    }

    pub(super) fn in_background(&self, work: impl FnOnce(Arc<Self>) -> BoxFuture<'static, ()>) {
        if let (Some(me), false) = (self.me.upgrade(), self.supervisor.is_closed()) {
            (self.supervisor.ports.spawn)(work(me));
        }
    }
}

impl Backend for Tended {
    fn name(&self) -> &ServerName {
        self.server.name()
    }

    fn state(&self) -> ServerState {
        match self.server.state() {
            ServerState::Idle if self.server.known().is_none() && self.known().is_some() => {
                ServerState::Cached
            }
            ServerState::Connected => {
                let silent = lock(&self.silent).clone();
                silent.map_or(ServerState::Connected, ServerState::Degraded)
            }
            state @ (ServerState::Disabled
            | ServerState::AwaitingApproval
            | ServerState::Cached
            | ServerState::Connecting
            | ServerState::Degraded(_)
            | ServerState::NeedsLogin
            | ServerState::Idle
            | ServerState::Failed(_)) => state,
        }
    }

    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>> {
        if let Some(about) = self.known() {
            return ready(Ok(about)).boxed();
        }
        async {
            let _need = self.need();
            self.server.about().await
        }
        .boxed()
    }

    fn known(&self) -> Option<Arc<About>> {
        self.server.known().or_else(|| lock(&self.memory).about.clone())
    }

    fn list(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        if self.terms.start == Start::OnList {
            self.compare();
        }
        let remembered = self.remembered(listing);
        if let Some(items) = &remembered
            && !is_connected(&self.server.state())
        {
            return ready(Ok(Arc::clone(items))).boxed();
        }
        async move {
            match (self.current(listing).await, remembered) {
                // What it had is better than nothing: it may be back when it is needed.
                (Err(_), Some(items)) => Ok(items),
                (result, _) => result,
            }
        }
        .boxed()
    }

    fn glance(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        let waits = self.terms.start == Start::OnList
            && !self.compared.load(Ordering::Acquire)
            && !is_connected(&self.server.state());
        if !waits {
            return self.list(listing);
        }
        let unknown = || CallError::Unreachable {
            server: self.name().clone(),
            reason: "it starts when a client asks for a list".to_owned(),
        };
        ready(self.remembered(listing).ok_or_else(unknown)).boxed()
    }

    fn current(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        async move {
            let (items, news) = self.read(listing).await?;
            if news == News::Changed {
                self.supervisor.ports.changes.list_changed(self.name(), listing);
            }
            self.compare();
            Ok(items)
        }
        .boxed()
    }

    fn at_hand(&self, listing: Listing) -> Option<Arc<[Item]>> {
        let items = self.server.at_hand(listing)?;
        // Whoever decides about a call needs the server that it is decided for.
        drop(self.need());
        lock(&self.memory).adopted(listing, &items)
    }

    fn wake(&self) -> BoxFuture<'_, Result<(), CallError>> {
        async {
            let _need = self.need();
            self.server.wake().await
        }
        .boxed()
    }

    fn run<'a>(
        &'a self,
        ticket: &'a Ticket,
        operator: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            let _need = self.need();
            self.supervisor.called(self.name());
            let mut result = self.server.run(ticket, operator).await;
            match &mut result {
                Ok(Answer::Whole(answer)) => {
                    lock(&self.holds).answered(answer, self.supervisor.now());
                    self.compare();
                }
                Ok(Answer::Flowing(flow)) => {
                    self.need_on(flow);
                    self.compare();
                }
                Err(_) => {}
            }
            result
        }
        .boxed()
    }

    fn complete<'a>(&'a self, typing: &'a Typing) -> BoxFuture<'a, Result<Vec<String>, CallError>> {
        async move {
            let _need = self.need();
            self.server.complete(typing).await
        }
        .boxed()
    }

    fn errand<'a>(
        &'a self,
        errand: &'a Errand,
        operator: Option<Arc<dyn Operator>>,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        async move {
            let _need = self.need();
            let result = self.server.errand(errand, operator).await;
            match (&result, errand) {
                (Ok(answer), _) => lock(&self.holds).ran(errand, answer),
                // Whatever the server thinks of it: nobody wants to hear of it any more.
                (Err(_), Errand::Unsubscribe(_)) => {
                    lock(&self.holds).ran(errand, &Json::empty_object());
                }
                (
                    Err(_),
                    Errand::Subscribe(_)
                    | Errand::Complete(_)
                    | Errand::Level(_)
                    | Errand::Task(..)
                    | Errand::Follow(_),
                ) => {}
            }
            result
        }
        .boxed()
    }

    fn rest(&self) {
        self.server.rest();
    }

    fn check(&self) -> BoxFuture<'_, Result<(), CallError>> {
        self.server.check()
    }

    fn pace(&self) -> Option<Pace> {
        let calls_per_hour = self.supervisor.calls_per_hour(self.name());
        let idle = lock(&self.holds).idle(self.supervisor.now());
        let stops_in = match (idle, self.timeout()) {
            (Some(idle), Some(timeout)) if is_connected(&self.server.state()) => {
                Some(timeout.saturating_sub(idle))
            }
            _ => None,
        };
        Some(Pace { calls_per_hour, stops_in })
    }

    fn footprint(&self) -> Option<Footprint> {
        self.server.footprint()
    }

    fn stderr(&self) -> Vec<String> {
        self.server.stderr()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.server.close()
    }
}

// === impl Need ===

impl<T: Deref<Target = Tended>> Drop for Need<T> {
    fn drop(&mut self) {
        lock(&self.0.holds).end(self.0.supervisor.now());
        *lock(&self.0.silent) = None;
    }
}

pub(super) fn is_connected(state: &ServerState) -> bool {
    match state {
        ServerState::Connected | ServerState::Degraded(_) => true,
        ServerState::Disabled
        | ServerState::AwaitingApproval
        | ServerState::Cached
        | ServerState::Connecting
        | ServerState::NeedsLogin
        | ServerState::Idle
        | ServerState::Failed(_) => false,
    }
}
