//! The configuration of a running gateway, which can change.
//!
//! `decisions` decides which files count and whether they may take effect, this file builds the new
//! hub and puts it in place, `dynamic` adds and removes servers without a file.
//!
//! **Invariant:** a change takes effect as a whole or not at all. A configuration that cannot be
//! used leaves everything as it was and is reported.

mod decisions;
mod dynamic;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_config::{Problem, SourceFile};
use capstan_hub::ports::{BoxFuture, Listing, ToolIndex};
use capstan_hub::{Freshness, Hub};
use capstan_model::ServerState;
use futures::future::{join_all, select};
use indexmap::IndexMap;

use crate::api::{Local, OpenConversation};
use crate::gateways::digest;
use crate::hub_settings::Before;
use crate::{AppError, Configs, NameCache, Selection, Setup, Usage};

/// Time limit for a changed server to list its tools before it replaces the old one.
///
/// Until then clients see the old server's lists.
const SETTLE: Duration = Duration::from_secs(2);

/// Time without a change after which files are considered completely written.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum number of reads while files keep changing. After that, the last text read is used.
const MAX_READS: usize = 100;

/// The transport by which clients reach a gateway; some keys apply to only one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Standard streams.
    Stdio,
    /// HTTP.
    Http,
}

/// The gateway whose configuration is reloaded.
pub trait ServedHub: Send + Sync {
    /// Builds the hub of a configuration; unchanged servers of `before` are taken over.
    fn build(&self, setup: &Setup, before: &Before<'_>) -> Result<Hub, AppError>;

    /// Serves clients by another hub, and closes the connections that only the old one has once
    /// their last call has ended.
    fn replace(&self, hub: Arc<Hub>);

    /// Reads the files of a configuration without blocking other tasks.
    fn read(&self, selection: &Selection) -> BoxFuture<'_, Result<Vec<SourceFile>, AppError>>;
}

/// The parts of a gateway that a reload needs.
pub struct Reloading {
    /// The configuration files.
    pub configs: Arc<Configs>,
    /// The gateway.
    pub served: Arc<dyn ServedHub>,
    /// The transport of its clients.
    pub transport: Transport,
    /// The cache of names for completions.
    pub names: Arc<dyn NameCache>,
    /// Call rates of servers.
    pub usage: Arc<Usage>,
    /// The index of tool search.
    pub index: Arc<dyn ToolIndex>,
}

/// The configuration of a running gateway.
pub struct LiveConfig {
    gateway: Reloading,
    selection: Selection,
    /// The configuration at startup.
    first: Setup,
    now: Mutex<Now>,
    /// Allows one change at a time.
    turn: Arc<futures::lock::Mutex<()>>,
}

/// The configuration in force, and the hub that was built from it.
struct Now {
    setup: Setup,
    hub: Arc<Hub>,
    /// Servers that were added without a file, by their given names.
    dynamic: IndexMap<String, SourceFile>,
    /// The reason why the files are not in force.
    trouble: Option<String>,
    /// Project files whose latest text is not approved.
    unapproved: Vec<String>,
    /// Keys that have changed since startup and take effect only after a restart.
    needs_restart: Vec<&'static str>,
}

/// The outcome of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The configuration is the one before.
    Nothing,
    /// Another configuration is in force.
    Something,
}

// === impl LiveConfig ===

impl LiveConfig {
    /// The configuration with which a gateway was started, and the hub that serves it.
    pub fn new(
        gateway: Reloading,
        hub: Arc<Hub>,
        setup: &Setup,
        selection: &Selection,
    ) -> Arc<Self> {
        let now = Now {
            setup: setup.clone(),
            hub,
            dynamic: IndexMap::new(),
            trouble: None,
            unapproved: decisions::unapproved(&setup.files),
            needs_restart: Vec::new(),
        };
        Arc::new(Self {
            gateway,
            selection: selection.clone(),
            first: setup.clone(),
            now: Mutex::new(now),
            turn: Arc::default(),
        })
    }

