//! Filters the notices that a client receives while its call runs.

use capstan_wire::Json;

use crate::client::Client;
use crate::protocol::log_level::LogFilter;
use crate::protocol::request_meta::RequestMeta;

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
    pub(crate) fn of(client: &Client, meta: Option<&RequestMeta>) -> Self {
        let token = meta.and_then(|meta| meta.progress.clone());
        let level = meta.and_then(|meta| meta.level);
        Self { token, logs: client.era.log_filter(level, || client.level()) }
    }
}
