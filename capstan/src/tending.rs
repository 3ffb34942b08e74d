//! Supervises the servers of a gateway, and computes the keys of their manifests.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use capstan_config::{Config, Idle, IdlePolicy, Kind, Program, Remote, Server, ServerEntry, Start};
use capstan_files::Cache;
use capstan_hub::HubBuilder;
use capstan_hub::approvals::policy_version;
use capstan_hub::life::{IdleRule, Spawn, Supervision, Supervisor, SupervisorPorts, Terms};
use capstan_hub::ports::{Changes, Clock, Manifests};
use capstan_model::Secret;
use capstan_model::ServerState;
use capstan_process::once::Program as Found;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::world::World;

/// The folder of manifests in the cache.
const FOLDER: &str = "manifests";

/// Maximum size of a manifest, in bytes.
const MAX_SIZE: u64 = 8 * 1024 * 1024;

/// Maximum number of stored manifests.
const MAX_FILES: usize = 500;

/// Time limit for storing usage counters at shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// Supervises the servers of a gateway.
pub(crate) struct Tending {
    world: Arc<World>,
    supervisor: Arc<Supervisor>,
    task: JoinHandle<()>,
}

/// The current folder and environment.
#[derive(Clone, Copy)]
struct Here<'a> {
    folder: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Stores manifests in files.
struct Files(Cache);

// === impl Tending ===

impl Tending {
    /// Starts the supervision. Must be called within a tokio runtime.
    pub(crate) fn start(
        world: &Arc<World>,
        clock: &Arc<dyn Clock>,
        changes: &Arc<Changes>,
    ) -> Self {
        let spawn: Spawn = Arc::new(|task| drop(tokio::spawn(task)));
        let supervisor = Supervisor::new(SupervisorPorts {
            clock: Arc::clone(clock),
            manifests: Arc::new(Files(Cache::new(world.cache().join(FOLDER), MAX_SIZE, MAX_FILES))),
            usage: world.database(),
            changes: Arc::clone(changes),
            spawn,
        });
        let task = tokio::spawn(Arc::clone(&supervisor).run());
        Self { world: Arc::clone(world), supervisor, task }
    }

    /// Supervises the new servers of a hub. For servers without a connection of their own, only
    /// usage is counted.
    pub(crate) fn supervise(&self, hub: &mut HubBuilder, config: &Config) {
        hub.supervise(&self.supervisor, |name, state| match config.servers.get(name) {
            // A disabled, forbidden or broken server never becomes idle.
            Some(entry) if *state == ServerState::Idle => self.supervision(entry),
            Some(_) | None => Supervision::None,
        });
    }

    fn supervision(&self, entry: &ServerEntry) -> Supervision {
        let Ok(server) = &entry.status else { return Supervision::None };
        match server.kind {
            Kind::Stdio(_) | Kind::Http(_) | Kind::Sse(_) => {}
            Kind::Cli(_) | Kind::OpenApi(_) => return Supervision::Counted,
        }
        let variable = |name: &str| self.world.variable(name);
        let key = key(Here { folder: self.world.here(), variable: &variable }, entry, server);
        let start = match server.start {
            Start::Eager => capstan_hub::life::Start::Eager,
            Start::OnList => capstan_hub::life::Start::OnList,
            Start::Auto | Start::Lazy => capstan_hub::life::Start::Lazy,
        };
        Supervision::Full(Terms { start, idle: idle_rule(server.idle), key })
    }

    /// Ends the supervision and stores the usage counters.
    pub(crate) async fn end(&self) {
        self.task.abort();
        if tokio::time::timeout(GRACE, self.supervisor.close()).await.is_err() {
            warn!("the usage of servers was not saved in time");
        }
    }
}

// === impl Files ===

impl Manifests for Files {
    fn load(&self, key: &str) -> Option<Vec<u8>> {
        self.0.load(key)
    }

    fn save(&self, key: &str, text: &dyn Fn(&mut dyn io::Write) -> io::Result<()>) {
        if let Err(error) = self.0.save(key, text) {
            warn!(%error, "the lists of a server were not saved");
        }
    }
}

/// The idle rule of a server's entry.
pub(crate) fn idle_rule(idle: Idle) -> IdleRule {
    match idle.policy {
        IdlePolicy::Adaptive => IdleRule::Adaptive { min: idle.min, max: idle.max },
        IdlePolicy::Never => IdleRule::Never,
        IdlePolicy::After(time) => IdleRule::After(time),
    }
}

