//! The protocol in all of its revisions, without state.
//!
//! [`revision`] lists the revisions, [`era`] groups them in two, [`messages`] parses single
//! messages and batches, [`capabilities`] translates capabilities between revisions, and [`fault`]
//! composes errors.

pub mod revision;
pub(crate) mod era;
pub(crate) mod messages;
pub(crate) mod capabilities;
pub(crate) mod fault;
