//! Streams of streamable HTTP: the one that a reply comes on, the one of a server that speaks
//! unasked, and subscriptions.

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

/// How often in a row a stream is taken up again without a single event on it.
const MAX_RESUMPTIONS: u32 = 5;

/// The wait before a stream is taken up again, where the server does not say. The first time of a
/// request there is none: whoever was only cut off is there.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// How often in a row it is tried to reach a server that is not there, and the wait between two tries.
/// Together well under a second: so soon the callers of a server that died are to know it.
const MAX_ABSENT: u32 = 3;
const ABSENT_RETRY: Duration = Duration::from_millis(200);

/// The longest wait that a server can ask for.
const MAX_RETRY: Duration = Duration::from_mins(1);

/// How long a stream that has delivered its reply may take to end in good order, so that its
/// connection can be used again.
const DRAIN: Duration = Duration::from_secs(1);

/// Where a stream broke off, and how to go on.
#[derive(Clone, Debug, Default)]
struct Mark {
    id: Option<String>,
    retry: Option<Duration>,
}

/// Why a stream that nobody waits for does not open.
enum Closed {
    /// It will not open.
    ForGood,
    /// It may open later.
    ForNow,
    /// Nobody was there to open it.
    Absent,
}

impl Http {
    /// Reads the stream that the reply to a request comes on. One that breaks off is taken up
    /// again where the revision and the server know how.
    pub(super) async fn follow(
        self: &Arc<Self>,
        id: u64,
        mut events: Events,
    ) -> Result<(), RequestError> {
        let (mut mark, mut silent, mut first) = (Mark::default(), 0, true);
        loop {
            let reason = match events.next().await {
                Ok(Some(event)) => {
                    silent = 0;
                    self.take_event(&event, Some(id)).await;
                    if self.link.requests.pending.waits_for(id) {
                        continue;
                    }
                    self.link.spawn(Arc::clone(self).drain(id, events));
                    return Ok(());
                }
                Ok(None) => "its answer ended before it was complete".to_owned(),
                Err(EventError::Broken(reason)) => reason,
                Err(EventError::TooLong(limit)) => {
                    return Err(RequestError::Refused(Fault::TooLong(limit)));
                }
            };
            mark.note(&events);
            let wait = if first { mark.retry().unwrap_or_default() } else { mark.wait() };
            first = false;
            events = match self.resume(&mark, &mut silent, wait).await {
                Some(events) => events,
                None => return Err(RequestError::Gone(reason)),
            };
        }
    }

    /// Takes a stream up again that broke off, after this wait and so many times in a row without an
    /// event on it; `None` when that cannot be.
    async fn resume(&self, mark: &Mark, silent: &mut u32, mut wait: Duration) -> Option<Events> {
        if mark.id.is_none() || self.is_modern() {
            return None;
        }
        let mut absent = 0;
        while *silent < MAX_RESUMPTIONS && absent < MAX_ABSENT {
            sleep(wait).await;
            *silent += 1;
            match self.take_up(mark).await {
                Ok(events) => return Some(events),
                Err(Closed::ForGood) => return None,
                Err(Closed::ForNow) => (absent, wait) = (0, mark.wait()),
                Err(Closed::Absent) => (absent, wait) = (absent + 1, ABSENT_RETRY),
            }
        }
        None
    }

