//! Streams that outlive their connections.
//!
//! Sent events are kept for a while. A client that reconnects with the id of the last event it
//! received gets the rest. A call whose stream breaks continues. It is cancelled if its client does
//! not return in time.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::fairness::byte_budget::{Budget, Spare, Spent};
use crate::fairness::fair_share::{FairShares, Share};
pub(crate) use crate::transport::http::response::event_id::{EventId, Kind};
use crate::transport::http::response::events::{Source, pieces};
use crate::transport::http::sessions::SessionGuard;

/// Maximum number of kept streams, in total and per peer; further ones cannot be resumed.
const MAX_TRACKS: usize = 16_384;
const MAX_OWN: usize = 4096;

/// Maximum number of streams per session; beyond it, the oldest finished one is removed.
const MAX_OF_SESSION: usize = 64;

/// Maximum number of kept events per stream, and of their bytes; the oldest are removed first.
const MAX_EVENTS: usize = 256;
const MAX_BYTES: usize = 1024 * 1024;

/// Reconnection delay for clients, in milliseconds.
const RETRY: u32 = 1000;

/// All resumable streams.
pub(crate) struct Tracks {
    /// By client number, oldest first.
    table: Mutex<HashMap<u64, ClientTracks>>,
    shares: Arc<FairShares>,
    budget: Arc<Budget>,
    numbers: AtomicU64,
    /// How long a stream without a reader is kept.
    wait: Duration,
}

/// The streams of one client.
struct ClientTracks {
    tracks: Vec<Arc<Track>>,
    budget: Arc<Budget>,
}

/// One stream.
struct Track {
    kind: Kind,
    number: u64,
    state: Mutex<State>,
    budget: Arc<Budget>,
    _share: Share,
}

struct State {
    /// The source of events; `None` after its end.
    source: Option<Source>,
    /// The latest events, without a gap.
    kept: VecDeque<Event>,
    /// The number of the next event.
    next: u64,
    /// The current reader. A new reader replaces it.
    turn: u64,
    waker: Option<Waker>,
    /// The time when the last reader left.
    left: Option<Instant>,
}

#[derive(Clone)]
struct Event {
    number: u64,
    pieces: Vec<Bytes>,
    /// The share of the budget, if the event is kept.
    spent: Option<[Option<Spent>; 2]>,
}

/// Reads a stream for one connection. If it is dropped early, the stream continues without it.
pub(crate) struct Reader {
    track: Arc<Track>,
    turn: u64,
    /// The next event to send.
    at: u64,
    wait: Duration,
    session: Option<SessionGuard>,
}

/// No room for another stream; returns its parts.
pub(crate) struct Full {
    pub(crate) source: Source,
    pub(crate) session: SessionGuard,
}

// === impl Tracks ===

impl Tracks {
    pub(crate) fn new(wait: Duration) -> Self {
        Self {
            table: Mutex::default(),
            shares: FairShares::new(MAX_TRACKS, MAX_OWN),
            budget: Arc::default(),
            numbers: AtomicU64::new(1),
            wait,
        }
    }

    /// Opens a resumable stream; returns the parts if there is no room.
    pub(crate) fn open(
        &self,
        kind: Kind,
        source: Source,
        session: SessionGuard,
    ) -> Result<Reader, Box<Full>> {
        let (client, peer) = (session.client().number, session.client().peer);
        let mut table = self.table();
        let begin = || ClientTracks { tracks: Vec::new(), budget: self.budget.of_session() };
        let ClientTracks { tracks: own, budget } = table.entry(client).or_insert_with(begin);
        if own.len() >= MAX_OF_SESSION
            && let Some(over) = own.iter().position(|track| track.state().source.is_none())
        {
            own.remove(over);
        }
        let share = if own.len() < MAX_OF_SESSION { self.shares.take(peer) } else { None };
        let Some(share) = share else { return Err(Box::new(Full { source, session })) };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let state = State::new(source);
        let (state, budget) = (Mutex::new(state), Arc::clone(budget));
        let track = Arc::new(Track { kind, number, state, budget, _share: share });
        own.push(Arc::clone(&track));
        drop(table);
        Ok(Reader { track, turn: 0, at: 1, wait: self.wait, session: Some(session) })
    }

    /// Resumes one of the session's own streams after an event.
    ///
    /// Returns the session if the following events are not available.
    pub(crate) fn resume(
        &self,
        id: EventId,
        session: SessionGuard,
    ) -> Result<Reader, SessionGuard> {
        let is_it = |track: &&Arc<Track>| track.number == id.track && track.kind == id.kind;
        let track = match self.table().get(&session.client().number) {
            Some(own) => own.tracks.iter().find(is_it).cloned(),
            None => None,
        };
        let Some(track) = track.filter(|track| !track.is_old(self.wait)) else {
            return Err(session);
        };
        let mut state = track.state();
        let first = state.kept.front().map_or(state.next, |event| event.number);
        let at = id.number.saturating_add(1);
        // The events of a call must be complete; a standing stream may have a gap.
        if at > state.next || (at < first && id.kind == Kind::Call) {
            return Err(session);
        }
        if id.kind == Kind::Standing && state.source.is_none() {
            state.source = Some(Source::Inbox(session.client().open_inbox()));
        }
        let turn = state.pass_on();
        drop(state);
        Ok(Reader { track, turn, at, wait: self.wait, session: Some(session) })
    }