/// The key of a server's manifest, or `None` if the server cannot be started.
///
/// Everything that can make it a different server changes the key.
fn key(here: Here<'_>, entry: &ServerEntry, server: &Server) -> Option<String> {
    let mut parts = vec![
        env!("CARGO_PKG_VERSION").to_owned(),
        entry.name.to_string(),
        server.kind.as_str().to_owned(),
        server.protocol.as_str().to_owned(),
        format!("{:?} {:?} {:?}", server.elicitation, server.trust, server.networks),
    ];
    parts.extend(server.roots.iter().cloned());
    let more = match &server.kind {
        Kind::Stdio(program) => program_parts(here, program)?,
        Kind::Http(remote) | Kind::Sse(remote) => remote_parts(remote),
        Kind::Cli(_) | Kind::OpenApi(_) => return None,
    };
    Some(policy_version(parts.iter().chain(&more).map(String::as_str)))
}

/// The parts of the key for a program: its settings, its file, and the files that its arguments
/// name.
///
/// `None` if the program does not exist. Values of variables are used only in the digest.
fn program_parts(here: Here<'_>, program: &Program) -> Option<Vec<String>> {
    let cwd = program.cwd.as_ref().map_or_else(|| here.folder.into(), |cwd| here.folder.join(cwd));
    let path = match program.env.get("PATH") {
        Some(path) => Some(path.reveal().clone()),
        None => (here.variable)("PATH"),
    };
    let path = path.map(|path| ("PATH".to_owned(), Secret::new(path)));
    let found = Found {
        command: program.command.clone(),
        environment: path.into_iter().collect::<BTreeMap<_, _>>(),
        secrets: Vec::new(),
        cwd: Some(cwd.clone()),
        keeper: PathBuf::new(),
    };
    let file = found.find().ok()?;
    let mut parts = vec![program.command.clone(), file_mark(&file)?];
    for argument in &program.args {
        parts.push(argument.clone());
        // Usually a script.
        parts.push(file_mark(&cwd.join(argument)).unwrap_or_default());
    }
    parts.push(cwd.to_string_lossy().into_owned());
    for (name, value) in &program.env {
        parts.extend([name.clone(), value.reveal().clone()]);
    }
    for name in &program.env_passthrough {
        parts.extend([name.clone(), (here.variable)(name).unwrap_or_default()]);
    }
    Some(parts)
}

fn remote_parts(remote: &Remote) -> Vec<String> {
    let headers = remote.headers.iter();
    let headers = headers.flat_map(|(name, value)| [name.clone(), value.reveal().clone()]);
    std::iter::once(remote.url.clone()).chain(headers).collect()
}

/// The path, size and modification time of a file, which identify its version.
fn file_mark(path: &Path) -> Option<String> {
    let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let changed = about.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(format!("{} {} {}", path.display(), about.len(), changed.as_nanos()))
}

#[cfg(test)]
mod tests {
    use capstan_config::{Scope, SourceFile, Surroundings, load};
    use capstan_import::AllDialects;

    use super::*;

    /// The key of the only server in a text, with a variable `TOKEN`.
    fn key_of(folder: &Path, token: &str, text: &str) -> Option<String> {
        let source = SourceFile::new("c.toml", Scope::User, text);
        let around = Surroundings { variable: &|_| None, project_dir: "/" };
        let loaded = load(&[source], &around, &AllDialects);
        let entry = loaded.config.servers.values().next().unwrap();
        let variable = |name: &str| (name == "TOKEN").then(|| token.to_owned());
        key(Here { folder, variable: &variable }, entry, entry.status.as_ref().unwrap())
    }

    #[test]
    fn only_exactly_the_same_server_has_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s.py");
        std::fs::write(&script, "1").unwrap();
        let entry = |more: &str| format!("[servers.s]\ncommand = \"/bin/sh\"\n{more}");
        let plain = entry("args = [\"s.py\"]");
        let of = |text: &str| key_of(folder.path(), "t", text).unwrap();
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
            "[servers.s]\nurl = \"https://h/a\"".to_owned(),
            "[servers.s]\nurl = \"https://h/b\"".to_owned(),
            "[servers.s]\nurl = \"https://h/b\"\nheaders = { A = \"1\" }".to_owned(),
        ];
        let mut keys: Vec<String> = others.iter().map(|text| of(text)).collect();
        keys.push(first);
        let passed = entry("args = [\"s.py\"]\nenv_passthrough = [\"TOKEN\"]");
        keys.push(key_of(folder.path(), "another", &passed).unwrap());
        std::fs::write(&script, "12").unwrap();
        keys.push(of(&plain));
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "no two are the same");
    }

    #[test]
    fn what_is_not_there_or_has_no_connection_is_not_remembered() {
        let folder = Path::new("/");
        let missing = "[servers.s]\ncommand = \"/nowhere/at-all\"";
        assert_eq!(key_of(folder, "", missing), None);
        let program = "[servers.s]\ntype = \"cli\"\ncommand = \"git\"";
        assert_eq!(key_of(folder, "", program), None);
    }
}
