//! One request of a client, and what comes back: messages on the way, then the answer.

pub(crate) mod event_channel;
pub(crate) mod streamed_answer;

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use capstan_wire::{Json, RequestId, compose};
use futures::FutureExt as _;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::exchange::event_channel::{EventReceiver, channel};
use crate::exchange::streamed_answer::{Done, InFlight, StreamedAnswer};
use crate::methods::lists::page::{Page, Parts};
use crate::protocol::fault::{Fault, INTERNAL};
use crate::questions::continuation::Continuation;
use crate::questions::operator::{Event, OpenQuestion};
use crate::questions::parked_calls::ParkedCall;

/// A request that is worked on. Dropping it ends the work, and tells the server so.
#[must_use = "dropping it cancels the request"]
pub struct Exchange {
    id: RequestId,
    work: Work,
    /// Who is to forget the request when it is done.
    client: Option<Arc<Client>>,
    /// How a call of a modern client goes on that has something to ask.
    coming: Option<Continuation>,
    /// Questions for the client that are not yet put to it.
    asked: Vec<OpenQuestion>,
}

enum Work {
    /// Done before it began.
    Ready(Option<Answer>),
    /// Under way.
    Running { events: EventReceiver<Event>, task: Task, said: VecDeque<Bytes> },
}

/// What comes back for a request.
pub enum Out {
    /// A message that belongs to it: progress, a log message, a question.
    Message(Bytes),
    /// The answer, which is the last.
    Answer(Answer),
}

/// The same, for somebody who takes a large answer while it comes.
pub enum Next {
    /// A message, or all of the answer.
    Out(Out),
    /// The answer, which is still coming.
    Streamed(Box<StreamedAnswer>),
}

/// The answer to a request, in pieces so that a large result is not copied.
#[derive(Clone, Debug)]
pub struct Answer {
    head: Vec<u8>,
    body: Text,
    tail: Bytes,
    /// The JSON-RPC code, when it is an error.
    error: Option<i64>,
}

/// A result, in pieces: what stands before and behind the part that is shared.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) before: Bytes,
    pub(crate) body: Text,
    pub(crate) after: Bytes,
}

/// The part of a result that is shared.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    Bytes(Bytes),
    Page(Arc<Page>),
}

/// An answer in parts. Those of a page are put together one after the other.
pub struct Partly {
    head: Option<Bytes>,
    body: Body,
    tail: Option<Bytes>,
}

enum Body {
    Bytes(Option<Bytes>),
    Page(Parts),
}

/// A task that ends when nobody waits for it any more.
pub(crate) struct Task(pub(crate) JoinHandle<Result<Done, Fault>>);

// === impl Exchange ===

impl Exchange {
    pub(crate) fn ready(id: RequestId, result: Result<Payload, Fault>) -> Self {
        let answer = Answer::of(&id, result);
        Self { id, work: Work::Ready(Some(answer)), client: None, coming: None, asked: Vec::new() }
    }

    pub(crate) fn fault(id: RequestId, fault: Fault) -> Self {
        Self::ready(id, Err(fault))
    }

    /// Work that goes on in a task of its own.
    pub(crate) fn running(
        id: RequestId,
        client: &Arc<Client>,
        events: EventReceiver<Event>,
        task: Task,
    ) -> Self {
        if let Err(why) = client.runs(&id, task.0.abort_handle()) {
            return Self::fault(id, Fault::new(-32600, why));
        }
        let work = Work::Running { events, task, said: VecDeque::new() };
        Self { id, work, client: Some(Arc::clone(client)), coming: None, asked: Vec::new() }
    }

    /// Work that nothing is said about before it is done.
    pub(crate) fn silent(
        id: RequestId,
        client: &Arc<Client>,
        work: impl Future<Output = Result<Payload, Fault>> + Send + 'static,
    ) -> Self {
        let (_, events) = channel();
        Self::running(id, client, events, Task::new(work))
    }

    /// The same, for a call that may have to wait for its client to come back.
    pub(crate) fn coming(mut self, coming: Continuation) -> Self {
        self.coming = Some(coming);
        self
    }

    /// What comes next; `None` after the answer.
    pub async fn next(&mut self) -> Option<Out> {
        match self.next_or_stream().await? {
            Next::Out(out) => Some(out),
            Next::Streamed(coming) => Some(Out::Answer(match coming.whole().await {
                Ok(whole) => Answer::whole(whole),
                Err(instead) => Answer::of(&self.id, instead),
            })),
        }
    }

