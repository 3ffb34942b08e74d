//! Builds a hub from a configuration: backends and policy.
//!
//! `command_line` and `openapi` translate the entries of these kinds for their adapters;
//! `references` completes settings with secrets when a server connects.

mod command_line;
mod google;
mod openapi;
mod references;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use capstan_app::hub_settings::{self, Before};
use capstan_app::server_settings::{self, RootFolder};
use capstan_app::{Environment, Secrets, secrets};
use capstan_audit::JsonLines;
use capstan_config::{
    Config, Fallback, Kind, Loaded, Program, Protocol, Remote, Server, ServerEntry,
};
use capstan_http::{Credentials, FetchedHeaders};
use capstan_hub::ports::{
    AuditLog, Backend, Changes, Clock, Listener, PinStore, Settling, Unwritten,
};
use capstan_hub::{Absent, Entry, HubBuilder, Spills};
use capstan_mcp::settings::{Elicitation, LoginCredentials, Withheld, max_message};
use capstan_mcp::{
    Era, HttpSettings, Others, PerCallerServer, Prefer, Root, Settings, StdioSettings,
};
use capstan_model::{Secret, ServerState};
use futures::FutureExt as _;
use futures::future::ready;

use crate::adapters::Adapters;
use crate::answers::StateAnswers;
use crate::logins::ServerLogins;
use crate::sandbox;

/// Builds a hub; unchanged servers of `before` are taken over.
///
/// Nothing is started yet. Must be called within a tokio runtime.
pub(crate) fn hub(
    adapters: &Adapters,
    loaded: &Arc<Loaded>,
    others: Others,
    pins: Arc<dyn PinStore>,
    before: Option<&Before<'_>>,
) -> anyhow::Result<HubBuilder> {
    let environment = &*adapters.environment;
    let config = &loaded.config;
    let policy = Arc::new(hub_settings::policy(config)?);
    let mut hub = if let Some(before) = before {
        HubBuilder::after(before.hub)
    } else {
        let clock = Arc::clone(&adapters.configs.clock);
        let audit = audit(&adapters.environment, loaded, others)?;
        HubBuilder::new(Arc::clone(&policy), audit, clock)
    };
    if before.is_none() {
        let files = StateAnswers::shared(environment);
        hub.spills = Some(Arc::new(Spills::new(files, Arc::clone(&hub.clock))));
    }
    hub_settings::apply(&mut hub, loaded, policy, pins, before);
    let assembly = Assembly {
        environment: Arc::clone(&adapters.environment),
        secrets: Arc::clone(&adapters.secrets),
        loaded: Arc::clone(loaded),
        others,
        logins: Arc::clone(&adapters.logins),
        clock: Arc::clone(&adapters.configs.clock),
        keeper: own_program(environment)?,
        changes: Arc::clone(&hub.changes),
    };
    for entry in config.servers.values() {
        let is_kept = before.is_some_and(|before| before.keep(config, entry, &mut hub));
        if !is_kept {
            hub.add(assembly.backend(entry));
        }
    }
    Ok(hub)
}

fn audit(
    environment: &Arc<Environment>,
    loaded: &Arc<Loaded>,
    others: Others,
) -> anyhow::Result<Arc<dyn AuditLog>> {
    if !loaded.config.audit.enabled {
        return Ok(Arc::new(NoAudit));
    }
    match others {
        Others::Clients => Ok(Arc::new(crate::audit::open(environment, &loaded.config)?)),
        Others::People => Ok(Arc::new(LazyAudit {
            environment: Arc::clone(environment),
            loaded: Arc::clone(loaded),
            opened: OnceLock::new(),
        })),
    }
}

/// Audit log of a command, which is opened by its first call.
///
/// Commands that only read need none, and must work where nothing can be written.
struct LazyAudit {
    environment: Arc<Environment>,
    loaded: Arc<Loaded>,
    /// The log, or the reason why it cannot be written, so that no call is made.
    opened: OnceLock<Result<JsonLines, String>>,
}

// === impl LazyAudit ===

