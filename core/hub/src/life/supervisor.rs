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

/// How often the servers are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// After so many looks, what was counted is kept.
const LOOKS_A_SAVE: u32 = 300;

const SECONDS_AN_HOUR: i64 = 3600;

/// Runs something beside everything else.
pub type Spawn = Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>;

/// Supervises the servers of a hub.
pub struct Supervisor {
    pub(super) ports: SupervisorPorts,
    /// Is locked before `used`.
    servers: Mutex<Vec<Weak<Server>>>,
    used: Mutex<HashMap<ServerName, Usage>>,
    /// Servers of which it is not known yet how they were used before.
    fresh: Mutex<HashSet<ServerName>>,
    /// Up to when time has been counted.
    counted: Mutex<Duration>,
    closed: AtomicBool,
}

/// How far a server is supervised.
pub enum Supervision {
    /// Not at all: it is switched off, forbidden or broken for good.
    None,
    /// Its calls are counted. It has no connection that could be stopped.
    Counted,
    /// It is started when needed, stopped when idle, and remembered.
    Full(Terms),
}

/// The ports of a supervisor.
pub struct SupervisorPorts {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What servers offered.
    pub manifests: Arc<dyn Manifests>,
    /// How often they were called.
    pub usage: Arc<dyn UsageLog>,
    /// Who is told of lists that have changed.
    pub changes: Arc<Changes>,
    /// Runs things in the background.
    pub spawn: Spawn,
}

// === impl Supervisor ===

impl Supervisor {
    /// Creates a supervisor; nothing happens before [`Supervisor::run`] runs.
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

    /// Counts the calls of a server, and stops it when it is idle if it is fully supervised.
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

    /// Supervises the servers until it is closed.
    pub async fn run(self: Arc<Self>) {
        // The first moment belongs to those who ask what there is.
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

    /// Starts nothing any more, and keeps what was counted.
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

    /// A server is called.
    pub(super) fn called(&self, server: &ServerName) {
        let hour = self.hour();
        if let Some(usage) = lock(&self.used).get_mut(server) {
            usage.call(hour);
        }
    }

    /// How often a server is called.
    pub(super) fn calls_per_hour(&self, server: &ServerName) -> f64 {
        lock(&self.used).get(server).map_or(0.0, Usage::calls_per_hour)
    }

    /// What was counted of new servers before they were here.
    async fn recall(&self) {
        let fresh = mem::take(&mut *lock(&self.fresh));
        if fresh.is_empty() {
            return;
        }
        match self.ports.usage.read(self.hour() - KEPT_HOURS).await {
            Ok(rows) => {
                let mut used = lock(&self.used);
                for row in rows.into_iter().filter(|row| fresh.contains(&row.server)) {
                    // Of servers that are no longer there nothing is needed.
                    if let Some(usage) = used.get_mut(&row.server) {
                        usage.recall(&row);
                    }
                }
            }
            Err(error) => warn!(%error, cause = ?error.cause, "how servers were used is not known"),
        }
    }

    async fn save(&self) {
        self.count_time();
        let rows = self.take_unsaved();
        if rows.is_empty() {
            return;
        }
        // What cannot be kept counts only until we end; that is no reason to hold on to it.
        if let Err(error) = self.ports.usage.add(&rows, self.hour() - KEPT_HOURS).await {
            warn!(%error, cause = ?error.cause, "how servers were used is not kept");
        }
    }

    /// What is to be kept; what is no longer there is then forgotten.
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