    /// Reads the configuration and puts it in force if it has changed.
    ///
    /// # Errors
    /// If it cannot be used; then everything stays as it was.
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "changes of the configuration are serialized on purpose"
    )]
    pub async fn reload(&self) -> Result<Changed, AppError> {
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
    pub fn trouble(&self) -> Option<String> {
        let now = self.now();
        let unapproved = || {
            let files = now.unapproved.join(", ");
            (!files.is_empty()).then(|| format!("the changed file {files} is not trusted"))
        };
        now.trouble.clone().or_else(unapproved)
    }

    /// Keys that have changed since startup and take effect only after a restart.
    pub fn needs_restart(&self) -> Vec<&'static str> {
        self.now().needs_restart.clone()
    }

    /// The configuration in force.
    pub fn setup(&self) -> Setup {
        self.now().setup.clone()
    }

    /// The digest of the configuration in force, to compare it with others.
    pub fn digest(&self) -> String {
        let environment = &self.gateway.configs.environment;
        digest(environment, &self.selection, &decisions::files(&self.setup()))
    }

    /// The servers of this gateway, for operations of the API.
    pub fn local(self: &Arc<Self>) -> Local {
        let ((setup, hub), selection) = (self.setup_and_hub(), &self.selection);
        Local {
            hub,
            names: (!selection.demo).then(|| Arc::clone(&self.gateway.names)),
            usage: Arc::clone(&self.gateway.usage),
            index: Arc::clone(&self.gateway.index),
            switched_off: selection.no_mcp || setup.loaded.environment.no_mcp,
            gateway: Some(Arc::clone(self)),
            conversation: OpenConversation::default(),
            setup,
        }
    }

    /// The paths at which configuration is looked for.
    pub fn paths(&self) -> Vec<PathBuf> {
        let files = self.gateway.configs.files(&self.selection);
        files.into_iter().map(|file| file.path).collect()
    }

    /// True if a project file awaits approval.
    pub fn awaits_approval(&self) -> bool {
        !self.now().unapproved.is_empty()
    }

    /// The configuration in force with its hub, read in one step: a reload may come in between two.
    fn setup_and_hub(&self) -> (Setup, Arc<Hub>) {
        let now = self.now();
        (now.setup.clone(), Arc::clone(&now.hub))
    }

    async fn read_again(&self) -> Result<Changed, AppError> {
        let files = self.read_whole().await?;
        let unapproved = decisions::unapproved(&files);
        let files = decisions::settled(files, &self.setup());
        self.set_unapproved(&unapproved);
        let dynamic = self.now().dynamic.clone();
        self.change(files, dynamic).await
    }

    /// Reads the files once they are stable.
    ///
    /// A file that is being written may be empty or incomplete for a moment, which would be a
    /// different configuration.
    async fn read_whole(&self) -> Result<Vec<SourceFile>, AppError> {
        let served = &self.gateway.served;
        let mut read = served.read(&self.selection).await;
        for _ in 0..MAX_READS {
            self.gateway.configs.clock.sleep(QUIET).await;
            let again = served.read(&self.selection).await;
            match (&read, &again) {
                (Ok(files), Ok(again)) if decisions::same(files, again) => break,
                (Err(failure), Err(again)) if failure.message == again.message => break,
                _ => read = again,
            }
        }
        read
    }

    /// Puts these files in force, together with these dynamic servers.
    async fn change(
        &self,
        files: Vec<SourceFile>,
        dynamic: IndexMap<String, SourceFile>,
    ) -> Result<Changed, AppError> {
        let (before, old) = self.setup_and_hub();
        // Within a scope, a later source takes precedence. Dynamic servers have the lowest
        // precedence; among them, the one added first has the highest.
        let added = dynamic.values().rev().cloned();
        let sources: Vec<SourceFile> = added.chain(files).collect();
        if decisions::same(&sources, &before.files) {
            return Ok(Changed::Nothing);
        }
        let setup = self.gateway.configs.merge(sources, &self.selection);
        decisions::check(&setup, &before, self.gateway.transport)?;
        let known = Before { hub: &old, config: &before.loaded.config };
        let hub = Arc::new(self.gateway.served.build(&setup, &known)?);
        settle(&old, &hub).await;
        drop(old);
        decisions::warn_changes(&setup, &before);
        let needs_restart = decisions::needs_restart(&self.first.loaded, &setup.loaded);
        decisions::warn_restart(&needs_restart, &self.needs_restart());
        {
            let mut now = self.now();
            now.setup = setup;
            now.hub = Arc::clone(&hub);
            now.dynamic = dynamic;
            now.needs_restart = needs_restart;
        }
        self.gateway.served.replace(hub);
        tracing::info!("the configuration has changed");
        Ok(Changed::Something)
    }

    /// Stores the files that await approval, and warns about new ones.
    fn set_unapproved(&self, files: &[String]) {
        let before = std::mem::replace(&mut self.now().unapproved, files.to_vec());
        for file in files.iter().filter(|file| !before.contains(file)) {
            tracing::warn!(
                "{file} has changed and is not trusted, so it is not used; review it, \
                 then run `capstan trust`"
            );
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets replacement servers list their tools, so that there is no gap in the lists.
async fn settle(old: &Hub, new: &Hub) {
    let replaced = new.servers().filter(|name| old.has(name) && !old.shares(new, name));
    let asked = replaced.map(|name| {
        // A server that starts with a client's first list stays idle, unless the old one was
        // connected.
        let freshness = match old.state(name) {
            Some(ServerState::Connected | ServerState::Degraded(_)) => Freshness::Known,
            _ => Freshness::Remembered,
        };
        // A server that fails or times out is shown in its actual state.
        let listed = Box::pin(new.list(name, Listing::Tools, freshness));
        select(listed, new.clock().sleep(SETTLE))
    });
    drop(join_all(asked).await);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{FakeFiles, NoEntries, NoIndex, configs, hub};

    const USER: &str = "/home/me/.config/capstan/config.toml";
    const PROJECT: &str = "/home/me/project/.capstan/config.toml";

    /// A gateway without servers that counts its hubs.
    struct Served {
        configs: Arc<Configs>,
        replaced: Mutex<usize>,
        /// Runs while a hub is replaced.
        meanwhile: Mutex<Option<Box<dyn Fn() + Send>>>,
    }

    impl ServedHub for Served {
        fn build(&self, setup: &Setup, _: &Before<'_>) -> Result<Hub, AppError> {
            Ok(hub(setup))
        }

        fn replace(&self, _: Arc<Hub>) {
            *self.replaced.lock().unwrap() += 1;
            if let Some(meanwhile) = &*self.meanwhile.lock().unwrap() {
                meanwhile();
            }
        }

        fn read(&self, selection: &Selection) -> BoxFuture<'_, Result<Vec<SourceFile>, AppError>> {
            Box::pin(futures::future::ready(self.configs.sources(selection)))
        }
    }

    impl NameCache for NoEntries {
        fn remember(&self, _: capstan_model::Kind, _: &capstan_model::ServerName, _: Vec<String>) {}

        fn remembered(&self, _: capstan_model::Kind) -> Vec<(String, Vec<String>)> {
            Vec::new()
        }

        fn remember_arguments(
            &self,
            _: capstan_model::Kind,
            _: Vec<(capstan_model::ServerName, crate::ItemArguments)>,
        ) {
        }

        fn arguments(&self, _: capstan_model::Kind, _: &str, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    /// A gateway that was started with these files.
    fn start(files: &[(&str, &str)]) -> (Arc<FakeFiles>, Arc<Served>, Arc<LiveConfig>) {
        let files = FakeFiles::with(files);
        let configs = Arc::new(configs(Arc::clone(&files)));
        let selection = Selection::default();
        let setup = configs.load(&selection).unwrap();
        let (replaced, meanwhile) = (Mutex::new(0), Mutex::default());
        let served = Arc::new(Served { configs: Arc::clone(&configs), replaced, meanwhile });
        let reloading = Reloading {
            configs,
            served: Arc::<Served>::clone(&served),
            transport: Transport::Stdio,
            names: Arc::new(NoEntries),
            usage: Arc::new(Usage { log: Arc::new(NoEntries) }),
            index: Arc::new(NoIndex),
        };
        (files, served, LiveConfig::new(reloading, Arc::new(hub(&setup)), &setup, &selection))
    }

    fn write(files: &FakeFiles, path: &str, text: &str) {
        crate::Files::write(files, path.as_ref(), text.as_bytes()).unwrap();
    }

    fn replaced(served: &Served) -> usize {
        *served.replaced.lock().unwrap()
    }

    #[tokio::test]
    async fn only_a_changed_configuration_replaces_the_hub() {
        let (files, served, live) = start(&[(USER, "[servers.s]\ncommand = \"a\"")]);
        assert_eq!(live.reload().await.unwrap(), Changed::Nothing);
        let before = live.digest();
        write(&files, USER, "[servers.s]\ncommand = \"b\"");
        assert_eq!(live.reload().await.unwrap(), Changed::Something);
        assert_eq!(replaced(&served), 1);
        assert_ne!(live.digest(), before);
    }

    #[tokio::test]
    async fn operations_get_a_hub_and_the_configuration_that_it_was_built_from() {
        let quota = |calls| format!("[tools]\nmax_tool_calls_per_session = {calls}");
        let (files, served, live) = start(&[(USER, &quota(1))]);
        let pair = |live: &Arc<LiveConfig>| {
            let Local { setup, hub, .. } = live.local();
            (setup.loaded.config.tools.max_tool_calls_per_session, hub.limits().quota)
        };
        assert_eq!(pair(&live), (Some(1), Some(1)));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (found, asked) = (Arc::clone(&seen), Arc::clone(&live));
        let look = move || found.lock().unwrap().push(pair(&asked));
        *served.meanwhile.lock().unwrap() = Some(Box::new(look));
        write(&files, USER, &quota(2));
        live.reload().await.unwrap();
        let seen = seen.lock().unwrap().clone();
        assert!(seen.iter().all(|(setup, hub)| setup == hub) && seen.len() == 1, "{seen:?}");
        assert_eq!(pair(&live), (Some(2), Some(2)));
    }

    #[tokio::test]
    async fn a_configuration_that_cannot_be_used_leaves_everything_as_it_was() {
        let (files, served, live) = start(&[(USER, "[servers.s]\ncommand = \"a\"")]);
        let before = live.digest();
        write(&files, USER, "[servers.s");
        assert!(live.reload().await.is_err());
        assert!(live.trouble().is_some());
        assert_eq!((replaced(&served), live.digest()), (0, before));
        write(&files, USER, "[servers.s]\ncommand = \"a\"");
        assert_eq!(live.reload().await.unwrap(), Changed::Nothing);
        assert_eq!(live.trouble(), None);
    }

    #[tokio::test]
    async fn a_project_file_that_changes_without_approval_keeps_its_approved_text() {
        let text = "[servers.s]\ncommand = \"a\"";
        let (files, served, live) = start(&[(PROJECT, text)]);
        let file = served.configs.target(None);
        served.configs.approve(&file, text).unwrap();
        live.reload().await.unwrap();
        assert!(!live.awaits_approval());
        write(&files, PROJECT, "[servers.s]\ncommand = \"b\"");
        assert_eq!(live.reload().await.unwrap(), Changed::Nothing);
        assert!(live.awaits_approval() && live.trouble().is_some());
        assert!(live.setup().files.iter().all(|file| file.approved && file.text == text));
    }

    #[tokio::test]
    async fn keys_that_a_gateway_reads_at_startup_wait_for_a_restart() {
        let (files, _, live) = start(&[(USER, "")]);
        write(&files, USER, "[gateway]\nlisten = \"127.0.0.1:9\"");
        live.reload().await.unwrap();
        assert_eq!(live.needs_restart(), ["gateway.listen"]);
    }

    #[tokio::test]
    async fn a_server_without_a_file_is_added_and_removed_and_never_replaces_another() {
        let (_, _, live) = start(&[(USER, "[servers.s]\ncommand = \"a\"")]);
        let entry = |name: &str| format!("[servers.{name}]\ncommand = \"x\"");
        assert!(live.add("s", entry("s")).await.is_err(), "a file has it");
        assert_eq!(live.add("t", entry("t")).await.unwrap().as_str(), "t");
        assert!(live.add("t", entry("t")).await.is_err(), "added twice");
        assert!(live.remove("s").await.is_err(), "a file has it");
        assert_eq!(live.remove("t").await.unwrap(), "t");
        assert!(live.remove("t").await.is_err());
    }

    #[tokio::test]
    async fn servers_without_a_file_are_limited_and_follow_the_rules_for_commands() {
        let rules = "[mcp]\nmax_dynamic_servers = 1\nallowed_commands = [\"x\"]";
        let (_, _, live) = start(&[(USER, rules)]);
        let entry =
            |name: &str, command: &str| format!("[servers.{name}]\ncommand = \"{command}\"");
        let denied = live.add("a", entry("a", "y")).await.unwrap_err();
        assert_eq!(denied.kind, crate::ErrorKind::Denied);
        live.add("a", entry("a", "x")).await.unwrap();
        let many = live.add("b", entry("b", "x")).await.unwrap_err();
        assert_eq!(many.kind, crate::ErrorKind::Quota);
    }
}
