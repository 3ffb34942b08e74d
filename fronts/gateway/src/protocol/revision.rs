//! The revisions of the protocol that a client may speak.

use capstan_wire::protocol::MODERN;

use crate::protocol::era::Era;

/// A revision; newer ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05, over stdio or HTTP with server-sent events.
    V2024_11_05,
    /// 2025-03-26, the only one with batches.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the newest with a handshake.
    V2025_11_25,
    /// 2026-07-28, without a handshake.
    V2026_07_28,
}

// === impl Revision ===

impl Revision {
    /// All revisions, newest first.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The newest revision with a handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// Parses the name of a revision.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The revision of a client that initializes with this version.
    ///
    /// An unknown version gets the newest legacy one; the client decides whether to continue.
    pub(crate) fn negotiate(version: &str) -> Self {
        let known = Self::parse(version).filter(|revision| revision.era() == Era::Legacy);
        known.unwrap_or(Self::LATEST_LEGACY)
    }

    /// Parses the version of a request that describes its own client.
    pub(crate) fn parse_modern(version: &str) -> Option<Self> {
        Self::parse(version).filter(|revision| revision.era() == Era::Modern)
    }

    /// The name of the revision.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => MODERN,
        }
    }

    /// The era it belongs to.
    pub(crate) fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Era::Legacy
            }
        }
    }

    /// True if the `task` member of a call asks for a task.
    pub(crate) fn has_task_member(self) -> bool {
        self == Self::V2025_11_25
    }

    /// True if a client may send batches.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }
}
