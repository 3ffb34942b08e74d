//! The protocol in all of its revisions, without state.
//!
//! [`revision`] lists the revisions, and [`method`] their methods. [`era`] groups the revisions in
//! two and has all differences between these. [`messages`] parses single messages and batches,
//! [`request_meta`] reads the `_meta` of a request, [`capabilities`] translates capabilities between
//! revisions, and [`fault`] composes errors.
//!
//! **Invariant:** no other folder compares eras, except that a transport detects one.

pub mod revision;
pub(crate) mod era;
pub(crate) mod method;
pub(crate) mod messages;
pub(crate) mod request_meta;
pub(crate) mod capabilities;
pub(crate) mod log_level;
pub(crate) mod server_info;
pub(crate) mod fault;
