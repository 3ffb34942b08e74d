//! The methods of the protocol, one module per family.
//!
//! [`initialize`] also answers `server/discover`; [`call`] covers tools, resources and prompts;
//! [`subscriptions`] covers those of both eras; [`extensions`] forwards methods that are not the
//! protocol's own; [`refused`] records requests that get no further.

pub(crate) mod initialize;
pub(crate) mod lists;
pub(crate) mod own_tools;
pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod logging;
pub(crate) mod extensions;
pub(crate) mod tasks;
pub(crate) mod subscriptions;
pub(crate) mod refused;
