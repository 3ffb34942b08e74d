//! Severities of log messages, and the filter of a client.

/// Severity of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// The log messages that a client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFilter {
    Nothing,
    All,
    /// Messages of this severity or a higher one.
    From(Level),
}

// === impl Level ===

impl Level {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, word)| *word == text).map(|(level, _)| *level)
    }

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("debug", |(_, word)| word)
    }
}

// === impl LogFilter ===

impl LogFilter {
    /// True if log messages of this level pass. A message of an unknown level passes unless all
    /// are dropped.
    pub(crate) fn passes(self, level: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::From(least) => Level::parse(level).is_none_or(|level| level >= least),
        }
    }
}
