//! The binary: parse, wire together, run.

mod world;
mod clock;
mod logs;
mod assemble;
mod command_line;
mod openapi;
mod addresses;
mod registries;
mod audit;
mod demo;
mod usage;
mod packages;
mod approvals;
mod pending_approvals;
mod attach;
mod doctor;
mod rules;
mod named;
mod clients;
mod host;
mod telemetry;
mod live;
mod tending;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use capstan_app::Host;
use capstan_cli::Program;
use capstan_cli::args::{Command, LogFormat};
use capstan_cli::exit::Exit;
use capstan_process::keeper;
use clap_complete::CompleteEnv;

use crate::host::LocalHost;
use crate::world::World;

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
    let world = Arc::new(World::read()?);
    let local = Arc::new(LocalHost::new(Arc::clone(&world)));
    let host: Arc<dyn Host> = Arc::<LocalHost>::clone(&local);
    if world.variable("COMPLETE").is_some() {
        let command = || capstan_cli::command(&host);
        if CompleteEnv::with_factory(command).try_complete(words.clone(), Some(world.here()))? {
            return Ok(Exit::Ok);
        }
    }
    let cli = match capstan_cli::parse(words) {
        Ok(cli) => cli,
        Err(exit) => return Ok(exit),
    };
    let format = if let Command::Serve(args) = &cli.command {
        match args.log_format {
            LogFormat::Text => logs::Format::Timed,
            LogFormat::Json => logs::Format::Json,
        }
    } else {
        logs::Format::Short
    };
    let detail = if cli.options.debug { logs::Detail::Debug } else { logs::Detail::Usual };
    logs::start(&world, format, detail);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let program = Program {
        host,
        names: Arc::<LocalHost>::clone(&local),
        usage: Arc::<LocalHost>::clone(&local),
        gateways: Arc::<LocalHost>::clone(&local),
        serve: local,
    };
    let exit = runtime.block_on(capstan_cli::run(cli, program));
    // Do not wait for a thread that still blocks on keyboard input of a person who is gone.
    runtime.shutdown_background();
    Ok(exit)
}
