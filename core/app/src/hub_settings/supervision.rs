//! How servers are supervised, and the keys under which their lists are remembered.

use std::path::Path;

use capstan_config::{
    CliProgram, Config, Kind, OpenApi, Program, Remote, Server, ServerEntry, Start,
};
use capstan_hub::approvals::policy_version;
use capstan_hub::life::{self, IdleRule, Supervision, Terms};
use capstan_model::{ServerName, ServerState};

use crate::usage::idle_rule;
use crate::{Environment, Machine};

/// The supervision of a server in this state. For servers without a connection of their own, only
/// usage is counted.
pub fn supervision(
    environment: &Environment,
    machine: &dyn Machine,
    config: &Config,
    name: &ServerName,
    state: &ServerState,
) -> Supervision {
    // A disabled, forbidden or broken server never becomes idle.
    let entry = config.servers.get(name).filter(|_| *state == ServerState::Idle);
    let Some(entry) = entry else { return Supervision::None };
    let Ok(server) = &entry.status else { return Supervision::None };
    if server.is_per_caller() {
        // Its lists depend on the account, so that none is saved.
        return Supervision::Counted;
    }
    match server.kind {
        Kind::Stdio(_) | Kind::Http(_) | Kind::Sse(_) => {}
        Kind::Cli(_) | Kind::OpenApi(_) => return Supervision::Counted,
    }
    let start = match server.start {
        Start::Eager => life::Start::Eager,
        Start::OnList => life::Start::OnList,
        Start::Auto | Start::Lazy => life::Start::Lazy,
    };
    let key = key(environment, machine, entry, server);
    Supervision::Full(Terms { start, idle: idle_rule(server.idle), key })
}

/// The supervision of a server in a command that lists: its lists are saved, and nothing else is
/// done.
pub fn saved_lists(
    environment: &Environment,
    machine: &dyn Machine,
    config: &Config,
    name: &ServerName,
    state: &ServerState,
) -> Supervision {
    let entry = config.servers.get(name).filter(|_| *state == ServerState::Idle);
    let Some((entry, server)) = entry.and_then(|entry| Some((entry, entry.status.as_ref().ok()?)))
    else {
        return Supervision::None;
    };
    let key = key(environment, machine, entry, server);
    Supervision::Full(Terms { start: life::Start::OnDemand, idle: IdleRule::Never, key })
}

/// The key of a server's manifest, or `None` if the server cannot be started.
///
/// Everything that can make it a different server changes the key.
fn key(
    environment: &Environment,
    machine: &dyn Machine,
    entry: &ServerEntry,
    server: &Server,
) -> Option<String> {
    let mut parts = vec![
        env!("CARGO_PKG_VERSION").to_owned(),
        entry.name.to_string(),
        server.kind.as_str().to_owned(),
        server.protocol.as_str().to_owned(),
        format!("{:?} {:?} {:?}", server.elicitation, server.trust, server.networks),
    ];
    parts.extend(server.roots.iter().cloned());
    let more = match &server.kind {
        Kind::Stdio(program) => program_parts(environment, machine, program)?,
        Kind::Http(remote) | Kind::Sse(remote) => remote_parts(remote),
        Kind::Cli(cli) => {
            let mut parts = program_parts(environment, machine, &cli.program)?;
            let CliProgram { program: _, help, depth, only, presets } = cli;
            parts.push(format!("{help:?} {depth} {only:?} {presets:?}"));
            parts
        }
        Kind::OpenApi(document) => document_parts(environment, document),
    };
    Some(policy_version(parts.iter().chain(&more).map(String::as_str)))
}

/// The parts of the key for a program: its settings, its file, and the files that its arguments
/// name.
///
/// `None` if the program does not exist. Values of variables are used only in the digest.
fn program_parts(
    environment: &Environment,
    machine: &dyn Machine,
    program: &Program,
) -> Option<Vec<String>> {
    let here = &environment.current_folder;
    let cwd = program.cwd.as_ref().map_or_else(|| here.clone(), |cwd| here.join(cwd));
    let path = match program.env.get("PATH") {
        Some(path) => Some(path.reveal().clone()),
        None => environment.variable("PATH"),
    };
    let file = machine.find_program(&program.command, path.as_deref(), Some(&cwd)).ok()?;
    let mut parts = vec![program.command.clone(), version(environment, &file)?];
    for argument in &program.args {
        parts.push(argument.clone());
        // Usually a script.
        parts.push(version(environment, &cwd.join(argument)).unwrap_or_default());
    }
    // A server without a folder of its own is one server, wherever it is used.
    parts.extend(program.cwd.as_ref().map(|_| cwd.to_string_lossy().into_owned()));
    for (name, value) in &program.env {
        parts.extend([name.clone(), value.reveal().clone()]);
    }
    for name in &program.env_passthrough {
        parts.extend([name.clone(), environment.variable(name).unwrap_or_default()]);
    }
    Some(parts)
}

