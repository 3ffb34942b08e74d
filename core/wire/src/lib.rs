//! Lossless JSON-RPC: bytes in, envelopes out.
//!
//! Only the envelope of a message is interpreted. Bodies stay the bytes that the other side sent,
//! so that long numbers, the order of keys and unknown fields are forwarded as they were written.
//!
//! Read in this order: [`json`] is JSON text that is known to be well-formed, [`envelope`] parses a
//! message, [`compose`] builds one, [`object`] reads an object or replaces a member without
//! touching the rest, [`walk`] checks a reply while it is still arriving, [`rewrite`] replaces
//! strings in one, [`mod@line`] keeps a message on one line, [`duplicate`] refuses objects that two
//! readers could read differently, [`fold`] finds names that lenient readers treat as equal, and
//! [`protocol`] has the constants of MCP.
//!
//! **Invariant:** pure. No I/O, no clock, no async.

pub mod json;
pub mod envelope;
mod members;
pub mod compose;
pub mod object;
mod scan;
mod plain;
mod number;
mod check;
pub mod walk;
pub mod rewrite;
pub mod line;
pub mod duplicate;
pub mod fold;
pub mod protocol;

pub use duplicate::DuplicateKey;
pub use envelope::{EnvelopeError, MAX_REQUEST_ID, Message, Reply, RequestId, RpcError};
pub use json::{BadJson, Json};
pub use walk::{NoReply, Noted, Walk};
