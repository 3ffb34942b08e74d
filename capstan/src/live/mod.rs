//! A running gateway whose configuration can change.
//!
//! Read in this order: `follow` triggers a reload, this file builds a new hub and puts it in place
//! (`capstan_app::reload` decides whether), `retired` closes the connections that the old hub
//! leaves, `dynamic` holds servers that are added without a file, `endpoint` is how shells reach
//! the gateway.
//!
//! **Invariant:** a change takes effect as a whole or not at all. A configuration that cannot be
//! used leaves everything as it was and is reported.

mod dynamic;
mod follow;
mod retired;
mod endpoint;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_app::hub_settings::{self, Before};
use capstan_app::reload::{self, Face};
use capstan_app::{AppError, Selection, Setup};
use capstan_config::{Problem, SourceFile};
use capstan_gateway::Gateway;
use capstan_hub::ports::Listing;
use capstan_hub::{Freshness, Hub};
use capstan_mcp::Others;
use capstan_model::ServerState;
use futures::future::{join, join_all};
use indexmap::IndexMap;

pub(crate) use endpoint::Endpoint;
pub(crate) use follow::follow;

use crate::approvals;
use crate::assemble::{self, Approve};
use crate::attach;
use crate::host::{LocalHost, approve};
use crate::tending::Tending;
use crate::world::World;
use retired::Retired;

/// Time limit for a changed server to list its tools before it replaces the old one.
///
/// Until then clients see the old server's lists.
const SETTLE: Duration = Duration::from_secs(2);

/// Time without a change after which files are considered completely written.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum number of reads while files keep changing. After that, the last text read is used.
const MAX_READS: usize = 100;

/// A running gateway and the configuration in force.
pub(crate) struct Live {
    host: LocalHost,
    selection: Selection,
    face: Face,
    gateway: Arc<Gateway>,
    tending: Arc<Tending>,
    /// The configuration at startup.
    first: Setup,
    now: Mutex<Now>,
    /// Allows one change at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    retired: Arc<Retired>,
}

/// The configuration in force.
struct Now {
    setup: Setup,
    /// Servers that were added without a file, by their given names.
    dynamic: IndexMap<String, SourceFile>,
    /// The reason why the files are not in force.
    trouble: Option<String>,
    /// Project files whose latest text is not approved.
    held: Vec<String>,
    /// Keys that have changed since startup and take effect only after a restart.
    stale: Vec<&'static str>,
}

// === impl Live ===

impl Live {
    pub(crate) fn new(
        world: &Arc<World>,
        (setup, selection): (&Setup, &Selection),
        face: Face,
        gateway: &Arc<Gateway>,
        tending: Arc<Tending>,
    ) -> Arc<Self> {
        let (dynamic, trouble, stale) = (IndexMap::new(), None, Vec::new());
        let held = reload::unapproved(&setup.files);
        Arc::new(Self {
            host: LocalHost::new(Arc::clone(world)),
            selection: selection.clone(),
            face,
            gateway: Arc::clone(gateway),
            tending,
            first: setup.clone(),
            now: Mutex::new(Now { setup: setup.clone(), dynamic, trouble, held, stale }),
            turn: Arc::default(),
            retired: Arc::default(),
        })
    }