    /// Reads what is left of a stream.
    ///
    /// It belongs to a request that is over, so that whatever is asked or logged there is for nobody.
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
            "" | "message" => dispatch(&event.data, &self.link.inbound, of).await,
            name => debug!(name, "an event that means nothing to us"),
        }
    }

    /// Opens a stream, where another one broke off if the mark says so.
    async fn take_up(&self, mark: &Mark) -> Result<Events, Closed> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.add_session(&mut headers);
        if let Some(id) = &mark.id {
            let id = HeaderValue::from_str(id).map_err(|_| Closed::ForGood)?;
            headers.insert(LAST_EVENT_ID, id);
        }
        let to = self.link.web.client.target().clone();
        let order = HttpRequest { method: Method::GET, to, headers, body: Payload::default() };
        self.open(order).await
    }

    async fn open(&self, order: HttpRequest) -> Result<Events, Closed> {
        match self.link.web.send(order).await {
            Ok(came) => match came.body {
                Body::Events(events) => Ok(events),
                Body::Json(_) | Body::Large(..) | Body::Nothing => Err(Closed::ForGood),
            },
            Err(WebError::NotSent(_) | WebError::Blocked(_)) => Err(Closed::Absent),
            Err(WebError::Lost(_)) => Err(Closed::ForNow),
            Err(WebError::Refused(refusal)) if refusal.status >= 500 => Err(Closed::ForNow),
            Err(WebError::Refused(_) | WebError::NotMcp(_) | WebError::TooLong(_)) => {
                Err(Closed::ForGood)
            }
        }
    }

    /// Hears a legacy server that speaks unasked, if it does. `asked` is dropped when it has said
    /// whether it does.
    pub(super) async fn listen(self: Arc<Self>, asked: oneshot::Sender<()>) {
        let mut asked = Some(asked);
        let (mut mark, mut failures) = (Mark::default(), 0);
        while failures < MAX_RESUMPTIONS {
            let taken_up = self.take_up(&mark).await;
            drop(asked.take());
            match taken_up {
                Ok(events) => {
                    failures = if self.hear(events, &mut mark, &mut None).await {
                        0
                    } else {
                        failures + 1
                    };
                }
                Err(Closed::ForNow | Closed::Absent) => failures += 1,
                Err(Closed::ForGood) => return,
            }
            sleep(mark.wait().max(wait_after(failures, 0.0))).await;
        }
        debug!("the server's own stream is given up");
    }

    /// Asks a modern server to tell of changes, again whenever its stream ends. `opened` is
    /// dropped when it has said something, or says nothing.
    pub(super) async fn subscribe(
        self: Arc<Self>,
        method: &'static str,
        params: Json,
        opened: oneshot::Sender<()>,
    ) {
        let mut opened = Some(opened);
        let (mut mark, mut failures, mut lapsed) = (Mark::default(), 0, false);
        while failures < MAX_RESUMPTIONS {
            let line = request::request(self.link.requests.next_id(), method, &params);
            self.link.log_payload(&line);
            let order = self.order(self.headers(method, &params), line);
            match self.open(order).await {
                Ok(events) => {
                    if lapsed {
                        // Nobody knows what changed while nobody listened.
                        self.all_changed();
                    }
                    failures = if self.hear(events, &mut mark, &mut opened).await {
                        0
                    } else {
                        failures + 1
                    };
                    lapsed = true;
                }
                Err(Closed::ForNow | Closed::Absent) => failures += 1,
                Err(Closed::ForGood) => return,
            }
            opened = None;
            sleep(mark.wait().max(wait_after(failures, 0.0))).await;
        }
        debug!("a subscription is given up");
    }

    /// Hands on everything on a stream until it ends; whether there was anything.
    async fn hear(
        &self,
        mut events: Events,
        mark: &mut Mark,
        opened: &mut Option<oneshot::Sender<()>>,
    ) -> bool {
        let mut heard = false;
        while let Ok(Some(event)) = events.next().await {
            heard = true;
            self.take_event(&event, None).await;
            *opened = None;
        }
        mark.note(&events);
        heard
    }

    fn all_changed(&self) {
        for listing in Listing::ALL {
            (self.link.inbound.changed)(listing);
        }
    }
}

// === impl Mark ===

impl Mark {
    fn note(&mut self, events: &Events) {
        if let Some(id) = events.last_id() {
            self.id = Some(id.to_owned());
        }
        self.retry = events.retry().or(self.retry);
    }

    fn wait(&self) -> Duration {
        self.retry().unwrap_or(DEFAULT_RETRY)
    }

    /// The wait that the server asks for.
    fn retry(&self) -> Option<Duration> {
        self.retry.map(|retry| retry.min(MAX_RETRY))
    }
}
