//! The lanes of a server: the connections that callers of different eras use.

use std::sync::Arc;

use super::Connection;

/// The key of a connection to a server. It is a wish: a server that speaks one era only, or that
/// may run only once, serves all lanes over one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lane {
    /// The era that the caller speaks; `None` for a caller that speaks none, such as a person.
    pub era: Option<Era>,
}

/// One of the two eras of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25, with a handshake.
    Legacy,
    /// From 2026-07-28 on, without one.
    Modern,
}

/// The open connections that the requests of one lane use.
#[derive(Clone)]
pub struct Connected {
    /// The connection whose lists are the server's: every decision is based on them. Lanes without
    /// a connection of their own use it for everything else, too.
    pub home: Arc<dyn Connection>,
    /// The connection that requests of the lane use, if it is another. It speaks another era.
    pub own: Option<Arc<dyn Connection>>,
}

// === impl Lane ===

impl Lane {
    /// The lane of a caller that speaks no era.
    pub const ANY: Self = Self { era: None };

    /// The lane of a caller of this era.
    pub fn of(era: Era) -> Self {
        Self { era: Some(era) }
    }
}

// === impl Connected ===

impl Connected {
    /// The connection of a server that has only one.
    pub fn one(home: Arc<dyn Connection>) -> Self {
        Self { home, own: None }
    }
}