    /// Removes all streams of a client that is gone.
    pub(crate) fn leave(&self, client: u64) {
        let own = self.table().remove(&client);
        drop(own);
    }

    /// Drops the streams whose client has not returned in time.
    pub(crate) fn sweep(&self) {
        let mut old = Vec::new();
        self.table().retain(|_, own| {
            old.extend(own.tracks.extract_if(.., |track| track.is_old(self.wait)));
            !own.tracks.is_empty()
        });
    }

    /// Ends the streams without a reader. Their clients cannot return any more.
    pub(crate) fn give_up(&self) {
        let all: Vec<Arc<Track>> =
            self.table().values().flat_map(|own| &own.tracks).cloned().collect();
        for track in all.iter().filter(|track| track.state().left.is_some()) {
            track.end();
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, ClientTracks>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Track ===

impl Track {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_old(&self, wait: Duration) -> bool {
        self.state().left.is_some_and(|left| left.elapsed() >= wait)
    }

    fn end(&self) {
        let source = self.state().source.take();
        drop(source);
    }

    /// Marks the kept events as spare: the stream has been read completely.
    fn note_read(self: &Arc<Self>) {
        let spare: Arc<dyn Spare> = Arc::<Self>::clone(self);
        self.budget.spare(self.number, &Arc::downgrade(&spare));
    }

    /// Polls the first event from `at` on; `None` at the end, or if another reader has taken over.
    fn poll_event(&self, cx: &mut Context<'_>, turn: u64, at: u64) -> Poll<Option<Event>> {
        let mut state = self.state();
        if state.turn != turn {
            return Poll::Ready(None);
        }
        if let Some(kept) = state.kept.iter().find(|event| event.number >= at) {
            return Poll::Ready(Some(kept.clone()));
        }
        let Some(source) = &mut state.source else { return Poll::Ready(None) };
        let Poll::Ready(out) = source.poll_next(cx) else {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let Some(out) = out else {
            state.source = None;
            return Poll::Ready(None);
        };
        let number = state.next;
        let id = EventId { kind: self.kind, track: self.number, number };
        let pieces = pieces(out, Some(&id.to_text()));
        let mut event = Event { number, pieces, spent: None };
        state.keep(&mut event, &self.budget);
        drop(state);
        Poll::Ready(Some(event))
    }

    /// Reads the source without a connection, as long as the client may return.
    async fn go_on(self: Arc<Self>, turn: u64, mut at: u64, wait: Duration) {
        let rest = async {
            while let Some(event) = poll_fn(|cx| self.poll_event(cx, turn, at)).await {
                at = event.number + 1;
                if event.spent.is_none() {
                    // A gap has occurred, so the stream cannot be resumed.
                    break;
                }
            }
        };
        drop(tokio::time::timeout(wait, rest).await);
        let is_its_turn = self.state().turn == turn;
        if is_its_turn {
            self.end();
        }
    }
}

impl Spare for Track {
    fn let_go(&self) {
        // The caller holds the lock of another stream; a locked stream is left alone.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if state.source.is_none() && state.left.is_some() {
            state.kept.clear();
        }
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        self.budget.forget(self.number);
    }
}

// === impl State ===

impl State {
    fn new(source: Source) -> Self {
        let (kept, waker, left) = (VecDeque::new(), None, None);
        Self { source: Some(source), kept, next: 1, turn: 0, waker, left }
    }

    /// Hands over to the next reader.
    fn pass_on(&mut self) -> u64 {
        self.turn += 1;
        self.left = None;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        self.turn
    }

    /// Keeps an event if there is room. Kept events have no gaps.
    fn keep(&mut self, event: &mut Event, budget: &Arc<Budget>) {
        self.next = event.number + 1;
        let size = event.size();
        let mut all = size + self.kept.iter().map(Event::size).sum::<usize>();
        while all > MAX_BYTES || self.kept.len() >= MAX_EVENTS {
            let Some(oldest) = self.kept.pop_front() else { break };
            all -= oldest.size();
        }
        event.spent = if size > MAX_BYTES { None } else { Budget::take(budget, size) };
        match &event.spent {
            Some(_) => self.kept.push_back(event.clone()),
            None => self.kept.clear(),
        }
    }
}

// === impl Event ===

impl Event {
    fn size(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

// === impl Reader ===

impl Reader {
    /// An event without data that sets the resume position and the delay.
    pub(crate) fn primer(&self) -> Bytes {
        let id = EventId { kind: self.track.kind, track: self.track.number, number: 0 };
        format!("id: {}\nretry: {RETRY}\ndata: \n\n", id.to_text()).into()
    }

    /// Polls the next event, in pieces; `None` at the end, or if another reader has taken over.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        let event = self.track.poll_event(cx, self.turn, self.at);
        event.map(|event| {
            let Event { number, pieces, .. } = event?;
            self.at = number + 1;
            Some(pieces)
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.track.state();
        if state.turn != self.turn {
            return;
        }
        let turn = state.pass_on();
        state.left = Some(Instant::now());
        let (is_over, is_read) = (state.source.is_none(), self.at >= state.next);
        drop(state);
        if is_over {
            if is_read {
                self.track.note_read();
            }
            return;
        }
        let (track, at, wait) = (Arc::clone(&self.track), self.at, self.wait);
        let session = self.session.take();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                track.go_on(turn, at, wait).await;
                drop(session);
            })),
            Err(_) => track.end(),
        }
    }
}

#[cfg(test)]
mod tests;
