//! Responses: whole bodies and streams of events.
//!
//! [`body`] is the body of every response, [`events`] writes a stream of events, [`resume`] keeps
//! broken streams until their client returns, and [`event_id`] encodes the position in a stream.

pub(crate) mod body;
pub(crate) mod events;
pub(crate) mod event_id;
pub(crate) mod resume;
