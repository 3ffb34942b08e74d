//! Questions to a client while its call runs, and the notices that it receives.
//!
//! [`operator`] represents the client in the hub; it uses [`notice_filter`], [`approval_form`] and
//! [`attribution`]. A modern client receives a question as the answer to its call: [`continuation`]
//! ends the exchange, [`parked_calls`] keeps the call, [`sealed_state`] signs the state that the
//! client returns.

pub(crate) mod operator;
pub(crate) mod notice_filter;
pub(crate) mod approval_form;
pub(crate) mod attribution;
pub(crate) mod continuation;
pub(crate) mod parked_calls;
pub(crate) mod sealed_state;
