//! One request of a client: messages while it runs, then its answer.
//!
//! [`Exchange`] owns the task of a request and the receiver of its `event_channel`. `answer`
//! composes whole answers; a `streamed_answer` is sent while its server still sends it.
//!
//! **Invariant:** all events that a task sent go out before its answer, on any number of threads.

pub(crate) mod answer;
pub(crate) mod event_channel;
pub(crate) mod streamed_answer;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_model::rpc_code::{INTERNAL, INVALID_REQUEST};
use capstan_wire::RequestId;
use futures::FutureExt as _;
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio::time::{Sleep, sleep};

use crate::client::Client;
use crate::protocol::fault::Fault;
use crate::questions::continuation::Continuation;
use crate::questions::operator::{Event, OpenQuestion};
use crate::questions::parked_calls::ParkedCall;
use answer::{Answer, Payload, start};
use event_channel::{EventReceiver, channel};
use streamed_answer::{Done, InFlight, StreamedAnswer};

/// Time after a question in which further questions join the same answer.
const QUESTION_WINDOW: Duration = Duration::from_millis(5);

/// A request in progress. Dropping it cancels the request, also at the server.
#[must_use = "dropping it cancels the request"]
pub struct Exchange {
    id: RequestId,
    work: Work,
    /// The client whose table of running requests has an entry for this one.
    client: Option<Arc<Client>>,
    /// How a modern client's call continues after a question.
    continuation: Option<Continuation>,
    /// Questions that the client has not been asked yet.
    questions: Vec<OpenQuestion>,
    /// Elapses when the questions are to be sent.
    window: Option<Pin<Box<Sleep>>>,
}

enum Work {
    /// The answer, until it is taken.
    Ready(Option<Answer>),
    /// A task produces events and the result.
    Running { events: EventReceiver<Event>, task: Task },
    /// The task has ended. Its last messages go out before its result.
    Ended { messages: VecDeque<Bytes>, result: Result<Result<Done, Fault>, JoinError> },
}

/// Output of a request.
pub enum Out {
    /// A message that belongs to the request: progress, a log message, a question.
    Message(Bytes),
    /// The answer. Nothing follows it.
    Answer(Answer),
}

/// Output of a request for a client that accepts a streamed answer.
pub enum Next {
    /// A message, or the whole answer.
    Out(Out),
    /// An answer whose end the server has not sent yet.
    Streamed(Box<StreamedAnswer>),
}

/// A task that is aborted when it is dropped.
pub(crate) struct Task(JoinHandle<Result<Done, Fault>>);

// === impl Exchange ===

impl Exchange {
    pub(crate) fn ready(id: RequestId, result: Result<Payload, Fault>) -> Self {
        let answer = Answer::of(&id, result);
        Self::new(id, Work::Ready(Some(answer)), None)
    }

    pub(crate) fn fault(id: RequestId, fault: Fault) -> Self {
        Self::ready(id, Err(fault))
    }

    /// Starts a request with its own task. `start` is not called if the client has no room for it.
    pub(crate) fn running(
        id: RequestId,
        client: &Arc<Client>,
        events: EventReceiver<Event>,
        start: impl FnOnce() -> Task,
    ) -> Self {
        match client.start(&id, start) {
            Ok(task) => Self::new(id, Work::Running { events, task }, Some(Arc::clone(client))),
            Err(why) => Self::fault(id, Fault::new(INVALID_REQUEST, why)),
        }
    }

    /// A request whose task sends no events.
    pub(crate) fn silent(
        id: RequestId,
        client: &Arc<Client>,
        work: impl Future<Output = Result<Payload, Fault>> + Send + 'static,
    ) -> Self {
        let (_, events) = channel();
        Self::running(id, client, events, || Task::new(work))
    }

    /// Sets how the call continues after a question. Without it, questions are dropped.
    pub(crate) fn continued_by(mut self, continuation: Option<Continuation>) -> Self {
        self.continuation = continuation;
        self
    }

    fn new(id: RequestId, work: Work, client: Option<Arc<Client>>) -> Self {
        Self { id, work, client, continuation: None, questions: Vec::new(), window: None }
    }

    /// Returns the next message, then the answer, then `None`.
    pub async fn next(&mut self) -> Option<Out> {
        match self.next_or_stream().await? {
            Next::Out(out) => Some(out),
            Next::Streamed(streamed) => Some(Out::Answer(match streamed.whole().await {
                Ok(whole) => Answer::whole(whole),
                Err(instead) => Answer::of(&self.id, instead),
            })),
        }
    }

