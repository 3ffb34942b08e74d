//! Filters the notices that a client receives while its call runs.

use capstan_wire::protocol::{META_LEVEL, META_PROGRESS};
use capstan_wire::{Json, object};

use crate::client::Client;
use crate::protocol::log_level::{Level, LogFilter};

/// The notices that a client asked for; set anew for each part of a call.
pub(crate) struct NoticeFilter {
    /// The token of progress notifications.
    pub(crate) token: Option<Json>,
    /// The log messages that the client receives.
    pub(crate) logs: LogFilter,
}

// === impl NoticeFilter ===

impl NoticeFilter {
    /// Drops all notices, for a client that is not connected.
    pub(crate) const NOTHING: Self = Self { token: None, logs: LogFilter::Nothing };

    /// The filter that a request's `_meta` asks for.
    pub(crate) fn of(client: &Client, meta: Option<&Json>) -> Self {
        let [token, level] = match meta {
            Some(meta) => object::peek(meta, [META_PROGRESS, META_LEVEL]),
            None => [None, None],
        };
        let level = level.and_then(|level| Level::parse(&level.read::<String>().ok()?));
        Self { token, logs: client.era.log_filter(level, || client.level()) }
    }
}
