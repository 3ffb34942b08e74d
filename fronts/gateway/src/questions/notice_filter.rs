//! What a client wants to hear while it waits for an answer.

use capstan_wire::protocol::{META_LEVEL, META_PROGRESS};
use capstan_wire::{Json, object};

use crate::client::{Client, Level};
use crate::protocol::era::Era;

/// What the client wants to hear. With each part of a call it says so anew.
pub(crate) struct NoticeFilter {
    /// By which the client knows the progress of this call.
    pub(crate) token: Option<Json>,
    /// What it wants to hear of, of what the server logs.
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
    /// That of a client that is away.
    pub(crate) const NOTHING: Self = Self { token: None, level: LogFilter::Nothing };

    /// What the `_meta` of a request says.
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

    /// Whether it wants to hear of log messages of this level.
    pub(crate) fn of_level(&self, level: &str) -> bool {
        match self.level {
            LogFilter::Nothing => false,
            LogFilter::All => true,
            LogFilter::From(least) => Level::parse(level).is_none_or(|level| level >= least),
        }
    }
}
