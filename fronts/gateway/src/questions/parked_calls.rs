//! Calls of modern clients that wait for the client to return with an answer.
//!
//! A modern client can be asked something only as the answer to its request, and comes back with
//! a new one. In between its call waits here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::Unanswered;
use capstan_wire::{Json, compose, object};

use crate::exchange::Task;
use crate::exchange::event_channel::EventReceiver;
use crate::fairness::fair_share::{FairShares, Peer, Share};
use crate::questions::operator::{ClientOperator, Event, OpenQuestion};

/// Calls that wait at the same time; one more is declined.
const MAX_PARKED: usize = 1024;

/// Calls of one peer that wait at the same time; one more is declined.
const MAX_OWN: usize = 128;

/// Calls that wait for an answer, by number.
pub(crate) struct ParkedCalls {
    places: Mutex<Places>,
    shares: Arc<FairShares>,
}

#[derive(Default)]
struct Places {
    next: u64,
    calls: HashMap<u64, (ParkedCall, Share)>,
}

/// A call that waits.
pub(crate) struct ParkedCall {
    pub(crate) events: EventReceiver<Event>,
    pub(crate) task: Task,
    /// The client as the road sees it.
    pub(crate) operator: Arc<ClientOperator>,
    /// Open questions, by their keys.
    pub(crate) questions: Vec<(String, OpenQuestion)>,
    /// When it is given up.
    pub(crate) expires: Duration,
}

// === impl ParkedCalls ===

impl ParkedCalls {
    /// Keeps a call; gives it back when there is no place.
    pub(crate) fn put(&self, parked: ParkedCall, peer: Peer) -> Result<u64, Box<ParkedCall>> {
        let Some(share) = self.shares.take(peer) else { return Err(Box::new(parked)) };
        let mut places = self.places();
        places.next += 1;
        let number = places.next;
        places.calls.insert(number, (parked, share));
        drop(places);
        Ok(number)
    }

    /// Takes a call back; `None` when it was taken or given up.
    pub(crate) fn take(&self, number: u64) -> Option<ParkedCall> {
        self.places().calls.remove(&number).map(|(parked, _)| parked)
    }

    /// Gives up what has waited for too long.
    pub(crate) fn sweep(&self, now: Duration) {
        let mut places = self.places();
        let is_late = |(_, (call, _)): &(&u64, &(ParkedCall, Share))| call.expires <= now;
        let late: Vec<u64> = places.calls.iter().filter(is_late).map(|(n, _)| *n).collect();
        let late: Vec<_> = late.iter().filter_map(|n| places.calls.remove(n)).collect();
        drop(places);
        for (parked, _) in late {
            parked.decline();
        }
    }

    /// Gives up everything.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut self.places().calls);
        for (parked, _) in all.into_values() {
            parked.decline();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places().calls.len()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ParkedCalls {
    fn default() -> Self {
        Self { places: Mutex::default(), shares: FairShares::new(MAX_PARKED, MAX_OWN) }
    }
}

// === impl ParkedCall ===

impl ParkedCall {
    /// Answers what the client has an answer for. The rest stays open.
    pub(crate) fn answer(&mut self, responses: Option<&Json>) {
        let Some(responses) = responses else { return };
        let answers = object::members(responses).unwrap_or_default();
        let open = std::mem::take(&mut self.questions);
        for (key, question) in open {
            match answers.iter().find(|(name, _)| *name == key) {
                // The call may have ended meanwhile.
                Some((_, answer)) => drop(question.answer.send(Ok(answer.clone()))),
                None => self.questions.push((key, question)),
            }
        }
    }

    /// Answers no, and lets the call end by itself for as long as it wants to.
    pub(crate) fn decline(self) {
        let Self { mut events, task, questions, .. } = self;
        for (_, question) in questions {
            let message = "the client did not come back with an answer".to_owned();
            drop(question.answer.send(Err(Unanswered { code: -1, message })));
        }
        tokio::spawn(async move {
            let mut task = task;
            let ending = async {
                loop {
                    tokio::select! {
                        _ = events.next() => {}
                        () = task.ended() => return,
                    }
                }
            };
            drop(tokio::time::timeout(Duration::from_secs(5), ending).await);
        });
    }

    /// The open questions, as `inputRequests`.
    pub(crate) fn requests(&self) -> Json {
        let requests: Vec<(&str, Json)> = self
            .questions
            .iter()
            .map(|(key, open)| {
                let method = compose::string(open.asking.method());
                let request = compose::object(&[("method", &method), ("params", &open.params)]);
                (key.as_str(), request)
            })
            .collect();
        let requests: Vec<(&str, &Json)> = requests.iter().map(|(k, v)| (*k, v)).collect();
        compose::object(&requests)
    }
}
