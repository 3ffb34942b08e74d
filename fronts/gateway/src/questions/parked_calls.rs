//! Calls of modern clients that wait for the client to return with an answer.
//!
//! A modern client receives a question only as the answer to its request, and returns with a new
//! request. Its call is parked in between.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::Unanswered;
use capstan_wire::{Json, compose, object};

use crate::exchange::Task;
use crate::exchange::event_channel::EventReceiver;
use crate::fairness::fair_share::{FairShares, Peer, Share};
use crate::questions::operator::{ClientOperator, Event, OpenQuestion};

/// Maximum number of parked calls; further ones are declined.
const MAX_PARKED: usize = 1024;

/// Maximum number of parked calls of one peer; further ones are declined.
const MAX_OWN: usize = 128;

/// Parked calls, by number.
pub(crate) struct ParkedCalls {
    table: Mutex<Table>,
    shares: Arc<FairShares>,
}

#[derive(Default)]
struct Table {
    next: u64,
    calls: HashMap<u64, (ParkedCall, Share)>,
}

/// A parked call.
pub(crate) struct ParkedCall {
    pub(crate) events: EventReceiver<Event>,
    pub(crate) task: Task,
    /// The operator of the call.
    pub(crate) operator: Arc<ClientOperator>,
    /// Open questions, by their keys.
    pub(crate) questions: Vec<(String, OpenQuestion)>,
    /// The time when it expires.
    pub(crate) expires: Duration,
}

// === impl ParkedCalls ===

impl ParkedCalls {
    /// Parks a call; returns it if there is no room.
    pub(crate) fn put(&self, parked: ParkedCall, peer: Peer) -> Result<u64, Box<ParkedCall>> {
        let Some(share) = self.shares.take(peer) else { return Err(Box::new(parked)) };
        let mut table = self.table();
        table.next += 1;
        let number = table.next;
        table.calls.insert(number, (parked, share));
        drop(table);
        Ok(number)
    }

    /// Takes a call out; `None` if it was taken before or has expired.
    pub(crate) fn take(&self, number: u64) -> Option<ParkedCall> {
        self.table().calls.remove(&number).map(|(parked, _)| parked)
    }

    /// Declines the questions of expired calls.
    pub(crate) fn sweep(&self, now: Duration) {
        let mut table = self.table();
        let is_late = |(_, (call, _)): &(&u64, &(ParkedCall, Share))| call.expires <= now;
        let late: Vec<u64> = table.calls.iter().filter(is_late).map(|(n, _)| *n).collect();
        let late: Vec<_> = late.iter().filter_map(|n| table.calls.remove(n)).collect();
        drop(table);
        for (parked, _) in late {
            parked.decline();
        }
    }

    /// Declines the questions of all calls.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut self.table().calls);
        for (parked, _) in all.into_values() {
            parked.decline();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table().calls.len()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ParkedCalls {
    fn default() -> Self {
        Self { table: Mutex::default(), shares: FairShares::new(MAX_PARKED, MAX_OWN) }
    }
}

// === impl ParkedCall ===

impl ParkedCall {
    /// Delivers the client's answers. Questions without an answer stay open.
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

    /// Declines all questions and gives the call five seconds to end by itself.
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
