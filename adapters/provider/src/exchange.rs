//! Sends a request, repeats it after a rate limit or a failure, and reads the answer.
//!
//! **Invariant:** a request is repeated only while nothing of an answer was passed on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use capstan_http::{Client, HttpError, HttpRequest, HttpResponse, Method, Payload, Target};
use capstan_hub::ports::{ChatError, ChatEvent, ChatRequest};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::time::{sleep, timeout};

use crate::events::{Events, TooLong};
use crate::format::{AnswerReader, ReadError, WireFormat};
use crate::refusal;

/// The largest number of attempts.
const MAX_ATTEMPTS: u32 = 4;

/// The longest wait between two attempts; a provider that asks for more gets no further one.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// The wait after the first attempt, which doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The largest part of an error answer that is read, in bytes.
const MAX_ERROR: usize = 64 << 10;

/// One request with its answer.
pub(crate) struct Exchange {
    client: Client,
    format: Arc<dyn WireFormat>,
    model: Arc<str>,
    timeout: Duration,
    body: Bytes,
    attempt: u32,
    /// True if a part of the answer was passed on.
    answered: bool,
    ready: VecDeque<Result<ChatEvent, ChatError>>,
    phase: Phase,
}

enum Phase {
    Waiting(Duration),
    Sending,
    Reading(Box<Reading>),
    Done,
}

/// An answer that is arriving.
struct Reading {
    stream: BoxStream<'static, Result<Bytes, String>>,
    events: Events,
    reader: Box<dyn AnswerReader>,
}

// === impl Exchange ===

impl Exchange {
    pub(crate) fn new(
        client: Client,
        format: Arc<dyn WireFormat>,
        model: Arc<str>,
        timeout: Duration,
        request: &ChatRequest,
    ) -> Self {
        let body = Bytes::from(format.body(request).to_string());
        Self {
            client,
            format,
            model,
            timeout,
            body,
            attempt: 0,
            answered: false,
            ready: VecDeque::new(),
            phase: Phase::Sending,
        }
    }

