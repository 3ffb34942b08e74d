//! Handles the messages of the client.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use capstan_model::Caller;
use capstan_model::rpc_code::INVALID_REQUEST;
use capstan_wire::{Json, Message, RequestId};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc;

use crate::client::MAX_RUNNING;
use crate::protocol::era::{Contact, Hint};
use crate::protocol::messages::{cancelled, is_batch, messages, one};
use crate::protocol::method::Method;
use crate::protocol::request_meta::RequestMeta;
use crate::transport::stdio::batch::{BatchId, Batches};
use crate::transport::stdio::outbox::Outbox;
use crate::{Answer, Client, ClientContext, Exchange, Gateway, Out, View};

/// Back-pressure: reading stops while this many bytes wait to be written.
const MAX_WAITING: usize = 4 * 1024 * 1024;

/// The state of the connection to the client.
pub(crate) struct Conversation {
    pub(crate) gateway: Arc<Gateway>,
    /// Messages that wait to be written.
    pub(crate) out: Outbox,
    context: ClientContext,
    /// The client, after `initialize`.
    legacy: Option<Arc<Client>>,
    /// Running requests.
    pub(crate) work: Work,
    /// True while `initialize` is in progress; no message is read meanwhile.
    is_initializing: bool,
    /// Modern requests; each one is its own client.
    modern: HashMap<RequestId, Arc<Client>>,
    batches: Batches,
}

/// Sources of messages to the client.
pub(crate) struct Work {
    running: FuturesUnordered<BoxFuture<'static, Event>>,
    /// Messages that belong to no request.
    inbox: Option<mpsc::Receiver<Bytes>>,
}

/// A running request.
pub(crate) struct Running {
    id: RequestId,
    exchange: Exchange,
    batch: Option<BatchId>,
    /// True if it has an entry in `modern`.
    modern: bool,
}

/// An event of a running request or of the inbox.
pub(crate) enum Event {
    /// `initialize` is answered; with the client unless it is refused.
    Initialized(Answer, Option<Arc<Client>>),
    /// Output of a request; `None` if it was cancelled.
    Output(Box<Running>, Option<Out>),
    /// A message that belongs to no request.
    Inbox(Option<Bytes>),
}

// === impl Conversation ===

impl Conversation {
    pub(crate) fn new(gateway: Arc<Gateway>, caller: Arc<Caller>, view: View) -> Self {
        let mut context = gateway.session_context(caller, view);
        context.described = Some(Arc::default());
        Self {
            gateway,
            out: Outbox::default(),
            context,
            legacy: None,
            work: Work { running: FuturesUnordered::new(), inbox: None },
            is_initializing: false,
            modern: HashMap::new(),
            batches: Batches::default(),
        }
    }

    /// True if another message can be handled now.
    pub(crate) fn takes(&self) -> bool {
        !self.is_initializing && self.out.waiting() < MAX_WAITING
    }

