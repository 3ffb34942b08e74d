//! The files of a log, and the ways to read them.
//!
//! [`log_files`] has the paths, [`head`] the lock with the ends of the chain, [`open_marker`] the
//! processes that write; [`lines`] reads forwards, [`reverse_reader`] backwards.

pub(crate) mod log_files;
pub(crate) mod head;
pub(crate) mod open_marker;
pub(crate) mod lines;
pub(crate) mod reverse_reader;
