//! A command-line program as a server: translates its configuration for the adapter.

use std::path::Path;
use std::sync::Arc;

use capstan_command::{CommandServer, CommandSettings, Preset};
use capstan_config::CliProgram;
use capstan_hub::ports::Backend;
use capstan_mcp::StdioSettings;
use capstan_process::once::Program;

/// The server for a program that is started with `settings`. Nothing is started yet.
pub(crate) fn server(
    settings: StdioSettings,
    cli: &CliProgram,
    cache: &Path,
    max_output: usize,
) -> Arc<dyn Backend> {
    let preset = |preset: &capstan_config::Preset| Preset {
        name: preset.name.clone(),
        args: preset.args.clone(),
        description: preset.description.clone(),
        input_schema: preset.input_schema.clone(),
    };
    Arc::new(CommandServer::new(CommandSettings {
        name: settings.name,
        program: Program {
            command: settings.command,
            environment: settings.environment,
            secrets: settings.secrets,
            cwd: settings.cwd,
            keeper: settings.keeper,
            sandbox: settings.sandbox,
        },
        args: settings.args,
        help: cli.help.clone(),
        depth: cli.depth,
        only: cli.only.clone(),
        presets: cli.presets.iter().map(preset).collect(),
        startup_timeout: settings.startup_timeout,
        timeout: settings.timeout,
        output: max_output,
        cache: Some(cache.to_owned()),
    }))
}
