//! A home folder of its own for a test, and `capstan` run in it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::fail::{OrFail, fail};
use crate::process::{command, wait_until};

/// How long a run may take.
const LIMIT: Duration = Duration::from_mins(1);

/// A home with the XDG folders in it, removed at the end of the test.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    home: PathBuf,
}

/// A run of a program in a [`World`] that is being prepared.
#[derive(Debug)]
pub struct Capstan {
    command: Command,
    stdin: Vec<u8>,
    limit: Duration,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; `None` when a signal ended the program.
    pub status: Option<i32>,
    /// All of standard output.
    pub stdout: String,
    /// All of standard error.
    pub stderr: String,
}

/// The path of a program of this workspace, which lies beside the test that runs.
///
/// # Panics
///
/// When it is not built: cargo builds the programs of the tested crate only.
#[track_caller]
pub fn binary(name: &str) -> PathBuf {
    let test = env::current_exe().or_fail("cannot tell where the test is");
    let mut folder = test.parent().unwrap_or(&test);
    if folder.ends_with("deps") {
        folder = folder.parent().unwrap_or(folder);
    }
    let path = folder.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    if !path.is_file() {
        let shown = path.display();
        fail(&format!("`{shown}` is not built; run `cargo build --workspace` first"));
    }
    path
}

// === impl World ===

impl World {
    /// An empty home.
    #[expect(clippy::new_without_default, reason = "making one does I/O and can fail the test")]
    #[track_caller]
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("capstan-world-").or_fail("cannot make a world");
        let home = folder.path().canonicalize().or_fail("cannot find the world");
        let world = Self { folder, home };
        let folders = [world.config(), world.data(), world.state(), world.cache(), world.project()];
        for path in folders {
            fs::create_dir_all(path).or_fail("cannot make a folder");
        }
        make_private(&world.runtime()).or_fail("cannot make the runtime folder");
        world
    }

    /// `HOME`.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The folder in which programs are run.
    pub fn project(&self) -> PathBuf {
        self.home.join("project")
    }

    /// `XDG_CONFIG_HOME`.
    pub fn config(&self) -> PathBuf {
        self.home.join(".config")
    }

    /// `XDG_DATA_HOME`.
    pub fn data(&self) -> PathBuf {
        self.home.join(".local/share")
    }

    /// `XDG_STATE_HOME`.
    pub fn state(&self) -> PathBuf {
        self.home.join(".local/state")
    }

    /// `XDG_CACHE_HOME`.
    pub fn cache(&self) -> PathBuf {
        self.home.join(".cache")
    }

    /// `XDG_RUNTIME_DIR`.
    pub fn runtime(&self) -> PathBuf {
        self.home.join("run")
    }

    /// Writes a file below the home, with the folders it needs.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).or_fail("cannot make a folder");
        }
        fs::write(&path, content).or_fail("cannot write a file");
        path
    }

    /// Writes the user's own configuration.
    #[track_caller]
    pub fn write_user_config(&self, toml: &str) -> PathBuf {
        self.write(".config/capstan/config.toml", toml)
    }

    /// Writes the project's configuration.
    #[track_caller]
    pub fn write_project_config(&self, toml: &str) -> PathBuf {
        self.write("project/.capstan/config.toml", toml)
    }

    /// Prepares a run of `capstan`.
    #[track_caller]
    pub fn capstan<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Capstan {
        let mut capstan = self.program(binary("capstan"), arguments);
        // Hints name the command as it was typed.
        std::os::unix::process::CommandExt::arg0(&mut capstan.command, "capstan");
        capstan
    }

    /// Prepares a run of any program.
    pub fn program<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Capstan {
        let mut command = command(program);
        command.args(arguments).current_dir(self.project()).env_clear().envs(self.environment());
        Capstan { command, stdin: Vec::new(), limit: LIMIT }
    }

    /// All that programs find in their environment.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let path = env::var_os("PATH").unwrap_or_default();
        vec![
            ("PATH", path),
            ("HOME", self.home().into()),
            ("XDG_CONFIG_HOME", self.config().into()),
            ("XDG_DATA_HOME", self.data().into()),
            ("XDG_STATE_HOME", self.state().into()),
            ("XDG_CACHE_HOME", self.cache().into()),
            ("XDG_RUNTIME_DIR", self.runtime().into()),
        ]
    }

    /// Settings under which snapshots do not show what differs between runs: paths, versions,
    /// times and durations.
    pub fn snapshots(&self) -> insta::Settings {
        let mut settings = insta::Settings::clone_current();
        for (pattern, shown) in self.filters() {
            settings.add_filter(&pattern, shown);
        }
        settings
    }

    fn filters(&self) -> Vec<(String, &'static str)> {
        let mut filters = vec![(escape(&self.home.display().to_string()), "[HOME]")];
        let given = self.folder.path().display().to_string();
        filters.push((escape(&given), "[HOME]"));
        if let Some(folder) = env::current_exe().ok().as_deref().and_then(Path::parent) {
            let folder = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
            let shown = folder.map(|folder| folder.display().to_string()).unwrap_or_default();
            filters.push((escape(&shown), "[BIN]"));
        }
        let version = escape(env!("CARGO_PKG_VERSION"));
        filters.push((format!(r"\bv?{version}\b"), "[VERSION]"));
        let time = r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?";
        filters.push((time.to_owned(), "[TIME]"));
        filters.push((r"\b\d+(\.\d+)? ?(ns|µs|us|ms|s)\b".to_owned(), "[DURATION]"));
        filters
    }
}