    /// Reads the configuration and puts it in force if it has changed.
    ///
    /// # Errors
    /// If it cannot be used; then everything stays as it was.
    pub(crate) async fn reload(&self) -> Result<Changed, AppError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let result = self.read_again().await;
        let trouble = result.as_ref().err().map(in_words);
        let before = std::mem::replace(&mut self.now().trouble, trouble.clone());
        match trouble {
            Some(trouble) if before.as_ref() != Some(&trouble) => {
                tracing::error!("the configuration is not reloaded: {trouble}");
            }
            None if before.is_some() => {
                tracing::warn!("the configuration is valid again and has been reloaded");
            }
            Some(_) | None => {}
        }
        drop(turn);
        result
    }

    /// The reason why the files are not in force.
    pub(crate) fn trouble(&self) -> Option<String> {
        let now = self.now();
        let held = || {
            let files = now.held.join(", ");
            (!files.is_empty()).then(|| format!("the changed file {files} is not trusted"))
        };
        now.trouble.clone().or_else(held)
    }

    /// Keys that have changed since startup and take effect only after a restart.
    pub(crate) fn needs_restart(&self) -> Vec<&'static str> {
        self.now().stale.clone()
    }

    /// The configuration in force.
    pub(crate) fn setup(&self) -> Setup {
        self.now().setup.clone()
    }

    /// The digest of the configuration in force, to compare it with others.
    pub(crate) fn digest(&self) -> String {
        attach::digest(&self.host.world, &self.selection, &reload::files(&self.setup()))
    }

    pub(crate) fn hub(&self) -> Arc<Hub> {
        self.gateway.hub()
    }

    /// Closes every connection.
    pub(crate) async fn close(&self) {
        let hub = self.hub();
        join(hub.close(), self.retired.close()).await;
    }

    async fn read_again(&self) -> Result<Changed, AppError> {
        let files = self.read_whole().await?;
        let (files, held) = match approve(&self.selection) {
            Approve::All => (files, Vec::new()),
            Approve::Approved => {
                let held = reload::unapproved(&files);
                (reload::settled(files, &self.setup()), held)
            }
        };
        self.hold(&held);
        let dynamic = self.now().dynamic.clone();
        self.change(files, dynamic).await
    }

    /// Reads the files once they are stable.
    ///
    /// A file that is being written may be empty or incomplete for a moment, which would be a
    /// different configuration.
    async fn read_whole(&self) -> Result<Vec<SourceFile>, AppError> {
        let mut read = self.read().await;
        for _ in 0..MAX_READS {
            tokio::time::sleep(QUIET).await;
            let again = self.read().await;
            match (&read, &again) {
                (Ok(files), Ok(again)) if reload::same(files, again) => break,
                (Err(failure), Err(again)) if failure.message == again.message => break,
                _ => read = again,
            }
        }
        read
    }

    async fn read(&self) -> Result<Vec<SourceFile>, AppError> {
        let (host, selection) = (self.host.clone(), self.selection.clone());
        // The files may be on a slow disk.
        let read = tokio::task::spawn_blocking(move || host.sources(&selection)).await;
        read.map_err(|error| AppError::internal(error.to_string()))?
    }

    /// Puts these files in force, together with these dynamic servers.
    async fn change(
        &self,
        files: Vec<SourceFile>,
        dynamic: IndexMap<String, SourceFile>,
    ) -> Result<Changed, AppError> {
        let before = self.setup();
        // Within a scope, a later source takes precedence. Dynamic servers have the lowest
        // precedence; among them, the one added first has the highest.
        let added = dynamic.values().rev().cloned();
        let sources: Vec<SourceFile> = added.chain(files).collect();
        if reload::same(&sources, &before.files) {
            return Ok(Changed::Nothing);
        }
        let setup = self.host.put_together(sources, &self.selection);
        reload::check(&setup, &before, self.face)?;
        let hub = self.next(&setup, &before)?;
        self.settle(&hub).await;
        reload::warn_changes(&setup, &before);
        let stale = reload::needs_restart(&self.first.loaded, &setup.loaded);
        reload::warn_restart(&stale, &self.needs_restart());
        let hub = Arc::new(hub);
        let old = self.gateway.renew(&hub);
        {
            let mut now = self.now();
            now.setup = setup;
            now.dynamic = dynamic;
            now.stale = stale;
        }
        self.retired.take(old, &hub);
        tracing::info!("the configuration has changed");
        Ok(Changed::Something)
    }

    /// Builds the hub of a configuration; unchanged servers are taken over.
    fn next(&self, setup: &Setup, before: &Setup) -> Result<Hub, AppError> {
        let (old, world) = (self.hub(), &self.host.world);
        let known = Before { hub: &old, config: &before.loaded.config };
        let manner = (approve(&self.selection), Others::Clients);
        let hub = assemble::hub_after(world, &setup.loaded, manner, Some(&known));
        let mut hub = hub.map_err(|error| AppError::config(format!("{error:#}")))?;
        hub_settings::widen(&mut hub);
        let approvals = approvals::at_the_gateway(world, &setup.loaded, &hub.clock);
        hub.approvals = Arc::new(approvals.after(old.approvals()));
        self.tending.supervise(&mut hub, &setup.loaded.config);
        Ok(hub.build())
    }

    /// Lets replacement servers list their tools, so that there is no gap in the lists.
    async fn settle(&self, hub: &Hub) {
        let old = self.hub();
        let replaced = hub.servers().filter(|name| old.has(name) && !old.shares(hub, name));
        let asked = replaced.map(|name| {
            // A server that starts with a client's first list stays idle, unless the old one was
            // connected.
            let freshness = match old.state(name) {
                Some(ServerState::Connected | ServerState::Degraded(_)) => Freshness::Known,
                _ => Freshness::Remembered,
            };
            // A server that fails or times out is shown in its actual state.
            tokio::time::timeout(SETTLE, hub.list(name, Listing::Tools, freshness))
        });
        drop(join_all(asked).await);
    }

    /// Stores the files that await approval, and warns about new ones.
    fn hold(&self, held: &[String]) {
        let before = std::mem::replace(&mut self.now().held, held.to_vec());
        for file in held.iter().filter(|file| !before.contains(file)) {
            tracing::warn!(
                "{file} has changed and is not trusted, so it is not used; review it, \
                 then run `capstan trust`"
            );
        }
    }

    /// True if a file awaits approval.
    fn awaits_approval(&self) -> bool {
        !self.now().held.is_empty()
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Nothing,
    Something,
}

/// The error with the places of its problems, as text.
fn in_words(failure: &AppError) -> String {
    if failure.problems.is_empty() {
        return failure.message.clone();
    }
    let in_words = |problem: &Problem| match &problem.help {
        Some(help) => format!("{problem} ({help})"),
        None => problem.to_string(),
    };
    let problems: Vec<String> = failure.problems.iter().map(in_words).collect();
    problems.join("; ")
}
