//! The methods of the protocol, one module per family.
//!
//! [`initialize`] also answers `server/discover`; [`call`] covers tools, resources and prompts;
//! [`completion`] also handles log levels and resource subscriptions of older revisions.

pub(crate) mod initialize;
pub(crate) mod lists;
pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod tasks;
pub(crate) mod subscriptions;
