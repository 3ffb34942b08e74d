//! The members of a request's `_meta` that the gateway uses, read in one pass.

use capstan_model::caller::label;
use capstan_wire::protocol::{
    META_CAPABILITIES, META_CLIENT, META_LEVEL, META_PROGRESS, META_VERSION,
};
use capstan_wire::{Json, object};

use crate::protocol::log_level::Level;

/// `_meta` keys that name the agent behind a call; the first one present counts.
pub(crate) const CALLER_ID: [&str; 2] = ["capstan/caller_id", "caller_id"];

/// The members of a `_meta`, each as it was written unless its type is given.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    /// The revision that the request is written in.
    pub(crate) version: Option<Json>,
    /// The capabilities of the client.
    pub(crate) capabilities: Option<Json>,
    /// The name and version of the client.
    pub(crate) client: Option<Json>,
    /// The lowest log level that the client wants to receive.
    pub(crate) level: Option<Level>,
    /// The token for progress notifications.
    pub(crate) progress: Option<Json>,
    /// The agent that makes the call, cleaned.
    pub(crate) agent: Option<String>,
}

// === impl RequestMeta ===

impl RequestMeta {
    /// Reads a `_meta`; one that is not an object has no members.
    pub(crate) fn read(meta: &Json) -> Self {
        let [own, common] = CALLER_ID;
        let keys =
            [META_VERSION, META_CAPABILITIES, META_CLIENT, META_LEVEL, META_PROGRESS, own, common];
        let [version, capabilities, client, level, progress, own, common] =
            object::peek(meta, keys);
        let level = level.and_then(|level| Level::parse(&level.text()?));
        let agent = [own, common].into_iter().flatten().find_map(|name| label(&name.text()?));
        Self { version, capabilities, client, level, progress, agent }
    }

    /// Reads the `_meta` of params.
    pub(crate) fn of(params: &Json) -> Option<Self> {
        object::get(params, "_meta").map(|meta| Self::read(&meta))
    }
}
