//! Checks of a request's head, and reading of its body.
//!
//! [`single_headers`], [`guard`] and [`cors`] run first, on every request; [`request_body`] reads
//! the message; [`header_check`], [`caller_header`] and [`trace_headers`] compare headers with the
//! message or move them into it.

pub(crate) mod single_headers;
pub(crate) mod guard;
pub(crate) mod cors;
pub(crate) mod request_body;
pub(crate) mod header_check;
pub(crate) mod caller_header;
pub(crate) mod trace_headers;