    /// The events of the answer. Dropping the stream closes the connection.
    pub(crate) fn events(self) -> BoxStream<'static, Result<ChatEvent, ChatError>> {
        let next = |mut exchange: Self| async move {
            let event = exchange.next().await?;
            Some((event, exchange))
        };
        stream::unfold(self, next).boxed()
    }

    async fn next(&mut self) -> Option<Result<ChatEvent, ChatError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Done => return None,
                Phase::Waiting(wait) => {
                    sleep(wait).await;
                    self.phase = Phase::Sending;
                }
                Phase::Sending => match self.send().await {
                    Ok(reading) => self.phase = Phase::Reading(Box::new(reading)),
                    Err(error) => self.failed(error),
                },
                Phase::Reading(mut reading) => match self.read(&mut reading).await {
                    Ok(More::Yes) => self.phase = Phase::Reading(reading),
                    Ok(More::No) => {}
                    Err(error) => self.failed(error),
                },
            }
        }
    }

    /// Schedules another attempt, or reports the error.
    fn failed(&mut self, error: ChatError) {
        let may_repeat = error.is_transient() && !self.answered && self.attempt < MAX_ATTEMPTS;
        let wait = self.wait_after(&error).filter(|wait| may_repeat && *wait <= MAX_WAIT);
        let Some(wait) = wait else {
            self.ready.push_back(Err(error));
            return;
        };
        let (attempt, reason) = (self.attempt, error.to_string());
        self.ready.push_back(Ok(ChatEvent::Retrying { attempt, wait, reason }));
        self.phase = Phase::Waiting(wait);
    }

    /// The wait that the provider asks for, else one that doubles and varies.
    fn wait_after(&self, error: &ChatError) -> Option<Duration> {
        if let ChatError::RateLimited { wait: Some(wait), .. } = error {
            return Some(*wait);
        }
        let doubled = FIRST_WAIT.checked_mul(1 << self.attempt.saturating_sub(1).min(8))?;
        Some(doubled.mul_f64(1.0 + fastrand::f64() / 2.0))
    }

    async fn send(&mut self) -> Result<Reading, ChatError> {
        self.attempt = self.attempt.saturating_add(1);
        let request = self.request();
        let write = || request.clone();
        let answer = timeout(self.timeout, self.client.follow(&write)).await;
        let response = answer.map_err(|_| self.timed_out())?.map_err(|error| self.unsent(error))?;
        let HttpResponse { status, headers, body } = response;
        if !status.is_success() {
            let read = timeout(self.timeout, self.client.read(body, MAX_ERROR)).await;
            let body = read.ok().and_then(Result::ok).map(|(body, _)| body).unwrap_or_default();
            let body = self.client.mask(&String::from_utf8_lossy(&body));
            return Err(refusal::of_status(&self.model, status, &headers, &body));
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream")) {
            let kind = kind.unwrap_or("no content type");
            return Err(self.malformed(format!("it is not a stream of events but `{kind}`")));
        }
        let stream = self.client.stream(body);
        Ok(Reading { stream, events: Events::default(), reader: self.format.reader() })
    }

    fn request(&self) -> HttpRequest {
        let mut url = self.client.target().url().clone();
        let path = self.format.path(url.path());
        url.set_path(&path);
        url.set_query(self.format.query());
        let accept = HeaderValue::from_static("text/event-stream");
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept);
        let body = Payload::from([self.body.clone(), Bytes::new(), Bytes::new()]);
        HttpRequest { method: Method::POST, to: Target::from(url), headers, body }
    }

    async fn read(&mut self, reading: &mut Reading) -> Result<More, ChatError> {
        let piece = timeout(self.timeout, reading.stream.next()).await;
        let (found, more) = match piece.map_err(|_| self.timed_out())? {
            Some(Ok(bytes)) => (reading.events.push(&bytes), More::Yes),
            Some(Err(reason)) => {
                // The provider may close the connection after all is said.
                return self.ended(reading, &reason);
            }
            None => (reading.events.end(), More::No),
        };
        let found = found.map_err(|TooLong| self.malformed("an event is too long".to_owned()))?;
        for data in found {
            let mut out = Vec::new();
            let read = reading.reader.read(&data, &mut out);
            self.answered |= !out.is_empty();
            self.ready.extend(out.into_iter().map(Ok));
            read.map_err(|error| self.unreadable(error))?;
        }
        match more {
            More::Yes if !reading.reader.is_complete() => Ok(More::Yes),
            More::Yes | More::No => self.ended(reading, "the connection was closed"),
        }
    }

    fn ended(&mut self, reading: &mut Reading, reason: &str) -> Result<More, ChatError> {
        let Some(end) = reading.reader.end() else {
            let (model, reason) = (self.model.to_string(), reason.to_owned());
            return Err(ChatError::Cut { model, reason });
        };
        self.ready.push_back(Ok(ChatEvent::End(end)));
        Ok(More::No)
    }

    fn unreadable(&self, error: ReadError) -> ChatError {
        match error {
            ReadError::Reported(kind, message) => {
                refusal::of_event(&self.model, &kind, &self.client.mask(&message))
            }
            ReadError::Malformed(reason) => self.malformed(reason),
        }
    }

    fn malformed(&self, reason: String) -> ChatError {
        ChatError::Malformed { model: self.model.to_string(), reason }
    }

    fn timed_out(&self) -> ChatError {
        ChatError::TimedOut { model: self.model.to_string(), limit: self.timeout }
    }

    fn unsent(&self, error: HttpError) -> ChatError {
        let model = self.model.to_string();
        match error {
            HttpError::Blocked(reason) => ChatError::Blocked { model, reason },
            HttpError::NotSent(reason) => ChatError::Unreachable { model, reason },
            HttpError::Lost(reason) => ChatError::Cut { model, reason },
            HttpError::Elsewhere(reason) | HttpError::NeedsLogin(reason) => {
                ChatError::Refused { model, reason }
            }
            HttpError::Unfit(reason) => ChatError::Refused { model, reason: reason.to_owned() },
            HttpError::Redirected { words, .. } => ChatError::Refused { model, reason: words },
        }
    }
}

/// The state of an answer after a piece of it.
enum More {
    Yes,
    No,
}
