//! A hub with one program behind it, and an operator who sees what is told.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use capstan_command::{CommandServer, CommandSettings};
use capstan_hub::ports::{Listing, Reply};
use capstan_model::{CallError, Secret, Trust};
use capstan_process::once::Program;
pub(crate) use capstan_testkit::{SingleServerHub, until};
use capstan_wire::Json;
use serde_json::Value;
use tempfile::TempDir;

/// Time limit of each step.
const LIMIT: Duration = Duration::from_secs(30);

/// The program. It writes down each run, and prints its arguments, a line each.
const CRANE: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> runs
case "$*" in
  --help) cat <<'END'
Usage: crane [OPTIONS] COMMAND

Commands:
  lift    Lift something
  load    Manage loads
  wait    Wait for a mark
  fail    Fail
  help    Help about any command

Options:
  --list  List installed commands

Run 'crane COMMAND --help' for more information on a command.
END
  exit ;;
  --list) printf 'Installed Commands:\n    lift     Lift something\n    hoist    Hoist a flag\n    other\n'; exit ;;
  'hoist --help') printf 'Usage: crane hoist NAME\n'; exit ;;
  'lift --help') printf 'Usage: crane lift [OPTIONS] WHAT...\n\nOptions:\n  --height int    How high\n  --exec string   Run it\n'; exit ;;
  'load --help') printf 'Usage: crane load COMMAND\n\nCommands:\n  add    Add one\n  drop   Drop one\n'; exit ;;
  'load add --help') printf 'Usage: crane load add NAME\n'; exit ;;
  'wait --help') printf 'Usage: crane wait MARK\n'; exit ;;
  'fail --help' | 'load drop --help') printf 'Usage: crane %s\n' "${*%--help}"; exit ;;
  *--help) echo "crane: no such command: $1" >&2; exit 1 ;;
esac
case $1 in
  load) env ;;
  fail) echo half; echo "broke, secret $GIVEN" >&2; exit 3 ;;
  wait) echo $$ >> pids; sleep 600 & echo $! >> pids
    while [ ! -e "$3" ]; do echo working; sleep 0.05; done; kill $! ;;
  *) for word; do printf '%s\n' "$word"; done ;;
esac
"#;

/// A hub with one server called `s`.
pub(crate) struct Scene {
    inner: SingleServerHub<CommandServer>,
    settings: CommandSettings,
    folder: Arc<TempDir>,
}

/// True if a process exists.
pub(crate) fn alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

// === impl Scene ===

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut CommandSettings)) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let program = folder.path().join("crane");
        fs::write(&program, CRANE).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut settings = settings(&program, folder.path());
        change(&mut settings);
        Self::of(settings, folder)
    }

    /// Another server for the same program.
    pub(crate) fn again(&self, change: impl FnOnce(&mut CommandSettings)) -> Self {
        let mut settings = self.settings.clone();
        change(&mut settings);
        Self::of(settings, Arc::clone(&self.folder))
    }

    fn of(settings: CommandSettings, folder: Arc<TempDir>) -> Self {
        let server = CommandServer::new(settings.clone());
        let inner = SingleServerHub::new(server, Trust::default(), Reply::Decline);
        Self { inner, settings, folder }
    }

    pub(crate) async fn tools(&self) -> Result<Vec<String>, CallError> {
        self.names(Listing::Tools).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, CallError> {
        let arguments = Json::from_value(&arguments).unwrap();
        Ok(self.call_tool(tool, &arguments).await?.read().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder().join("crane")
    }

    /// Each run of the program, a line each.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder().join("runs")).unwrap_or_default()
    }

    /// The number of runs of the program.
    pub(crate) fn runs(&self) -> usize {
        self.log().lines().count()
    }

    /// True if the program was run with this word.
    pub(crate) fn ran(&self, word: &str) -> bool {
        self.log().contains(word)
    }

    /// The processes of a call that waits.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder().join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Deref for Scene {
    type Target = SingleServerHub<CommandServer>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

fn settings(program: &Path, folder: &Path) -> CommandSettings {
    let variable = |name: &str, value: &str| (name.to_owned(), Secret::new(value.to_owned()));
    let program = Program {
        command: program.display().to_string(),
        environment: [variable("PATH", "/usr/bin:/bin"), variable("GIVEN", "hunter22")].into(),
        secrets: vec![Secret::new("hunter22".to_owned())],
        cwd: Some(folder.to_owned()),
        keeper: PathBuf::from(env!("CARGO_BIN_EXE_capstan-command-keeper")),
        sandbox: None,
    };
    CommandSettings {
        name: "s".parse().unwrap(),
        program,
        args: Vec::new(),
        help: "--help".to_owned(),
        depth: 2,
        only: None,
        presets: Vec::new(),
        startup_timeout: LIMIT,
        timeout: LIMIT,
        output: 1 << 20,
        cache: Some(folder.join("cache")),
    }
}
