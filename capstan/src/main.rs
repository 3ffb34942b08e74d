//! The binary: reads the environment, names the adapters, parses the command line, runs.

mod environment;
mod files;
mod machine;
mod public_probe;
mod registry;
mod sandbox;
mod secret_commands;
mod audit;
mod caller_tokens;
mod control;
mod conversations;
mod full_screen;
mod logs;
mod telemetry;
mod warm_up;
mod demo;
mod editor;
mod embeddings;
mod browser;
mod logins;
mod adapters;
mod manifests;
mod models;
mod answers;
mod passwords;
mod assemble;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use capstan_app::{
    Accounts, AppError, CallerTokens, Clients, Doctor, Gateways, PendingApprovals, Registries,
};
use capstan_cli::Services;
use capstan_cli::args::{Command, LogFormat};
use capstan_cli::conversing::{Converse, Ended};
use capstan_cli::exit::Exit;
use capstan_hub::ports::BoxFuture;
use capstan_process::keeper;
use capstan_terminal::End;
use capstan_text::conversation::Conversing;
use clap_complete::CompleteEnv;

use crate::adapters::Adapters;
use crate::audit::AuditFiles;
use crate::browser::Browsers;
use crate::caller_tokens::{AuditFileWriter, RandomTokens};
use crate::control::LocalSockets;
use crate::conversations::ConversationFolder;
use crate::editor::Editors;
use crate::files::{CacheFolder, StateFolder};
use crate::full_screen::FullScreen;
use crate::logins::ServerLogins;
use crate::machine::LocalMachine;
use crate::models::WebModels;
use crate::passwords::Argon2Passwords;
use crate::public_probe::HttpProbe;
use crate::registry::WebRegistries;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // The hub starts keepers and demo servers often, so they must start fast.
    match words.next() {
        Some(first) if first == keeper::KEEPER => return keeper::run(words),
        Some(first) if first == demo::DEMO => return demo::run(words),
        _ => {}
    }
    let exit = match run(std::env::args_os().collect()) {
        Ok(exit) => exit,
        Err(error) => {
            logs::last_words(&format!("{error:#}"));
            Exit::Internal
        }
    };
    ExitCode::from(exit.code())
}

fn run(words: Vec<OsString>) -> anyhow::Result<Exit> {
    let adapters = Arc::new(Adapters::new(environment::read()?));
    let environment = Arc::clone(&adapters.environment);
    let services = services(&adapters);
    if environment.variable("COMPLETE").is_some() {
        let command = || capstan_cli::command(&services, &words);
        let here = Some(environment.current_folder.as_path());
        if CompleteEnv::with_factory(command).try_complete(words.clone(), here)? {
            return Ok(Exit::Ok);
        }
    }
    let typed = words.first().map(|word| word.to_string_lossy());
    let typed = environment.typed_command(&typed.unwrap_or_default());
    let cli = match capstan_cli::parse(words, typed) {
        Ok(cli) => cli,
        Err(exit) => return Ok(exit),
    };
    let as_json =
        matches!(&cli.command, Command::Serve(args) if args.log_format == LogFormat::Json);
    let format = if as_json {
        logs::Format::Json
    } else if matches!(&cli.command, Command::Serve(_) | Command::Record(_)) {
        logs::Format::Timed
    } else {
        logs::Format::Short
    };
    let detail = if cli.options.debug { logs::Detail::Debug } else { logs::Detail::Usual };
    logs::start(&environment, format, detail);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(capstan_cli::run(cli, services));
    // Do not wait for a thread that still blocks on keyboard input of a person who is gone.
    runtime.shutdown_background();
    Ok(exit)
}

/// The services that the command line uses.
fn services(adapters: &Arc<Adapters>) -> Services {
    let here = || Arc::clone(&adapters.environment);
    let sockets = Arc::new(LocalSockets(here()));
    let audit = Arc::new(AuditFiles(here()));
    Services {
        configs: Arc::clone(&adapters.configs),
        hubs: Arc::<Adapters>::clone(adapters),
        clients: Arc::new(Clients { environment: here(), edits: Arc::new(StateFolder(here())) }),
        registries: Arc::new(Registries { environment: here(), client: Arc::new(WebRegistries) }),
        approvals: Arc::new(PendingApprovals {
            sockets: Arc::<LocalSockets>::clone(&sockets),
            store: Arc::<capstan_store::Database>::clone(&adapters.database),
            clock: Arc::clone(&adapters.configs.clock),
        }),
        accounts: Arc::new(Accounts {
            store: Arc::<capstan_store::Database>::clone(&adapters.database),
            passwords: Arc::new(Argon2Passwords),
            clock: Arc::clone(&adapters.configs.clock),
        }),
        tokens: Arc::new(CallerTokens {
            store: Arc::<capstan_store::Database>::clone(&adapters.database),
            source: Arc::new(RandomTokens),
            audit: Arc::new(AuditFileWriter(here())),
            clock: Arc::clone(&adapters.configs.clock),
        }),
        doctor: Arc::new(Doctor {
            configs: Arc::clone(&adapters.configs),
            audit: Arc::<AuditFiles>::clone(&audit),
            gateways: Arc::<LocalSockets>::clone(&sockets),
            machine: Arc::<LocalMachine>::clone(&adapters.machine),
            probe: Arc::new(HttpProbe),
        }),
        gateways: Arc::new(Gateways { configs: Arc::clone(&adapters.configs), sockets }),
        audit,
        addresses: Arc::<LocalMachine>::clone(&adapters.machine),
        names: Arc::<CacheFolder>::clone(&adapters.names),
        secrets: Arc::clone(&adapters.secrets),
        usage: Arc::clone(&adapters.usage),
        index: Arc::<capstan_search::SearchIndex>::clone(&adapters.index),
        serve: Arc::<Adapters>::clone(adapters),
        warm_up: Arc::<Adapters>::clone(adapters),
        logins: Arc::<ServerLogins>::clone(&adapters.logins),
        browser: Arc::new(Browsers {
            environment: here(),
            machine: Arc::<LocalMachine>::clone(&adapters.machine),
        }),
        editor: Arc::new(Editors {
            environment: here(),
            machine: Arc::<LocalMachine>::clone(&adapters.machine),
        }),
        models: Arc::new(WebModels),
        conversations: Arc::new(ConversationFolder(here())),
        converse: Arc::new(FullScreen(here())),
    }
}

impl Converse for FullScreen {
    fn converse<'a>(
        &'a self,
        conversing: Conversing<'a>,
    ) -> BoxFuture<'a, Result<Ended, AppError>> {
        Box::pin(async move {
            Ok(match self.hold(conversing).await? {
                End::ByPerson => Ended::ByPerson,
                End::BySignal => Ended::BySignal,
            })
        })
    }
}
