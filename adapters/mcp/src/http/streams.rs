//! Streams of streamable HTTP: replies, unsolicited messages, and subscriptions.

use std::sync::Arc;
use std::time::Duration;

use capstan_http::HttpRequest;
use capstan_http::Method;
use capstan_http::Payload;
use capstan_http::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use capstan_hub::ports::Listing;
use capstan_wire::Json;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::{Http, request};
use crate::channel::RequestError;
use crate::channel::dispatch::dispatch;
use crate::fault::Fault;
use crate::http::events::{Event, EventError, Events};
use crate::http::web::{Body, WebError};
use crate::server::backoff::wait_after;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How often in a row a stream is resumed without a single event on it.
const MAX_RESUMPTIONS: u32 = 5;

/// The wait before a stream is resumed, if the server does not specify one. The first resumption of
/// a request does not wait: a server that only cut the connection is still there.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// How often in a row an unreachable server is tried, and the wait between two tries. Together they
/// take well under a second, so that the callers of a dead server fail soon.
const MAX_ABSENT: u32 = 3;
const ABSENT_RETRY: Duration = Duration::from_millis(200);

/// The longest wait that a server can request.
const MAX_RETRY: Duration = Duration::from_mins(1);

/// How long a stream may take to end normally after its reply. Its connection can then be reused.
const DRAIN: Duration = Duration::from_secs(1);

/// The position at which a stream broke off, and the requested wait.
#[derive(Clone, Debug, Default)]
struct StreamPosition {
    id: Option<String>,
    retry: Option<Duration>,
}

/// The reason why a background stream does not open.
enum OpenError {
    /// The server does not offer the stream.
    ForGood,
    /// It may open later.
    ForNow,
    /// The server was unreachable.
    Absent,
}

impl Http {
    /// Reads the stream that carries the reply to a request. A stream that breaks off is resumed if
    /// the revision and the server support that.
    pub(super) async fn follow(
        self: &Arc<Self>,
        id: u64,
        mut events: Events,
    ) -> Result<(), RequestError> {
        let (mut position, mut silent, mut first) = (StreamPosition::default(), 0, true);
        loop {
            let reason = match events.next().await {
                Ok(Some(event)) => {
                    silent = 0;
                    self.take_event(&event, Some(id)).await;
                    if self.base.requests.pending.waits_for(id) {
                        continue;
                    }
                    self.base.spawn(Arc::clone(self).drain(id, events));
                    return Ok(());
                }
                Ok(None) => "its answer ended before it was complete".to_owned(),
                Err(EventError::Broken(reason)) => reason,
                Err(EventError::TooLong(limit)) => {
                    return Err(RequestError::Refused(Fault::TooLong(limit)));
                }
            };
            position.note(&events);
            let wait = if first { position.retry().unwrap_or_default() } else { position.wait() };
            first = false;
            events = match self.resume(&position, &mut silent, wait).await {
                Some(events) => events,
                None => return Err(RequestError::Gone(reason)),
            };
        }
    }

    /// Resumes a stream that broke off, after `wait`. `silent` counts the resumptions in a row
    /// without an event. `None` if the stream cannot be resumed.
    async fn resume(
        &self,
        position: &StreamPosition,
        silent: &mut u32,
        mut wait: Duration,
    ) -> Option<Events> {
        if position.id.is_none() || !self.era.can_resume() {
            return None;
        }
        let mut absent = 0;
        while *silent < MAX_RESUMPTIONS && absent < MAX_ABSENT {
            sleep(wait).await;
            *silent += 1;
            match self.take_up(position).await {
                Ok(events) => return Some(events),
                Err(OpenError::ForGood) => return None,
                Err(OpenError::ForNow) => (absent, wait) = (0, position.wait()),
                Err(OpenError::Absent) => (absent, wait) = (absent + 1, ABSENT_RETRY),
            }
        }
        None
    }

    /// Reads the rest of a stream.
    ///
    /// Its request is over, so questions and log messages on it have no receiver.
    async fn drain(self: Arc<Self>, id: u64, mut events: Events) {
        let draining = async {
            while let Ok(Some(event)) = events.next().await {
                self.take_event(&event, Some(id)).await;
            }
        };
        drop(timeout(DRAIN, draining).await);
    }

    async fn take_event(&self, event: &Event, of: Option<u64>) {
        match event.name.as_str() {
            "" | "message" => dispatch(&event.data, &self.base.inbound, of).await,
            name => debug!(name, "an unknown event"),
        }
    }