fn remote_parts(remote: &Remote) -> Vec<String> {
    let headers = remote.headers.iter();
    let headers = headers.flat_map(|(name, value)| [name.clone(), value.reveal().clone()]);
    let helper = remote.headers_helper.iter().flatten().cloned();
    let provider = remote.auth_provider.iter().map(|provider| format!("{provider:?}"));
    std::iter::once(remote.url.clone()).chain(headers).chain(helper).chain(provider).collect()
}

/// The parts of the key for a document: its file or address, and everything that selects its tools.
fn document_parts(environment: &Environment, openapi: &OpenApi) -> Vec<String> {
    let OpenApi { document, base_url, tags, only, except, headers, auth } = openapi;
    let file = environment.current_folder.join(document);
    let mut parts = vec![document.clone(), base_url.clone().unwrap_or_default()];
    parts.push(version(environment, &file).unwrap_or_default());
    parts.push(format!("{tags:?} {only:?} {except:?}"));
    parts.extend(headers.iter().flat_map(|(name, value)| [name.clone(), value.reveal().clone()]));
    // Credentials do not change the tools, but which of them there are does.
    parts.extend(auth.keys().cloned());
    parts
}

/// The path, size and modification time of a file, which identify its version.
fn version(environment: &Environment, path: &Path) -> Option<String> {
    let facts = environment.files.facts(path).filter(|facts| facts.is_file())?;
    let changed = facts.modified?.as_nanosecond();
    Some(format!("{} {} {changed}", path.display(), facts.size))
}

#[cfg(test)]
mod tests {
    use capstan_config::{Scope, SourceFile};

    use super::*;
    use crate::fakes::{FakeFiles, FakeMachine, environment};

    /// The key of the only server in a text, with a script of this text and a variable `TOKEN`.
    fn key_of(script: &str, token: &str, text: &str) -> Option<String> {
        let files = FakeFiles::with(&[
            ("/home/me/project/s.py", script),
            ("/bin/sh", "elf"),
            ("/bin/ls", "elf"),
        ]);
        let mut here = environment(files);
        here.variables.insert("TOKEN".to_owned(), token.to_owned());
        let loaded = here.load(&[SourceFile::new("c.toml", Scope::User, text)]);
        let entry = loaded.config.servers.values().next().unwrap();
        key(&here, &FakeMachine, entry, entry.status.as_ref().unwrap())
    }

    #[test]
    fn only_exactly_the_same_server_has_the_same_key() {
        let entry = |more: &str| format!("[servers.s]\ncommand = \"/bin/sh\"\n{more}");
        let plain = entry("args = [\"s.py\"]");
        let of = |text: &str| key_of("1", "t", text).unwrap();
        let first = of(&plain);
        assert_eq!(first, of(&format!("{plain}\ntimeout = \"5s\"\nidle_timeout = \"never\"")));
        let others = [
            entry("args = [\"s.py\", \"-v\"]"),
            entry("args = [\"s.py\"]\nenv = { A = \"1\" }"),
            entry("args = [\"s.py\"]\nenv = { A = \"2\" }"),
            entry("args = [\"s.py\"]\nenv_passthrough = [\"TOKEN\"]"),
            entry("args = [\"s.py\"]\ncwd = \"/\""),
            plain.replace("servers.s", "servers.t"),
            plain.replace("/bin/sh", "/bin/ls"),
            entry("type = \"cli\""),
            entry("type = \"cli\"\ncli_only = [\"log\"]"),
            "[servers.s]\nopenapi = \"a.yaml\"".to_owned(),
            "[servers.s]\nopenapi = \"s.py\"".to_owned(),
            "[servers.s]\nopenapi = \"a.yaml\"\nheaders = { A = \"1\" }".to_owned(),
            "[servers.s]\nurl = \"https://h/a\"".to_owned(),
            "[servers.s]\nurl = \"https://h/b\"".to_owned(),
            "[servers.s]\nurl = \"https://h/b\"\nheaders = { A = \"1\" }".to_owned(),
        ];
        let mut keys: Vec<String> = others.iter().map(|text| of(text)).collect();
        keys.push(first);
        let passed = entry("args = [\"s.py\"]\nenv_passthrough = [\"TOKEN\"]");
        keys.push(key_of("1", "another", &passed).unwrap());
        keys.push(key_of("12", "t", &plain).unwrap());
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "no two are the same");
    }

    #[test]
    fn a_missing_program_has_no_key() {
        let missing = "[servers.s]\ncommand = \"/nowhere/at-all\"";
        assert_eq!(key_of("", "", missing), None);
        let program = "[servers.s]\ntype = \"cli\"\ncommand = \"/nowhere/git\"";
        assert_eq!(key_of("", "", program), None);
    }
}
