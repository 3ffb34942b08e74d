//! Builds a hub from a configuration: backends and policy.
//!
//! `command_line` and `openapi` translate the entries of these kinds for their adapters.

mod command_line;
mod openapi;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use capstan_app::Environment;
use capstan_app::hub_settings::{self, Before};
use capstan_config::{
    Config, Fallback, Kind, Loaded, Program, Protocol, Remote, Server, ServerEntry,
};
use capstan_hub::ports::{AuditLog, Backend, Changes, Listener};
use capstan_hub::{Absent, Entry, HubBuilder};
use capstan_mcp::settings::{Elicitation, max_message};
use capstan_mcp::{Era, HttpSettings, Others, Prefer, Root, Settings, StdioSettings};
use capstan_model::secret::{MASK, is_secret_name};
use capstan_model::{Secret, ServerState, Trust};
use capstan_safety::environment;
use capstan_safety::mask::{mask_arguments, mask_url};
use capstan_store::Database;

use crate::adapters::Adapters;

/// Builds a hub; unchanged servers of `before` are taken over.
///
/// Nothing is started yet. Must be called within a tokio runtime.
pub(crate) fn hub(
    adapters: &Adapters,
    loaded: &Loaded,
    others: Others,
    before: Option<&Before<'_>>,
) -> anyhow::Result<HubBuilder> {
    let environment = &*adapters.environment;
    let config = &loaded.config;
    let policy = Arc::new(hub_settings::policy(config)?);
    let mut hub = if let Some(before) = before {
        HubBuilder::after(before.hub)
    } else {
        let clock = Arc::clone(&adapters.configs.clock);
        HubBuilder::new(Arc::clone(&policy), audit(environment, config)?, clock)
    };
    let pins = Arc::<Database>::clone(&adapters.database);
    hub_settings::apply(&mut hub, loaded, policy, pins, before);
    let assembly = Assembly {
        environment,
        config,
        others,
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

fn audit(environment: &Environment, config: &Config) -> anyhow::Result<Arc<dyn AuditLog>> {
    if !config.audit.enabled {
        return Ok(Arc::new(NoAudit));
    }
    Ok(Arc::new(crate::audit::open(environment, config)?))
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

struct Assembly<'a> {
    environment: &'a Environment,
    config: &'a Config,
    others: Others,
    keeper: PathBuf,
    changes: Arc<Changes>,
}

// === impl Assembly ===

impl Assembly<'_> {
    fn backend(&self, entry: &ServerEntry) -> Arc<dyn Backend> {
        let absent =
            |state| -> Arc<dyn Backend> { Arc::new(Absent::new(entry.name.clone(), state)) };
        if !entry.enabled {
            return absent(ServerState::Disabled);
        }
        if !entry.approved {
            return absent(ServerState::AwaitingApproval);
        }
        let server = match &entry.status {
            Ok(server) => server,
            Err(problem) => return absent(ServerState::Failed(problem.to_string())),
        };
        match &server.kind {
            Kind::Stdio(program) => match hub_settings::forbids(self.config, entry, program) {
                Some(rule) => Arc::new(Absent::forbidden(entry.name.clone(), rule)),
                None => self.connected(self.settings(entry, server, program)),
            },
            Kind::Http(remote) => self.connected(self.remote(entry, server, remote, http(remote))),
            Kind::Sse(remote) => self.connected(self.remote(entry, server, remote, sse(remote))),
            Kind::Cli(cli) => {
                if let Some(rule) = hub_settings::forbids(self.config, entry, &cli.program) {
                    return Arc::new(Absent::forbidden(entry.name.clone(), rule));
                }
                let settings = self.settings(entry, server, &cli.program);
                let max_answer = self.config.screen.max_answer;
                command_line::server(settings, cli, &self.environment.cache, max_answer)
            }
            Kind::OpenApi(document) => {
                let (cache, max_answer) = (&self.environment.cache, self.config.screen.max_answer);
                let around = openapi::Around { cache, max_answer, url_secrets };
                openapi::server(entry, server, document, &around)
            }
        }
    }

    fn connected(&self, settings: impl Into<Settings>) -> Arc<dyn Backend> {
        let listener: Arc<dyn Listener> = Arc::<Changes>::clone(&self.changes);
        Arc::new(capstan_mcp::Server::heard_by(settings, listener))
    }

    fn settings(&self, entry: &ServerEntry, server: &Server, program: &Program) -> StdioSettings {
        StdioSettings {
            name: entry.name.clone(),
            command: program.command.clone(),
            args: program.args.clone(),
            environment: self.variables(program),
            secrets: self.secrets(entry, program),
            cwd: program.cwd.as_ref().map(|cwd| self.environment.current_folder.join(cwd)),
            startup_timeout: server.startup_timeout,
            timeout: server.timeout,
            max_message: max_message(self.config.screen.max_answer),
            era: era(server),
            roots: self.roots(server),
            elicitation: self.elicitation(server),
            others: self.others,
            keeper: self.keeper.clone(),
        }
    }

    fn remote(
        &self,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
        prefer: Prefer,
    ) -> HttpSettings {
        let headers = remote.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        let in_url = url_secrets(&remote.url).into_iter().map(Secret::new);
        HttpSettings {
            name: entry.name.clone(),
            url: Secret::new(remote.url.clone()),
            headers: headers.collect(),
            secrets: entry.secrets.iter().cloned().chain(in_url).collect(),
            addresses: openapi::addresses(entry, server),
            prefer,
            startup_timeout: server.startup_timeout,
            timeout: server.timeout,
            max_message: max_message(self.config.screen.max_answer),
            era: era(server),
            roots: self.roots(server),
            elicitation: self.elicitation(server),
            others: self.others,
        }
    }

    fn elicitation(&self, server: &Server) -> Elicitation {
        let asks = server.elicitation.unwrap_or(self.config.mcp.elicitation_enabled);
        if asks && server.trust != Trust::Sandboxed {
            Elicitation::Offered
        } else {
            Elicitation::Off
        }
    }

    /// The environment of a server: variables passed by default, passed through by name, and
    /// declared.
    fn variables(&self, program: &Program) -> BTreeMap<String, Secret<String>> {
        let asked = |name: &String| program.env_passthrough.contains(name);
        let passes = |name: &String, value: &String| {
            (environment::passes(name, value) || asked(name)) && !environment::hijacks(name)
        };
        let ours = self.environment.variables.iter().filter(|(name, value)| passes(name, value));
        let mut all: BTreeMap<String, Secret<String>> =
            ours.map(|(name, value)| (name.clone(), Secret::new(value.clone()))).collect();
        all.extend(program.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    /// Texts that are masked in the server's output: secrets that it was given or may have found.
    fn secrets(&self, entry: &ServerEntry, program: &Program) -> Vec<Secret<String>> {
        let asked = |name: &String| program.env_passthrough.contains(name) || is_secret_name(name);
        let ours = self.environment.variables.iter().filter(|(name, _)| asked(name));
        let ours = ours.map(|(_, value)| Secret::new(value.clone()));
        let words = || program.args.iter().map(String::as_str);
        let hidden = words().zip(mask_arguments(words()));
        let hidden = hidden.filter_map(|(word, shown)| hidden_part(word, &shown)).map(Secret::new);
        let given = program.env.values().chain(&entry.secrets).cloned();
        given.chain(ours).chain(hidden).collect()
    }

    /// The roots of a server: the project, if there is one, and the configured folders.
    ///
    /// Outside a project, the current folder is not a root: it has no meaning there, and a server
    /// that was given a folder would use it instead of that folder.
    fn roots(&self, server: &Server) -> Vec<Root> {
        let workspace = self.environment.workspace();
        let configured = server.roots.iter().map(|root| workspace.join(root));
        self.environment.project().into_iter().chain(configured).map(|path| root(&path)).collect()
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

/// The secret parts of a URL as written: the user information before the host, and everything else
/// that [`mask_url`] hides.
fn url_secrets(url: &str) -> Vec<String> {
    let Some((_, rest)) = url.split_once("://") else { return Vec::new() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let mut secrets = Vec::new();
    if let Some((login, _)) = authority.rsplit_once('@') {
        secrets.push(login.to_owned());
        // A user name alone is no secret, but a token may be in its place.
        secrets.push(login.split_once(':').map_or(login, |(_, password)| password).to_owned());
    }
    for part in path.split(['/', '?', '&', '#']).filter(|part| !part.is_empty()) {
        let shown = mask_url(&format!("x://h/{part}"));
        let shown = shown.strip_prefix("x://h/").unwrap_or_default();
        secrets.extend(hidden_part(part, shown));
        if let (Some((_, value)), MASK) = (part.split_once('='), shown) {
            secrets.push(value.to_owned());
        }
    }
    secrets
}

/// The part of an argument that is masked.
fn hidden_part(argument: &str, shown: &str) -> Option<String> {
    let (before, after) = shown.split_once(MASK)?;
    let part = argument.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    Some(part.unwrap_or(argument).to_owned())
}

fn root(path: &Path) -> Root {
    let name =
        path.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into());
    Root { uri: file_uri(path), name }
}

/// A path as a `file://` URI; every byte that is not known to be harmless is escaped.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hidden_part_of_an_argument_is_found() {
        let hidden = |argument, shown| hidden_part(argument, shown).unwrap_or_default();
        assert_eq!(hidden("--key=abc", "--key=***"), "abc");
        assert_eq!(hidden("abc", "***"), "abc");
        assert_eq!(hidden("https://me:pw@h", "https://***@h"), "me:pw");
        assert_eq!(hidden("u://a@h?key=b", "u://***@h?key=***"), "u://a@h?key=b");
        assert_eq!(hidden_part("--verbose", "--verbose"), None);
    }

    #[test]
    fn the_secrets_of_an_address_are_found() {
        let long = "a1".repeat(20);
        for (url, expected) in [
            ("https://h/mcp?page=2#top", &[][..]),
            ("https://me:pw@h:8080/mcp", &["me:pw", "pw"]),
            ("https://ghp_token@h", &["ghp_token", "ghp_token"]),
            ("https://h/mcp?a=b&api_key=s3cr3t&x", &["s3cr3t"]),
            (&format!("https://h/{long}/mcp"), &[&long]),
            (&format!("https://h/mcp?k={long}"), &[&format!("k={long}"), &long]),
            ("unix:///run/mcp.sock:/mcp", &[]),
        ] {
            assert_eq!(url_secrets(url), expected, "{url}");
        }
    }

    #[test]
    fn a_path_with_anything_in_it_becomes_a_uri() {
        assert_eq!(file_uri(Path::new("/a b/ü#?")), "file:///a%20b/%C3%BC%23%3F");
    }
}
