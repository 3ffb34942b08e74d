//! The adapters of this process, and the hubs that are built with them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use capstan_app::hub_settings::{self, ApprovalPorts, Before, ClientTransport};
use capstan_app::{
    AppError, BuildHub, Configs, Environment, HubPurpose, SavedRules, Secrets, Setup, Usage,
};
use capstan_audit::AuditError;
use capstan_config::Loaded;
use capstan_hub::life::{Supervisor, SupervisorPorts};
use capstan_hub::ports::{BoxFuture, NewRule, NotSaved, PinStore, RuleBook, ToolIndex};
use capstan_hub::{Hub, HubBuilder};
use capstan_mcp::Others;
use capstan_search::SearchIndex;
use capstan_store::{Database, ListStore};
use capstan_vault::{KeyringMode, SystemVault};

use crate::assemble;
use crate::demo;
use crate::embeddings::embeddings;
use crate::files::{CacheFolder, StateFolder};
use crate::logins::ServerLogins;
use crate::machine::{LocalMachine, SystemClock};
use crate::manifests::ManifestFiles;
use crate::secret_commands::LocalCommands;

/// The adapters of this process, and services that more than one place needs.
#[derive(Clone)]
pub(crate) struct Adapters {
    pub(crate) environment: Arc<Environment>,
    pub(crate) configs: Arc<Configs>,
    pub(crate) database: Arc<Database>,
    /// The database, for lists only.
    lists: Arc<ListStore>,
    pub(crate) machine: Arc<LocalMachine>,
    pub(crate) names: Arc<CacheFolder>,
    pub(crate) usage: Arc<Usage>,
    /// Opened at the first secret that is read or stored.
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) logins: Arc<ServerLogins>,
    pub(crate) index: Arc<SearchIndex>,
}

/// Stores rules in the operator's configuration.
struct ConfigRules(Arc<SavedRules>);

// === impl Adapters ===

impl Adapters {
    pub(crate) fn new(environment: Environment) -> Self {
        let environment = Arc::new(environment);
        let here = || Arc::clone(&environment);
        // Opened at the first query.
        let database = Arc::new(Database::at(environment.state.join("state.db")));
        let configs = Configs {
            environment: here(),
            approvals: Arc::new(StateFolder(here())),
            clock: SystemClock::shared(),
            demo: demo::config,
        };
        let lists = Arc::new(ListStore::new(Arc::clone(&database)));
        let keyring =
            KeyringMode::from_variable(environment.variable("CAPSTAN_KEYRING").as_deref());
        let vault = SystemVault::new(environment.data.join("mcp-tokens.json"), keyring);
        let commands = Arc::new(LocalCommands(here()));
        let secrets = Arc::new(Secrets { vault: Arc::new(vault), commands });
        let logins = ServerLogins::new(Arc::clone(&secrets), Arc::clone(&configs.clock));
        let machine = LocalMachine { environment: here(), database: Arc::clone(&database) };
        Self {
            configs: Arc::new(configs),
            machine: Arc::new(machine),
            names: Arc::new(CacheFolder(here())),
            usage: Arc::new(Usage { log: Arc::<ListStore>::clone(&lists) }),
            secrets,
            logins: Arc::new(logins),
            index: Arc::new(SearchIndex::new(Some(environment.cache.join("tool-vectors")))),
            environment,
            database,
            lists,
        }
    }

    /// Builds a hub for clients, which takes over unchanged servers of `before`.
    pub(crate) fn gateway_hub(
        &self,
        setup: &Setup,
        transport: ClientTransport,
        before: Option<&Before<'_>>,
    ) -> Result<HubBuilder, AppError> {
        let loaded = &setup.loaded;
        self.index.configure(&embeddings(&loaded.config.search, &self.environment));
        let pins = Arc::<Database>::clone(&self.database);
        let hub = assemble::hub(self, loaded, Others::Clients, pins, before);
        let mut hub = hub.map_err(|error| {
            let hint = error.downcast_ref::<AuditError>().and_then(AuditError::hint);
            AppError { hint, ..AppError::config(format!("{error:#}")) }
        })?;
        hub_settings::widen(&mut hub);
        let index: Arc<dyn ToolIndex> = Arc::<SearchIndex>::clone(&self.index);
        hub.offer = Some(Arc::new(hub_settings::tool_offer(&loaded.config, index)));
        let ports = self.approval_ports(loaded, &hub);
        let approvals = hub_settings::gateway_approvals(loaded, ports, transport);
        hub.approvals = Arc::new(match before {
            Some(before) => approvals.after(before.hub.approvals()),
            None => approvals,
        });
        Ok(hub)
    }

    /// Lets the servers of a command be listed from saved lists, and saves every list that a server
    /// sends. Calls use only the lists of running servers, so saving is all they get from it.
    fn save_lists(&self, hub: &mut HubBuilder, loaded: &Loaded) {
        let supervisor = Supervisor::new(SupervisorPorts {
            clock: Arc::clone(&hub.clock),
            manifests: ManifestFiles::shared(&self.environment),
            usage: Arc::<Database>::clone(&self.database),
            changes: Arc::clone(&hub.changes),
            // A command does nothing behind its result; it saves the lists when it ends.
            spawn: Arc::new(drop),
        });
        let (environment, machine) = (&self.environment, &*self.machine);
        hub.supervise(&supervisor, |name, state| {
            hub_settings::saved_lists(environment, machine, &loaded.config, name, state)
        });
    }

    fn approval_ports(&self, loaded: &Loaded, hub: &HubBuilder) -> ApprovalPorts {
        ApprovalPorts {
            rules: Arc::new(ConfigRules(Arc::new(SavedRules::new(&self.configs, loaded)))),
            store: Arc::<Database>::clone(&self.database),
            clock: Arc::clone(&hub.clock),
            seed: RandomState::new().build_hasher().finish(),
        }
    }
}

impl BuildHub for Adapters {
    fn build(&self, setup: &Setup, purpose: HubPurpose) -> Result<Hub, AppError> {
        let loaded = &setup.loaded;
        self.index.configure(&embeddings(&loaded.config.search, &self.environment));
        let pins: Arc<dyn PinStore> = match purpose {
            HubPurpose::Calls => Arc::<Database>::clone(&self.database),
            HubPurpose::Lists => Arc::<ListStore>::clone(&self.lists),
        };
        let hub = assemble::hub(self, loaded, Others::People, pins, None);
        let mut hub = hub.map_err(|error| AppError::config(format!("{error:#}")))?;
        let ports = self.approval_ports(loaded, &hub);
        hub.approvals = Arc::new(hub_settings::command_approvals(loaded, ports));
        self.save_lists(&mut hub, loaded);
        Ok(hub.build())
    }
}

// === impl ConfigRules ===

impl RuleBook for ConfigRules {
    fn allow<'a>(&'a self, rule: &'a NewRule) -> BoxFuture<'a, Result<String, NotSaved>> {
        let (rules, rule) = (Arc::clone(&self.0), rule.clone());
        Box::pin(async move {
            // Locking files and syncing them to disk can take a while.
            match tokio::task::spawn_blocking(move || rules.add(&rule)).await {
                Ok(added) => added.map_err(|error| NotSaved { reason: error.message }),
                Err(error) => Err(NotSaved { reason: error.to_string() }),
            }
        })
    }
}