    /// True if no request runs and no message waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.work.running.is_empty() && self.out.is_empty()
    }

    /// Handles an event, and all other events that are ready.
    pub(crate) fn on_all(&mut self, first: Event) {
        self.on(first);
        // Bounded by the maximum number of running requests.
        for _ in 0..MAX_RUNNING {
            let Some(Some(event)) = self.work.running.next().now_or_never() else { break };
            self.on(event);
        }
        while let Some(Ok(message)) = self.work.inbox.as_mut().map(mpsc::Receiver::try_recv) {
            self.out.message(message);
        }
    }

    /// Handles one line.
    pub(crate) fn take(&mut self, line: &Bytes) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if is_batch(line) {
            self.batch(line);
            return;
        }
        match one(line) {
            Ok(message) => self.message(message, None),
            Err(answer) => self.out.answer(answer),
        }
    }

    /// Refuses a line that exceeds the limit.
    pub(crate) fn refuse_long(&mut self, limit: usize) {
        let message = format!("a message may have at most {limit} bytes");
        self.out.answer(Answer::error(None, INVALID_REQUEST, &message));
    }

    /// Ends everything after the client is gone.
    pub(crate) fn leave(&mut self) {
        self.work.running.clear();
        self.modern.clear();
        if let Some(client) = self.legacy.take() {
            self.gateway.leave(&client);
        }
    }

    fn batch(&mut self, line: &Bytes) {
        let messages = match messages(line, self.legacy.as_ref().map(|client| client.revision())) {
            Ok(messages) => messages,
            Err(answer) => return self.out.answer(answer),
        };
        let id = self.batches.open();
        for message in messages {
            match message {
                Ok(message) => self.message(message, Some(id)),
                Err(answer) => self.batches.refuse(id, answer),
            }
        }
        self.settle(id, None);
    }

    fn message(&mut self, message: Message, batch: Option<BatchId>) {
        match message {
            Message::Request { id, method, params } => self.request(id, &method, params, batch),
            Message::Notification { method, params } => self.notification(&method, params.as_ref()),
            Message::Reply { id: Some(id), reply } => {
                if let Some(client) = &self.legacy {
                    client.take_reply(&id, reply);
                }
            }
            Message::Reply { id: None, .. } => {
                tracing::debug!("the client could not read a message");
            }
        }
    }

    fn request(
        &mut self,
        id: RequestId,
        method: &str,
        mut params: Option<Json>,
        batch: Option<BatchId>,
    ) {
        let (contact, meta) = self.contact(method, &mut params);
        if contact == Contact::Initialize {
            return self.initialize(id, params, batch);
        }
        let refuse = |message: &str| Answer::error(Some(&id), INVALID_REQUEST, message);
        if self.work.running.len() >= MAX_RUNNING {
            let message = format!(
                "too many requests at the same time (limit {MAX_RUNNING}); wait for an answer"
            );
            return self.answer(refuse(&message), batch);
        }
        let client = match (contact, &self.legacy) {
            (Contact::Legacy | Contact::Initialize, Some(client)) => Arc::clone(client),
            (Contact::Legacy | Contact::Initialize, None) => {
                return self.answer(Gateway::before_initialize(&id, method), batch);
            }
            (Contact::Modern, _) if !self.modern.is_empty() && self.modern.contains_key(&id) => {
                return self.answer(refuse("a request with this id is still running"), batch);
            }
            (Contact::Modern, _) => {
                let context = self.context.clone();
                let client = match meta {
                    Some(meta) => self.gateway.described(&id, Some(meta), context),
                    None => self.gateway.modern(&id, params.as_ref(), context),
                };
                match client {
                    Ok(client) => client,
                    Err(answer) => return self.answer(answer, batch),
                }
            }
        };
        let modern = contact == Contact::Modern;
        if modern {
            self.modern.insert(id.clone(), Arc::clone(&client));
        }
        if let Some(batch) = batch {
            self.batches.expect(batch);
        }
        let exchange = self.gateway.request(&client, id.clone(), method, params);
        self.wait_for(Box::new(Running { id, exchange, batch, modern }));
    }

    /// Detects the era of a request. If its client is described as before, the description is taken
    /// out of the params, and returned as it was read then.
    fn contact(
        &self,
        method: &str,
        params: &mut Option<Json>,
    ) -> (Contact, Option<Arc<RequestMeta>>) {
        let call = params.as_ref().filter(|_| Method::is_call(method));
        let last = self.context.described.as_ref();
        let cut = call.and_then(|params| last?.cut(params));
        if let Some((meta, rest)) = cut.filter(|(meta, _)| meta.version.is_some()) {
            *params = Some(rest);
            return (Contact::Modern, Some(meta));
        }
        let hint = if self.legacy.is_some() { Hint::Initialized } else { Hint::None };
        (Contact::of(hint, method, params.as_ref()), None)
    }

    fn initialize(&mut self, id: RequestId, params: Option<Json>, batch: Option<BatchId>) {
        if batch.is_some() {
            let message = "`initialize` must not be part of a batch";
            return self.answer(Answer::error(Some(&id), INVALID_REQUEST, message), batch);
        }
        self.is_initializing = true;
        let (gateway, context) = (Arc::clone(&self.gateway), self.context.clone());
        self.work.running.push(Box::pin(async move {
            let (answer, client) = gateway.initialize(&id, params.as_ref(), context).await;
            Event::Initialized(answer, client)
        }));
    }

    fn notification(&mut self, method: &str, params: Option<&Json>) {
        // Each modern request is its own client, so it is looked up by the id.
        if let Some(id) = cancelled(method, params)
            && let Some(client) = self.modern.get(&id)
        {
            return client.cancel(&id);
        }
        if let Some(client) = &self.legacy {
            self.gateway.notification(client, method, params);
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Initialized(answer, client) => {
                self.is_initializing = false;
                self.out.answer(answer);
                if let Some(client) = client {
                    self.work.inbox = Some(client.open_inbox());
                    if let Some(before) = self.legacy.replace(client) {
                        self.gateway.leave(&before);
                    }
                }
            }
            Event::Output(running, Some(Out::Message(message))) => {
                self.out.message(message);
                self.wait_for(running);
            }
            Event::Output(running, last) => {
                if running.modern {
                    self.modern.remove(&running.id);
                }
                let answer = match last {
                    Some(Out::Answer(answer)) => Some(answer),
                    Some(Out::Message(_)) | None => None,
                };
                match (running.batch, answer) {
                    (Some(batch), answer) => self.settle(batch, answer),
                    (None, Some(answer)) => self.out.answer(answer),
                    (None, None) => {}
                }
            }
            Event::Inbox(Some(message)) => self.out.message(message),
            Event::Inbox(None) => self.work.inbox = None,
        }
    }

    /// Answers a request that was not started.
    fn answer(&mut self, answer: Answer, batch: Option<BatchId>) {
        match batch {
            Some(batch) => self.batches.refuse(batch, answer),
            None => self.out.answer(answer),
        }
    }

    fn settle(&mut self, batch: BatchId, answer: Option<Answer>) {
        if let Some(answers) = self.batches.settle(batch, answer) {
            self.out.answers(answers);
        }
    }

    fn wait_for(&self, mut running: Box<Running>) {
        self.work.running.push(Box::pin(async move {
            let out = running.exchange.next().await;
            Event::Output(running, out)
        }));
    }
}

// === impl Work ===

impl Work {
    /// Waits for the next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Event {
        let Self { running, inbox } = self;
        let message = async {
            match inbox {
                Some(inbox) => inbox.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(event) = running.next() => event,
            message = message => Event::Inbox(message),
        }
    }
}
