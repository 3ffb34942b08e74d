//! The settings of one server, from a configuration: if it may start, with which environment, roots
//! and limits, and which texts are masked in its output.
//!
//! The binary passes them to the adapter for the server's kind, and decides nothing.

mod environment;
mod sandbox;
mod secrets;

use capstan_config::{Config, Kind, Program, Server, ServerEntry};
use capstan_hub::Absent;
use capstan_model::{ServerState, Trust};
use capstan_safety::address::AddressPolicy;
use capstan_safety::command;

pub use environment::{RootFolder, roots, variables, withheld};
pub use sandbox::{SandboxFolders, sandbox_folders};
pub use secrets::{document_secrets, program_secrets, remote_secrets};

/// Maximum size of a program's output that is kept, in bytes.
const MAX_OUTPUT: u64 = 1024 * 1024;

/// Maximum size of a response of an OpenAPI service that is read, in bytes.
const MAX_RESPONSE: u64 = 4 * 1024 * 1024;

/// Upper bound on how much larger an answer is than the text in it: it contains the text twice, as
/// JSON.
const GROWTH: u64 = 4;

/// The server of an entry, if it may start; else the placeholder for it, with the reason.
///
/// # Errors
/// The placeholder.
pub fn startable<'a>(config: &Config, entry: &'a ServerEntry) -> Result<&'a Server, Absent> {
    let absent = |state| Absent::new(entry.name.clone(), state);
    if !entry.enabled {
        return Err(absent(ServerState::Disabled));
    }
    if !entry.approved {
        return Err(absent(ServerState::AwaitingApproval));
    }
    let server = entry.status.as_ref();
    let server = server.map_err(|problem| {
        absent(ServerState::Failed(match &problem.help {
            Some(help) => format!("{problem}; {help}"),
            None => problem.to_string(),
        }))
    })?;
    match forbidden(config, entry) {
        Some(rule) => Err(Absent::forbidden(entry.name.clone(), rule)),
        None => Ok(server),
    }
}

/// The rule that forbids starting the program of a server, if there is one.
pub(crate) fn forbidden(config: &Config, entry: &ServerEntry) -> Option<String> {
    let command = &program(entry.status.as_ref().ok()?)?.command;
    let allowed = config.allowed_commands(&entry.origin.file);
    let runs = command::is_allowed(command, allowed.as_deref());
    (!runs).then(|| format!("mcp.allowed_commands: `{command}` is not listed; add it there"))
}

/// The program of a server that is one.
fn program(server: &Server) -> Option<&Program> {
    match &server.kind {
        Kind::Stdio(program) => Some(program),
        Kind::Cli(cli) => Some(&cli.program),
        Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_) => None,
    }
}

/// True if the server may ask the client of a call for input.
pub fn may_ask(config: &Config, server: &Server) -> bool {
    server.elicitation.unwrap_or(config.mcp.elicitation_enabled) && server.trust != Trust::Sandboxed
}

/// The policy for the addresses at which a server may be reached.
pub fn addresses(entry: &ServerEntry, server: &Server) -> AddressPolicy {
    let (trust, networks) = (server.trust, server.networks.clone());
    let server = Some(entry.name.clone());
    AddressPolicy { server, trust, networks, ..AddressPolicy::default() }
}

/// Maximum size of the output of a command-line program, in bytes: its answer must fit.
pub fn max_output(config: &Config) -> usize {
    fitting(MAX_OUTPUT, config)
}

/// Maximum size of a response of an OpenAPI service, in bytes: its answer must fit.
pub fn max_response(config: &Config) -> usize {
    fitting(MAX_RESPONSE, config)
}

fn fitting(most: u64, config: &Config) -> usize {
    usize::try_from(most.min(config.screen.max_answer / GROWTH)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use capstan_hub::ports::Backend as _;
    use capstan_model::{ServerName, StateName};

    use super::*;
    use crate::Selection;
    use crate::fakes::{FakeFiles, configs};

    const USER: &str = "/home/me/.config/capstan/config.toml";

    #[test]
    fn only_a_valid_enabled_and_permitted_server_may_start() {
        let text = "
            [mcp]
            allowed_commands = [\"good\"]
            [servers.runs]
            command = \"good\"
            [servers.remote]
            url = \"https://example.com/mcp\"
            [servers.off]
            command = \"good\"
            enabled = false
            [servers.forbidden]
            command = \"bad\"
            [servers.program]
            kind = \"cli\"
            command = \"bad\"
            [servers.broken]
            command = \"${NOT_SET}\"
        ";
        let setup = configs(FakeFiles::with(&[(USER, text)])).load(&Selection::default()).unwrap();
        let config = &setup.loaded.config;
        for (name, expected) in [
            ("runs", None),
            ("remote", None),
            ("off", Some(StateName::Disabled)),
            ("forbidden", Some(StateName::Failed)),
            ("program", Some(StateName::Failed)),
            ("broken", Some(StateName::Failed)),
        ] {
            let entry = config.servers.get(&name.parse::<ServerName>().unwrap()).unwrap();
            let state = startable(config, entry).err().map(|absent| absent.state().name());
            assert_eq!(state, expected, "{name}");
        }
        let mut entry = config.servers.get(&"runs".parse::<ServerName>().unwrap()).unwrap().clone();
        entry.approved = false;
        let state = startable(config, &entry).err().map(|absent| absent.state().name());
        assert_eq!(state, Some(StateName::AwaitingApproval));
    }

    #[test]
    fn output_that_becomes_an_answer_fits_the_limit_of_answers() {
        for (max_answer, output, response) in
            [(u64::MAX, MAX_OUTPUT, MAX_RESPONSE), (4 << 20, 1 << 20, 1 << 20), (400, 100, 100)]
        {
            let mut config = Config::default();
            config.screen.max_answer = max_answer;
            let limits = (max_output(&config) as u64, max_response(&config) as u64);
            assert_eq!(limits, (output, response), "{max_answer}");
        }
    }
}