impl LazyAudit {
    fn opened(&self) -> Result<&JsonLines, Unwritten> {
        let opened = self.opened.get_or_init(|| {
            let opened = crate::audit::open(&self.environment, &self.loaded.config);
            opened.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
        });
        opened.as_ref().map_err(|reason| Unwritten(reason.clone()))
    }
}

impl AuditLog for LazyAudit {
    fn record(&self, entry: Entry) {
        if let Ok(log) = self.opened() {
            log.record(entry);
        }
    }

    fn settle(&self, entry: Entry) -> Settling {
        match self.opened() {
            Ok(log) => log.settle(entry),
            Err(unwritten) => Settling::Waits(ready(Err(unwritten)).boxed()),
        }
    }

    fn ready(&self) -> Result<(), Unwritten> {
        self.opened()?.ready()
    }

    fn withholds(&self) -> bool {
        self.opened().is_ok_and(AuditLog::withholds)
    }

    fn lost(&self) -> u64 {
        self.opened.get().and_then(|opened| opened.as_ref().ok()).map_or(0, AuditLog::lost)
    }
}

/// Audit log that records nothing, for configurations that disable it.
struct NoAudit;

impl AuditLog for NoAudit {
    fn record(&self, _: Entry) {}
}

fn own_program(environment: &Environment) -> anyhow::Result<PathBuf> {
    let program = environment.program.clone().map_err(anyhow::Error::msg);
    program.context("the path of the capstan program cannot be determined")
}

#[derive(Clone)]
struct Assembly {
    environment: Arc<Environment>,
    secrets: Arc<Secrets>,
    loaded: Arc<Loaded>,
    others: Others,
    logins: Arc<ServerLogins>,
    clock: Arc<dyn Clock>,
    keeper: PathBuf,
    changes: Arc<Changes>,
}

// === impl Assembly ===

impl Assembly {
    fn backend(&self, entry: &ServerEntry) -> Arc<dyn Backend> {
        match server_settings::startable(self.config(), entry) {
            Ok(server) if secrets::must_be_resolved(server) => references::deferred(self, entry),
            Ok(_) => self.made(entry),
            Err(absent) => Arc::new(absent),
        }
    }

    fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The server of an entry without references, except in headers of a remote server.
    fn made(&self, entry: &ServerEntry) -> Arc<dyn Backend> {
        let server = match server_settings::startable(self.config(), entry) {
            Ok(server) => server,
            Err(absent) => return Arc::new(absent),
        };
        match &server.kind {
            Kind::Stdio(program) => self.connected(self.settings(entry, server, program)),
            Kind::Http(remote) => self.reached(entry, server, remote, http(remote)),
            Kind::Sse(remote) => self.reached(entry, server, remote, sse(remote)),
            Kind::Cli(cli) => {
                let settings = self.settings(entry, server, &cli.program);
                let output = server_settings::max_output(self.config());
                command_line::server(settings, cli, &self.environment.cache, output)
            }
            Kind::OpenApi(document) => {
                let response = server_settings::max_response(self.config());
                openapi::server(entry, server, document, &self.environment.cache, response)
            }
        }
    }

    /// The remote server, with a connection for each caller if they use it with their accounts.
    fn reached(
        &self,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
        prefer: Prefer,
    ) -> Arc<dyn Backend> {
        let settings = self.remote(entry, server, remote, prefer);
        if !server.is_per_caller() {
            return self.connected(settings);
        }
        let Some(credentials) = self.logins.of_callers(self.config(), entry, server, remote) else {
            let reason = "`login` is `per-caller`, and its callers cannot log in: check `url`";
            let state = ServerState::Failed(reason.to_owned());
            return Arc::new(Absent::new(entry.name.clone(), state));
        };
        let listener: Arc<dyn Listener> = Arc::<Changes>::clone(&self.changes);
        Arc::new(PerCallerServer::new(settings, credentials, listener))
    }

    fn connected(&self, settings: impl Into<Settings>) -> Arc<dyn Backend> {
        let listener: Arc<dyn Listener> = Arc::<Changes>::clone(&self.changes);
        Arc::new(capstan_mcp::Server::heard_by(settings, listener))
    }