    /// Like [`Self::next`], but a large answer may be streamed if the request allows it.
    ///
    /// Cancel-safe.
    pub async fn next_or_stream(&mut self) -> Option<Next> {
        if let Work::Running { events, task } = &mut self.work {
            let result = loop {
                tokio::select! {
                    biased;
                    event = events.next() => match event {
                        Event::Message(message) => return Some(Next::Out(Out::Message(message))),
                        Event::Question(question) if self.continuation.is_some() => {
                            self.questions.push(question);
                            self.window.get_or_insert_with(|| Box::pin(sleep(QUESTION_WINDOW)));
                        }
                        // The client cannot return to this request with an answer.
                        Event::Question(question) => drop(question),
                    },
                    result = &mut task.0 => break Some(result),
                    () = elapsed(self.window.as_mut()) => break None,
                }
            };
            let Some(result) = result else { return self.park() };
            // On another thread, the task can send events between the two polls above.
            let mut messages = VecDeque::new();
            while let Some(event) = events.try_next() {
                if let Event::Message(message) = event {
                    messages.push_back(message);
                }
            }
            if messages.is_empty() {
                self.work = Work::Ready(None);
                return self.finish(result);
            }
            self.work = Work::Ended { messages, result };
        }
        if let Work::Ended { messages, .. } = &mut self.work
            && let Some(message) = messages.pop_front()
        {
            return Some(Next::Out(Out::Message(message)));
        }
        match std::mem::replace(&mut self.work, Work::Ready(None)) {
            Work::Ready(answer) => answer.map(|answer| Next::Out(Out::Answer(answer))),
            Work::Ended { result, .. } => self.finish(result),
            Work::Running { .. } => None,
        }
    }

    /// Composes the answer from the result of the task; `None` if the request was cancelled.
    fn finish(&mut self, result: Result<Result<Done, Fault>, JoinError>) -> Option<Next> {
        let result = match result {
            Ok(Ok(Done::Streamed(mut streamed))) => {
                let head = start(Some(&self.id), br#","result":"#).into();
                let in_flight = self.client.take().map(|client| InFlight::new(client, &self.id));
                streamed.begins(head, in_flight);
                return Some(Next::Streamed(streamed));
            }
            Ok(Ok(Done::Payload(payload))) => Ok(payload),
            Ok(Err(fault)) => Err(fault),
            // A client that cancels a request expects no answer.
            Err(error) if error.is_cancelled() => {
                self.done();
                return None;
            }
            Err(_) => Err(Fault::new(INTERNAL, "internal error; see the gateway's log")),
        };
        self.done();
        Some(Next::Out(Out::Answer(Answer::of(&self.id, result))))
    }

    /// Parks the call and sends its questions as the answer to this request.
    fn park(&mut self) -> Option<Next> {
        let work = std::mem::replace(&mut self.work, Work::Ready(None));
        let (Work::Running { events, task }, Some(continuation)) = (work, &self.continuation)
        else {
            return None;
        };
        let number = |(at, open): (usize, OpenQuestion)| (format!("capstan-{}", at + 1), open);
        let questions = std::mem::take(&mut self.questions);
        let questions = questions.into_iter().enumerate().map(number).collect();
        let (expires, operator) = (continuation.expires(), Arc::clone(&continuation.operator));
        let parked = ParkedCall { events, task, operator, questions, expires };
        let answer = Answer::of(&self.id, continuation.park(parked).map(Payload::from));
        self.done();
        Some(Next::Out(Out::Answer(answer)))
    }

    fn done(&mut self) {
        if let Some(client) = self.client.take() {
            client.finished(&self.id);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.done();
    }
}

// === impl Task ===

impl Task {
    /// Spawns the work.
    pub(crate) fn new<T: Into<Done>>(
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Self {
        Self(tokio::spawn(work.map(|result| result.map(Into::into))))
    }

    pub(crate) fn abort_handle(&self) -> AbortHandle {
        self.0.abort_handle()
    }

    /// Waits until the task has ended.
    pub(crate) async fn ended(&mut self) {
        drop((&mut self.0).await);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits until the window has elapsed; forever without one.
async fn elapsed(window: Option<&mut Pin<Box<Sleep>>>) {
    match window {
        Some(window) => window.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use capstan_hub::Session;
    use capstan_model::Caller;
    use capstan_wire::Json;

    use super::*;
    use crate::client::{ClientContext, View};
    use crate::protocol::revision::Revision;

    /// Number of attempts to make the task end between the two polls of an exchange.
    const ROUNDS: i64 = 40_000;

    fn client() -> Arc<Client> {
        let context = ClientContext::new(Arc::new(Caller::anonymous()), None, View::All);
        let session = Arc::new(Session::new(None));
        Arc::new(Client::new(Revision::V2025_11_25, Json::empty_object(), context, session))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn events_of_a_task_on_another_thread_go_out_before_its_answer() {
        let client = client();
        for round in 0..ROUNDS {
            let (sender, events) = channel();
            let work = async move {
                for _ in 0..round % 64 {
                    std::hint::spin_loop();
                }
                let message = Event::Message(Bytes::from_static(b"last"));
                assert!(sender.try_send(message).is_ok());
                Ok(Payload::from(Json::empty_object()))
            };
            let id = RequestId::Number(round);
            let mut exchange = Exchange::running(id, &client, events, || Task::new(work));
            let first = exchange.next().await;
            assert!(matches!(first, Some(Out::Message(_))), "round {round}");
            assert!(matches!(exchange.next().await, Some(Out::Answer(_))), "round {round}");
            assert!(exchange.next().await.is_none());
        }
    }
}