    /// The same; but a large answer may still be coming, where that was asked for. Nothing is lost
    /// when this is dropped.
    pub async fn next_or_stream(&mut self) -> Option<Next> {
        if !self.asked.is_empty() {
            return self.ask().await.map(Next::Out);
        }
        let Work::Running { events, task, said } = &mut self.work else {
            let Work::Ready(answer) = &mut self.work else { return None };
            return answer.take().map(|answer| Next::Out(Out::Answer(answer)));
        };
        if let Some(message) = said.pop_front() {
            return Some(Next::Out(Out::Message(message)));
        }
        let result = loop {
            tokio::select! {
                biased;
                // Everything that was said before the answer comes before it.
                event = events.next() => match event {
                    Event::Message(message) => return Some(Next::Out(Out::Message(message))),
                    Event::Question(question) if self.coming.is_some() => {
                        self.asked.push(question);
                        return self.ask().await.map(Next::Out);
                    }
                    // Nobody comes back to this request with an answer.
                    Event::Question(question) => drop(question),
                },
                result = &mut task.0 => break result,
            }
        };
        self.work = Work::Ready(None);
        let result = match result {
            Ok(Ok(Done::Streamed(mut coming))) => {
                let head = start(Some(&self.id), br#","result":"#).into();
                let whose = self.client.take().map(|client| InFlight::new(client, &self.id));
                coming.begins(head, whose);
                return Some(Next::Streamed(coming));
            }
            Ok(Ok(Done::Payload(payload))) => Ok(payload),
            Ok(Err(fault)) => Err(fault),
            // Whoever cancels expects no answer.
            Err(error) if error.is_cancelled() => {
                self.done();
                return None;
            }
            Err(_) => Err(Fault::new(INTERNAL, "the request failed in here; the log says more")),
        };
        self.done();
        Some(Next::Out(Out::Answer(Answer::of(&self.id, result))))
    }

    /// Asks a modern client, together with whatever else is asked at the same moment.
    async fn ask(&mut self) -> Option<Out> {
        // Questions that were put at once arrive one after the other.
        tokio::task::yield_now().await;
        let mut questions = std::mem::take(&mut self.asked);
        if let Work::Running { events, said, .. } = &mut self.work {
            while let Some(event) = events.try_next() {
                match event {
                    Event::Message(message) => said.push_back(message),
                    Event::Question(question) => questions.push(question),
                }
            }
        }
        let work = std::mem::replace(&mut self.work, Work::Ready(None));
        let (Work::Running { events, task, mut said }, Some(coming)) = (work, &self.coming) else {
            return None;
        };
        let number = |(at, open): (usize, OpenQuestion)| (format!("capstan-{}", at + 1), open);
        let questions = questions.into_iter().enumerate().map(number).collect();
        let (expires, operator) = (coming.expires(), Arc::clone(&coming.operator));
        let parked = ParkedCall { events, task, operator, questions, expires };
        let answer = Answer::of(&self.id, coming.park(parked).map(Payload::from));
        let message = said.pop_front();
        self.done();
        match message {
            None => Some(Out::Answer(answer)),
            Some(message) => {
                self.work = Work::Ready(Some(answer));
                Some(Out::Message(message))
            }
        }
    }

    fn done(&mut self) {
        if let Some(client) = self.client.take() {
            client.ran(&self.id);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.done();
    }
}

// === impl Answer ===

impl Answer {
    fn of(id: &RequestId, result: Result<Payload, Fault>) -> Self {
        match result {
            Ok(payload) => {
                let mut head = start(Some(id), br#","result":"#);
                head.extend_from_slice(&payload.before);
                let tail = if payload.after.is_empty() {
                    Bytes::from_static(b"}")
                } else {
                    let mut tail = BytesMut::from(payload.after);
                    tail.extend_from_slice(b"}");
                    tail.freeze()
                };
                Self { head, body: payload.body, tail, error: None }
            }
            Err(fault) => Self::fault(Some(id), &fault),
        }
    }

    /// One that is put together already.
    fn whole(body: Bytes) -> Self {
        Self { head: Vec::new(), body: Text::Bytes(body), tail: Bytes::new(), error: None }
    }

    pub(crate) fn result(id: &RequestId, result: &Json) -> Self {
        Self::of(id, Ok(Payload::from(result.clone())))
    }

    pub(crate) fn fault(id: Option<&RequestId>, fault: &Fault) -> Self {
        let (head, tail) = (start(id, br#","error":"#), Bytes::from_static(b"}"));
        let body = Text::Bytes(fault.to_json().bytes().clone());
        Self { head, body, tail, error: Some(fault.code()) }
    }

    /// An error that no method had a hand in.
    pub fn error(id: Option<&RequestId>, code: i64, message: &str) -> Self {
        Self::fault(id, &Fault::new(code, message))
    }

    /// The JSON-RPC code, when it is an error.
    pub fn error_code(&self) -> Option<i64> {
        self.error
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces, in order. A page is one of them, and the same for all who hold it at once.
    pub fn pieces(self) -> [Bytes; 3] {
        let body = match self.body {
            Text::Bytes(body) => body,
            Text::Page(page) => page.whole(),
        };
        [self.head.into(), body, self.tail]
    }

    /// The same for whoever sends one after the other: a page is never there as a whole.
    pub fn parts(self) -> Partly {
        let body = match self.body {
            Text::Bytes(body) => Body::Bytes(Some(body)),
            Text::Page(page) => Body::Page(Parts::of(page)),
        };
        Partly { head: Some(self.head.into()), body, tail: Some(self.tail) }
    }

    /// Puts all of it behind what is there.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        out.extend_from_slice(&self.head);
        match &self.body {
            Text::Bytes(body) => out.extend_from_slice(body),
            Text::Page(page) => page.write_into(out),
        }
        out.extend_from_slice(&self.tail);
    }
}

// === impl Payload ===

impl From<Json> for Payload {
    fn from(result: Json) -> Self {
        let body = Text::Bytes(result.bytes().clone());
        Self { before: Bytes::new(), body, after: Bytes::new() }
    }
}

// === impl Text ===

impl Text {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Page(page) => page.len(),
        }
    }
}

// === impl Partly ===

impl Iterator for Partly {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let body = || match &mut self.body {
            Body::Bytes(body) => body.take(),
            Body::Page(parts) => parts.next(),
        };
        self.head.take().or_else(body).or_else(|| self.tail.take())
    }
}

// === impl Task ===

impl Task {
    pub(crate) fn new<T: Into<Done>>(
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Self {
        Self(tokio::spawn(work.map(|result| result.map(Into::into))))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The start of a message with this id.
fn start(id: Option<&RequestId>, then: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(64);
    head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    match id {
        // Writing into memory does not fail.
        Some(RequestId::Number(id)) => drop(write!(head, "{id}")),
        Some(RequestId::Text(id)) => head.extend_from_slice(compose::string(id).as_bytes()),
        None => head.extend_from_slice(b"null"),
    }
    head.extend_from_slice(then);
    head
}
