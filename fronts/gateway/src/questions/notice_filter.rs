//! Filters the notices that a client receives while its call runs.

use capstan_wire::protocol::{META_LEVEL, META_PROGRESS};
use capstan_wire::{Json, object};

use crate::client::{Client, Level};
use crate::protocol::era::Era;

/// The notices that a client asked for; set anew for each part of a call.
pub(crate) struct NoticeFilter {
    /// The token of progress notifications.
    pub(crate) token: Option<Json>,
    /// The log messages that the client receives.
    level: LogFilter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogFilter {
    Nothing,
    All,
    From(Level),
}

// === impl NoticeFilter ===

impl NoticeFilter {
    /// Drops all notices, for a client that is not connected.
    pub(crate) const NOTHING: Self = Self { token: None, level: LogFilter::Nothing };

    /// The filter that a request's `_meta` asks for.
    pub(crate) fn of(client: &Client, meta: Option<&Json>) -> Self {
        let [token, level] = match meta {
            Some(meta) => object::peek(meta, [META_PROGRESS, META_LEVEL]),
            None => [None, None],
        };
        let level = level.and_then(|level| Level::parse(&level.read::<String>().ok()?));
        let level = match (client.era, level) {
            (Era::Modern, Some(level)) => LogFilter::From(level),
            (Era::Modern, None) => LogFilter::Nothing,
            (Era::Legacy, _) => client.level().map_or(LogFilter::All, LogFilter::From),
        };
        Self { token, level }
    }

    /// True if log messages of this level pass.
    pub(crate) fn of_level(&self, level: &str) -> bool {
        match self.level {
            LogFilter::Nothing => false,
            LogFilter::All => true,
            LogFilter::From(least) => Level::parse(level).is_none_or(|level| level >= least),
        }
    }
}
