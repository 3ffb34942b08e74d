//! A command-line program as a server: translates its configuration for the adapter.

use std::path::Path;
use std::sync::Arc;

use capstan_command::{CommandServer, CommandSettings, Preset};
use capstan_config::CliProgram;
use capstan_hub::ports::Backend;
use capstan_mcp::StdioSettings;
use capstan_process::once::Program;

/// Maximum size of a call's output that is kept, in bytes.
const MAX_OUTPUT: u64 = 1024 * 1024;

/// Upper bound on how much larger an answer is than the output: it contains the output twice, as
/// JSON.
const GROWTH: u64 = 4;

/// The server for a program that is started with `settings`. Nothing is started yet.
pub(crate) fn server(
    settings: StdioSettings,
    cli: &CliProgram,
    cache: &Path,
    max_answer: u64,
) -> Arc<dyn Backend> {
    let preset = |preset: &capstan_config::Preset| Preset {
        name: preset.name.clone(),
        args: preset.args.clone(),
        description: preset.description.clone(),
        input_schema: preset.input_schema.clone(),
    };
    let output = MAX_OUTPUT.min(max_answer / GROWTH);
    Arc::new(CommandServer::new(CommandSettings {
        name: settings.name,
        program: Program {
            command: settings.command,
            environment: settings.environment,
            secrets: settings.secrets,
            cwd: settings.cwd,
            keeper: settings.keeper,
        },
        args: settings.args,
        help: cli.help.clone(),
        depth: cli.depth,
        only: cli.only.clone(),
        presets: cli.presets.iter().map(preset).collect(),
        startup_timeout: settings.startup_timeout,
        timeout: settings.timeout,
        output: usize::try_from(output).unwrap_or(usize::MAX),
        cache: Some(cache.to_owned()),
    }))
}