// === impl Capstan ===

impl Capstan {
    /// What the program reads; without this, nothing.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = text.into();
        self
    }

    /// One more variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Another folder than the project.
    #[must_use]
    pub fn within(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Another limit than 60 seconds.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The command, for tests that talk with the program while it runs.
    pub fn into_command(self) -> Command {
        self.command
    }

    /// Runs to the end.
    ///
    /// # Panics
    ///
    /// When the program cannot be started, or has not ended and closed its output within the
    /// limit; it and its process group are killed then.
    #[track_caller]
    pub fn run(mut self) -> Ended {
        own_group(&mut self.command);
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().or_fail("cannot start the program");
        let input = child.stdin.take();
        let text = self.stdin;
        // A program may end without reading its input, which is no failure of the test.
        thread::spawn(move || input.map(|mut input| input.write_all(&text)));
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let end = Instant::now() + self.limit;
        let status = wait(&mut child, self.limit);
        let left = end.saturating_duration_since(Instant::now());
        let output = stdout.recv_timeout(left).ok();
        let errors = stderr.recv_timeout(left.min(Duration::from_secs(1))).ok();
        match (status, output, errors) {
            (Some(status), Some(stdout), Some(stderr)) => {
                Ended { status: status.code(), stdout, stderr }
            }
            (status, ..) => {
                kill_group(&mut child);
                let what = if status.is_some() { "closed its output" } else { "ended" };
                fail(&format!("{:?} has not {what} within {:?}", self.command, self.limit))
            }
        }
    }
}

// === impl Ended ===

impl Ended {
    /// The output of a run that must have gone well.
    #[track_caller]
    pub fn ok(self) -> String {
        match self.status {
            Some(0) => self.stdout,
            status => fail(&format!("ended with {status:?}\n{}\n{}", self.stdout, self.stderr)),
        }
    }
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let mut status = None;
    wait_until(
        || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        },
        limit,
    );
    status
}

/// Reads everything in a thread of its own, so that no pipe fills up.
fn collect(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What could be read is worth showing even when the rest could not.
            drop(stream.read_to_end(&mut bytes));
        }
        // The test may have given up meanwhile.
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_command: &mut Command) {}

#[cfg(unix)]
fn kill_group(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Whoever is gone already needs no killing.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    drop(child.wait());
}

#[cfg(not(unix))]
fn kill_group(child: &mut Child) {
    drop(child.kill());
    drop(child.wait());
}

/// A runtime folder that others can read is refused by careful programs.
#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)
}

/// A pattern that matches exactly this text.
fn escape(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
