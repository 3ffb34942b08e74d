//! Supervises servers: stops idle ones, pings silent ones, and counts the calls of each.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use capstan_model::ServerName;
use tracing::warn;

use super::server::{Server, Terms};
use super::usage::{KEPT_HOURS, Usage};
use crate::ports::{BoxFuture, Changes, Clock, Manifests, UsageLog, UsageRow};

/// The interval between checks of the servers.
const LOOK: Duration = Duration::from_secs(1);

/// The number of checks between saves of the usage counts.
const LOOKS_A_SAVE: u32 = 300;

const SECONDS_AN_HOUR: i64 = 3600;

/// Runs a future in the background.
pub type Spawn = Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>;

/// Supervises the servers of a hub.
pub struct Supervisor {
    pub(super) ports: SupervisorPorts,
    /// Lock order: before `used`.
    servers: Mutex<Vec<Weak<Server>>>,
    used: Mutex<HashMap<ServerName, Usage>>,
    /// Servers whose saved usage is not loaded yet.
    fresh: Mutex<HashSet<ServerName>>,
    /// The time up to which availability was counted.
    counted: Mutex<Duration>,
    closed: AtomicBool,
}

/// The extent of a server's supervision.
pub enum Supervision {
    /// None: the server is disabled, forbidden or permanently broken.
    None,
    /// Only its calls are counted. It has no connection that could be stopped.
    Counted,
    /// It is started when needed, stopped when idle, and its lists are saved.
    Full(Terms),
}

/// The ports of a supervisor.
pub struct SupervisorPorts {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Stores the manifests of servers.
    pub manifests: Arc<dyn Manifests>,
    /// Stores the usage of servers.
    pub usage: Arc<dyn UsageLog>,
    /// Receives notifications of changed lists.
    pub changes: Arc<Changes>,
    /// Runs futures in the background.
    pub spawn: Spawn,
}

// === impl Supervisor ===

impl Supervisor {
    /// Creates a supervisor. It is inactive until [`Supervisor::run`] is called.
    pub fn new(ports: SupervisorPorts) -> Arc<Self> {
        let counted = Mutex::new(ports.clock.monotonic());
        Arc::new(Self {
            ports,
            servers: Mutex::default(),
            used: Mutex::default(),
            fresh: Mutex::default(),
            counted,
            closed: AtomicBool::new(false),
        })
    }

    /// Registers a server. Its calls are counted; a fully supervised one is stopped when idle.
    pub(super) fn begin_to_count(&self, server: &Arc<Server>) {
        let mut servers = lock(&self.servers);
        servers.retain(|known| known.strong_count() > 0);
        servers.push(Arc::downgrade(server));
        let name = server.name().clone();
        if let Entry::Vacant(vacant) = lock(&self.used).entry(name.clone()) {
            vacant.insert(Usage::default());
            lock(&self.fresh).insert(name);
        }
        drop(servers);
    }

    /// Supervises the servers until the supervisor is closed.
    pub async fn run(self: Arc<Self>) {
        // Leaves the first interval to the requests that arrive at startup.
        self.ports.clock.sleep(LOOK).await;
        self.recall().await;
        let mut looks = 0_u32;
        while !self.is_closed() {
            self.ports.clock.sleep(LOOK).await;
            self.recall().await;
            self.count_time();
            let servers: Vec<_> = lock(&self.servers).iter().filter_map(Weak::upgrade).collect();
            for server in &servers {
                server.look();
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_A_SAVE) {
                self.save().await;
            }
        }
    }

    /// Ends supervision, starts no more background work, and saves the usage counts.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.save().await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn now(&self) -> Duration {
        self.ports.clock.monotonic()
    }

    /// Counts a call of a server.
    pub(super) fn called(&self, server: &ServerName) {
        let hour = self.hour();
        if let Some(usage) = lock(&self.used).get_mut(server) {
            usage.call(hour);
        }
    }

    /// Returns the number of calls per hour of a server.
    pub(super) fn calls_per_hour(&self, server: &ServerName) -> f64 {
        lock(&self.used).get(server).map_or(0.0, Usage::calls_per_hour)
    }

    /// Loads the saved usage of newly registered servers.
    async fn recall(&self) {
        let fresh = mem::take(&mut *lock(&self.fresh));
        if fresh.is_empty() {
            return;
        }
        match self.ports.usage.read(self.hour() - KEPT_HOURS).await {
            Ok(rows) => {
                let mut used = lock(&self.used);
                for row in rows.into_iter().filter(|row| fresh.contains(&row.server)) {
                    // Servers that were removed meanwhile are skipped.
                    if let Some(usage) = used.get_mut(&row.server) {
                        usage.recall(&row);
                    }
                }
            }
            Err(error) => {
                warn!(%error, cause = ?error.cause, "the usage of servers cannot be read");
            }
        }
    }

    async fn save(&self) {
        self.count_time();
        let rows = self.take_unsaved();
        if rows.is_empty() {
            return;
        }
        // Counts that cannot be saved stay valid in this process, and are not saved later.
        if let Err(error) = self.ports.usage.add(&rows, self.hour() - KEPT_HOURS).await {
            warn!(%error, cause = ?error.cause, "the usage of servers cannot be saved");
        }
    }

    /// Takes the counts to be saved, and drops the usage of servers that no longer exist.
    fn take_unsaved(&self) -> Vec<UsageRow> {
        let servers = lock(&self.servers);
        let there: Vec<_> = servers.iter().filter_map(Weak::upgrade).collect();
        let mut used = lock(&self.used);
        let rows = used.iter_mut().flat_map(|(name, usage)| usage.take_unsaved(name)).collect();
        used.retain(|name, _| there.iter().any(|server| server.name() == name));
        drop((used, servers));
        rows
    }

    fn count_time(&self) {
        let (now, hour) = (self.now(), self.hour());
        let mut counted = lock(&self.counted);
        let passed = now.saturating_sub(*counted);
        *counted = now;
        drop(counted);
        lock(&self.used).values_mut().for_each(|usage| usage.pass(hour, passed));
    }

    fn hour(&self) -> i64 {
        self.ports.clock.now().as_second().div_euclid(SECONDS_AN_HOUR)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