    /// Opens a stream; with an id in `position`, resumes one that broke off.
    async fn take_up(&self, position: &StreamPosition) -> Result<Events, OpenError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.era.add_session(&mut headers);
        if let Some(id) = &position.id {
            let id = HeaderValue::from_str(id).map_err(|_| OpenError::ForGood)?;
            headers.insert(LAST_EVENT_ID, id);
        }
        let to = self.base.web.client.target().clone();
        let order = HttpRequest { method: Method::GET, to, headers, body: Payload::default() };
        self.open(order).await
    }

    async fn open(&self, order: HttpRequest) -> Result<Events, OpenError> {
        match self.base.web.send(order).await {
            Ok(response) => match response.body {
                Body::Events(events) => Ok(events),
                Body::Json(_) | Body::Large(_) | Body::Nothing => Err(OpenError::ForGood),
            },
            Err(WebError::NotSent(_) | WebError::Blocked(_)) => Err(OpenError::Absent),
            Err(WebError::Lost(_)) => Err(OpenError::ForNow),
            Err(WebError::Refused(refusal)) if refusal.status >= 500 => Err(OpenError::ForNow),
            Err(WebError::Refused(_) | WebError::NotMcp(_) | WebError::TooLong(_)) => {
                Err(OpenError::ForGood)
            }
        }
    }

    /// Reads the stream of a legacy server's unsolicited messages, if it offers one. `asked` is
    /// dropped when the server has answered if it does.
    pub(super) async fn listen(self: Arc<Self>, asked: oneshot::Sender<()>) {
        let mut asked = Some(asked);
        let (mut position, mut failures) = (StreamPosition::default(), 0);
        while failures < MAX_RESUMPTIONS {
            let taken_up = self.take_up(&position).await;
            drop(asked.take());
            match taken_up {
                Ok(events) => {
                    failures = if self.hear(events, &mut position, &mut None).await {
                        0
                    } else {
                        failures + 1
                    };
                }
                Err(OpenError::ForNow | OpenError::Absent) => failures += 1,
                Err(OpenError::ForGood) => return,
            }
            sleep(position.wait().max(wait_after(failures, 0.0))).await;
        }
        debug!("the server's notification stream is abandoned");
    }

    /// Subscribes to changes of a modern server, and again whenever the stream ends. `opened` is
    /// dropped at the first event or when the stream fails.
    pub(super) async fn subscribe(
        self: Arc<Self>,
        method: &'static str,
        params: Json,
        opened: oneshot::Sender<()>,
    ) {
        let mut opened = Some(opened);
        let (mut position, mut failures, mut lapsed) = (StreamPosition::default(), 0, false);
        while failures < MAX_RESUMPTIONS {
            let line = request::request(self.base.requests.next_id(), method, &params);
            self.base.log_payload(&line);
            let order = self.order(self.era.headers(method, &params), line);
            match self.open(order).await {
                Ok(events) => {
                    if lapsed {
                        // Any list may have changed while there was no stream.
                        self.all_changed();
                    }
                    failures = if self.hear(events, &mut position, &mut opened).await {
                        0
                    } else {
                        failures + 1
                    };
                    lapsed = true;
                }
                Err(OpenError::ForNow | OpenError::Absent) => failures += 1,
                Err(OpenError::ForGood) => return,
            }
            opened = None;
            sleep(position.wait().max(wait_after(failures, 0.0))).await;
        }
        debug!("a subscription is abandoned");
    }

    /// Dispatches all events of a stream until it ends; `true` if there were any.
    async fn hear(
        &self,
        mut events: Events,
        position: &mut StreamPosition,
        opened: &mut Option<oneshot::Sender<()>>,
    ) -> bool {
        let mut heard = false;
        while let Ok(Some(event)) = events.next().await {
            heard = true;
            self.take_event(&event, None).await;
            *opened = None;
        }
        position.note(&events);
        heard
    }

    fn all_changed(&self) {
        for listing in Listing::ALL {
            (self.base.inbound.changed)(listing);
        }
    }
}

// === impl StreamPosition ===

impl StreamPosition {
    fn note(&mut self, events: &Events) {
        if let Some(id) = events.last_id() {
            self.id = Some(id.to_owned());
        }
        self.retry = events.retry().or(self.retry);
    }

    fn wait(&self) -> Duration {
        self.retry().unwrap_or(DEFAULT_RETRY)
    }

    /// The wait that the server requests, at most [`MAX_RETRY`].
    fn retry(&self) -> Option<Duration> {
        self.retry.map(|retry| retry.min(MAX_RETRY))
    }
}
