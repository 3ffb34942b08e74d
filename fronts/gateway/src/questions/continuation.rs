//! Continues a modern client's call after a question.
//!
//! The client receives a sealed state with the question, and returns both the answer and the state.

use std::sync::Arc;
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
        self.gateway.now() + self.gateway.hub().limits().question_wait + PARK_GRACE
    }

    /// Parks a call until its client returns; the result asks the client to do so.
    pub(crate) fn park(&self, parked: ParkedCall) -> Result<Json, Fault> {
        parked.operator.pause();
        let requests = parked.requests();
        match self.gateway.park.put(parked, self.client.peer) {
            Ok(number) => {
                let subject = &self.client.caller.subject;
                let state = self.gateway.seal(subject, &self.call, State::Parked(number));
                Ok(input_required(&requests, &state))
            }
            Err(parked) => {
                parked.decline();
                Err(Fault::new(INTERNAL, "too many calls wait for an answer; try again later"))
            }
        }
    }
}

/// True if an operator has approved the call.
#[derive(Clone, Copy)]
pub(crate) struct Approved(bool);

impl From<bool> for Approved {
    fn from(approved: bool) -> Self {
        Self(approved)
    }
}

impl Gateway {
    pub(crate) fn elsewhere(&self, state: Option<Json>, approved: Approved) -> State {
        State::Elsewhere { state, approved: approved.0, number: self.number_state() }
    }

    pub(crate) fn seal(&self, subject: &str, call: &CallDigest, state: State) -> Json {
        let expires = self.now() + self.hub().limits().question_wait + PARK_GRACE;
        let (subject, call) = (subject.to_owned(), call.as_str().to_owned());
        self.sealer.seal(&SealedState { subject, call, expires, state })
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
