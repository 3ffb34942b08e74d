//! Continues a modern client's call after a question.
//!
//! The client receives a sealed state with the question, and returns both the answer and the state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_model::rpc_code::INTERNAL;
use capstan_wire::protocol::INPUT_REQUIRED;
use capstan_wire::{Json, compose};

use crate::client::Client;
use crate::gateway::Gateway;
use crate::protocol::fault::Fault;
use crate::questions::operator::ClientOperator;
use crate::questions::parked_calls::ParkedCall;
use crate::questions::sealed_state::{CallDigest, SealedState, State};

/// Time that a call stays parked beyond the deadline of its questions, to recognize late answers.
const PARK_GRACE: Duration = Duration::from_secs(30);

/// Maximum number of calls that clients may continue.
const MAX_OPEN_CALLS: usize = 65_536;

/// Parks a call and answers its client with the questions.
pub(crate) struct Continuation {
    pub(crate) gateway: Arc<Gateway>,
    /// The client of this part of the call.
    pub(crate) client: Arc<Client>,
    pub(crate) call: CallDigest,
    /// The operator of the call, the same in all parts.
    pub(crate) operator: Arc<ClientOperator>,
}

// === impl Continuation ===

impl Continuation {
    /// The time when a call that is parked now expires.
    pub(crate) fn expires(&self) -> Duration {
        self.gateway.state_expires()
    }

    /// Parks a call until its client returns; the result asks the client to do so.
    pub(crate) fn park(&self, parked: ParkedCall) -> Result<Json, Fault> {
        parked.operator.pause();
        let requests = parked.requests();
        match self.gateway.park.put(parked, self.client.peer) {
            Ok(number) => {
                let caller = self.client.caller.identity();
                let state = self.gateway.seal(&caller, &self.call, State::Parked(number));
                Ok(input_required(&requests, &state))
            }
            Err(parked) => {
                parked.decline();
                Err(Fault::new(INTERNAL, "too many calls wait for an answer; try again later"))
            }
        }
    }
}

/// Calls that clients may continue, by the number in the client's state.
///
/// Each can be continued once. A call that is no longer here is made anew: it is counted and asked
/// about.
pub(crate) struct OpenCalls<T = capstan_hub::Continuation> {
    /// Number of the next state that a client carries.
    next: AtomicU64,
    calls: Mutex<BTreeMap<u64, OpenCall<T>>>,
}

struct OpenCall<T> {
    made: T,
    expires: Duration,
}

// === impl OpenCalls ===

impl<T> OpenCalls<T> {
    /// Keeps a call until it expires, and returns the number of its state. Beyond
    /// [`MAX_OPEN_CALLS`], the oldest one is dropped.
    fn put(&self, made: Option<T>, expires: Duration) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(made) = made {
            let mut calls = self.calls();
            calls.insert(number, OpenCall { made, expires });
            if calls.len() > MAX_OPEN_CALLS {
                calls.pop_first();
            }
        }
        number
    }

    /// Takes the call with this number; `None` if it was continued before.
    pub(crate) fn take(&self, number: u64) -> Option<T> {
        self.calls().remove(&number).map(|call| call.made)
    }

    /// Removes expired calls.
    pub(crate) fn sweep(&self, now: Duration) {
        self.calls().retain(|_, call| call.expires > now);
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<u64, OpenCall<T>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for OpenCalls<T> {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), calls: Mutex::default() }
    }
}

impl Gateway {
    /// The state of a call that its server continues, with the state of the server.
    pub(crate) fn elsewhere(
        &self,
        state: Option<Json>,
        made: Option<capstan_hub::Continuation>,
    ) -> State {
        State::Elsewhere { state, number: self.open_calls.put(made, self.state_expires()) }
    }

    fn state_expires(&self) -> Duration {
        self.now() + self.hub().limits().question_wait + PARK_GRACE
    }

    pub(crate) fn seal(&self, caller: &str, call: &CallDigest, state: State) -> Json {
        let expires = self.state_expires();
        let (caller, call) = (caller.to_owned(), call.as_str().to_owned());
        self.sealer.seal(&SealedState { caller, call, expires, state })
    }
}

/// Composes a result that asks the client for input.
pub(crate) fn input_required(requests: &Json, state: &Json) -> Json {
    compose::object(&[
        ("resultType", &compose::string(INPUT_REQUIRED)),
        ("inputRequests", requests),
        ("requestState", state),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_continued_once_and_before_it_expires() {
        let open = OpenCalls::default();
        let put = |made, expires| open.put(Some(made), Duration::from_secs(expires));
        let (first, second) = (put("first", 10), put("second", 20));
        assert_eq!((open.take(first), open.take(first)), (Some("first"), None));
        let third = put("third", 10);
        open.sweep(Duration::from_secs(10));
        assert_eq!((open.take(third), open.take(second)), (None, Some("second")));
    }

    #[test]
    fn the_oldest_call_makes_room() {
        let open = OpenCalls::default();
        let numbers: Vec<u64> =
            (0..=MAX_OPEN_CALLS).map(|at| open.put(Some(at), Duration::MAX)).collect();
        assert_eq!(open.calls().len(), MAX_OPEN_CALLS);
        assert_eq!((open.take(numbers[0]), open.take(numbers[1])), (None, Some(1)));
    }
}
