//! Ports for the lifecycle of servers: manifests, usage counts and resource use.

use std::io;
use std::time::Duration;

use capstan_model::ServerName;

use jiff::Timestamp;

use super::{BoxFuture, StoreError};

/// A store of manifests, as text by key. If one is lost, the server has to start once more; nothing
/// else is affected.
pub trait Manifests: Send + Sync {
    /// Returns the text of a key; `None` if there is none or it cannot be read.
    fn load(&self, key: &str) -> Option<SavedText>;

    /// Saves a text under a key while it is being written. Errors are logged and otherwise ignored.
    fn save(&self, key: &str, text: &dyn Fn(&mut dyn io::Write) -> io::Result<()>);

    /// Records that the text of a key is what its server has now. Errors are ignored.
    fn confirm(&self, key: &str);
}

/// A text of [`Manifests`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedText {
    /// The text.
    pub text: Vec<u8>,
    /// The time at which it was last saved or confirmed.
    pub confirmed: Timestamp,
}

/// A log of how often servers are used. All processes of one operator share it.
pub trait UsageLog: Send + Sync {
    /// Returns the rows since the hour `since`, oldest first.
    fn read(&self, since: i64) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>>;

    /// Adds rows and deletes those before the hour `forget`, in one atomic step.
    fn add<'a>(
        &'a self,
        rows: &'a [UsageRow],
        forget: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The use of a server within one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The server.
    pub server: ServerName,
    /// The hour, counted since 1970.
    pub hour: i64,
    /// The number of calls.
    pub calls: u64,
    /// The number of seconds of that hour in which the server could have been called.
    pub seconds: u64,
}

/// The use of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Calls per hour, over the recorded hours.
    pub calls_per_hour: f64,
    /// The time until the server is stopped if it is not used; `None` if nothing would stop it.
    pub stops_in: Option<Duration>,
}

/// Resource use of a server's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Resident memory, in bytes.
    pub memory: u64,
    /// Processor time used so far.
    pub cpu: Duration,
    /// The number of processes.
    pub processes: u32,
}
