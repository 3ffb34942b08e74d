//! What the life of servers needs from outside: what they offered is kept in manifests, how often
//! they were used in a log, and what they use up is measured.

use std::io;
use std::time::Duration;

use capstan_model::ServerName;

use super::{BoxFuture, StoreError};

/// Keeps what servers offered, as texts by key. Losing one costs a start, nothing else.
pub trait Manifests: Send + Sync {
    /// The text under a key; `None` when there is none that can be read.
    fn load(&self, key: &str) -> Option<Vec<u8>>;

    /// Keeps a text under a key, as it is written. What goes wrong is logged and no reason to stop.
    fn save(&self, key: &str, text: &dyn Fn(&mut dyn io::Write) -> io::Result<()>);
}

/// Keeps how often servers were used. Shared by every process of one operator.
pub trait UsageLog: Send + Sync {
    /// What was kept since this hour, oldest first.
    fn read(&self, since: i64) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>>;

    /// Adds to what is kept, and forgets what was before the hour `forget`. One atomic step.
    fn add<'a>(
        &'a self,
        rows: &'a [UsageRow],
        forget: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// How a server was used within one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Which server.
    pub server: ServerName,
    /// Which hour, counted since 1970.
    pub hour: i64,
    /// How often it was called.
    pub calls: u64,
    /// For how many seconds of that hour it could have been called.
    pub seconds: u64,
}

/// How a server is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Calls an hour, over what is remembered.
    pub calls_per_hour: f64,
    /// When it is stopped unless somebody uses it; `None` while nothing would stop it.
    pub stops_in: Option<Duration>,
}

/// What the processes of a server use up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Memory that is resident, in bytes.
    pub memory: u64,
    /// Processor time used so far.
    pub cpu: Duration,
    /// How many processes there are.
    pub processes: u32,
}