    fn settings(&self, entry: &ServerEntry, server: &Server, program: &Program) -> StdioSettings {
        let mut environment = server_settings::variables(&self.environment, program);
        let sandbox = server.confinement();
        let sandbox = sandbox
            .map(|sandbox| Arc::new(sandbox::sandbox(&self.environment, entry, server, sandbox)));
        for (name, value) in sandbox.iter().flat_map(|sandbox| sandbox.variables()) {
            if !program.env.contains_key(name) {
                environment.insert(name.to_owned(), Secret::new(value));
            }
        }
        StdioSettings {
            name: entry.name.clone(),
            command: program.command.clone(),
            args: program.args.clone(),
            withheld: Withheld {
                names: server_settings::withheld(&self.environment, &environment),
                given: environment.keys().cloned().collect(),
                passed: program.env_passthrough.clone(),
            },
            environment,
            secrets: server_settings::program_secrets(&self.environment, entry, program),
            cwd: program.cwd.as_ref().map(|cwd| self.environment.current_folder.join(cwd)),
            startup_timeout: server.startup_timeout,
            timeout: server.timeout,
            max_message: max_message(self.config().screen.max_answer),
            era: era(server),
            roots: self.roots(server),
            elicitation: self.elicitation(server),
            others: self.others,
            keeper: self.keeper.clone(),
            sandbox,
        }
    }

    fn remote(
        &self,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
        prefer: Prefer,
    ) -> HttpSettings {
        HttpSettings {
            name: entry.name.clone(),
            url: Secret::new(remote.url.clone()),
            headers: secrets::known_headers(server, remote),
            login: self.logins.of(self.config(), entry, server, remote).map(|login| {
                let login: Arc<dyn Credentials> = Arc::new(login);
                LoginCredentials(login)
            }),
            fetched: self.fetched(entry, server, remote),
            secrets: server_settings::remote_secrets(entry, remote),
            addresses: server_settings::addresses(entry, server),
            prefer,
            startup_timeout: server.startup_timeout,
            timeout: server.timeout,
            max_message: max_message(self.config().screen.max_answer),
            era: era(server),
            roots: self.roots(server),
            elicitation: self.elicitation(server),
            others: self.others,
        }
    }

    /// The credentials of the configuration that must be fetched.
    fn fetched(
        &self,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
    ) -> Vec<LoginCredentials> {
        let mut fetched: Vec<LoginCredentials> = Vec::new();
        if secrets::must_fetch_headers(server, remote) {
            fetched.push(LoginCredentials(Arc::new(references::headers(self, entry))));
        }
        if let Some(provider) = &remote.auth_provider {
            let tokens = google::tokens(&self.environment, &self.clock, &remote.url, provider);
            fetched.push(LoginCredentials(Arc::new(FetchedHeaders::new(Arc::new(tokens)))));
        }
        fetched
    }

    fn elicitation(&self, server: &Server) -> Elicitation {
        if server_settings::may_ask(self.config(), server) {
            Elicitation::Offered
        } else {
            Elicitation::Off
        }
    }

    fn roots(&self, server: &Server) -> Vec<Root> {
        let roots = server_settings::roots(&self.environment, server).into_iter();
        roots.map(|RootFolder { uri, name }| Root { uri, name }).collect()
    }
}

fn era(server: &Server) -> Era {
    match server.protocol {
        Protocol::Auto => Era::Auto,
        Protocol::Legacy => Era::Legacy,
        Protocol::Modern => Era::Modern,
    }
}

/// The transports to try for a server whose kind is streamable HTTP.
fn http(remote: &Remote) -> Prefer {
    match remote.fallback {
        Fallback::Never => Prefer::Http,
        Fallback::OtherTransport => Prefer::HttpThenSse,
    }
}

/// The transports to try for a server whose kind is the older HTTP with server-sent events.
fn sse(remote: &Remote) -> Prefer {
    match remote.fallback {
        Fallback::Never => Prefer::Sse,
        Fallback::OtherTransport => Prefer::SseThenHttp,
    }
}
