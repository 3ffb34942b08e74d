//! A folder with a home in it, and a program that runs in a sandbox there.

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_model::Secret;
use capstan_process::once::{Limits as RunLimits, Program};
use capstan_process::sandbox::{Limits, OpenOutlet, Outlet, Sandbox};
use tempfile::TempDir;

/// The probe, which is the keeper too.
const PROBE: &str = env!("CARGO_BIN_EXE_capstan-process-probe");

/// The world of one test.
pub(crate) struct World {
    /// The folder of everything.
    pub(crate) folder: TempDir,
    /// The sandbox of the program.
    pub(crate) sandbox: Sandbox,
    /// Its working directory.
    pub(crate) cwd: Option<PathBuf>,
}

/// A proxy that listens already.
#[derive(Debug)]
struct Listening(Mutex<Option<PathBuf>>);

// === impl World ===

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::create_dir(path.join("home")).unwrap();
        let sandbox = Sandbox {
            private: path.join("private"),
            home: path.join("home"),
            read: Vec::new(),
            write: Vec::new(),
            outlet: None,
            limits: Limits::default(),
        };
        Self { folder, sandbox, cwd: None }
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Gives the sandbox a proxy.
    pub(crate) fn proxy(&mut self) -> (UnixListener, PathBuf) {
        let socket = self.folder.path().join("proxy.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        self.sandbox.outlet = Some(Arc::new(Listening(Mutex::new(Some(socket.clone())))));
        (listener, socket)
    }

    /// Runs the probe; returns its two outputs.
    pub(crate) async fn run(&self, args: &[&str]) -> (String, String) {
        let mut environment: BTreeMap<String, Secret<String>> =
            [("PATH".to_owned(), Secret::new("/usr/bin:/bin".to_owned()))].into();
        for (name, folder) in self.sandbox.variables() {
            environment.insert(name.to_owned(), Secret::new(folder));
        }
        let program = Program {
            command: PROBE.to_owned(),
            environment,
            secrets: Vec::new(),
            cwd: self.cwd.clone(),
            keeper: PROBE.into(),
            sandbox: Some(Arc::new(self.sandbox.clone())),
        };
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let limits = RunLimits { time: Duration::from_mins(1), output: 64 * 1024 };
        let output = program.run(&args, limits, &mut |_| {}).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        (text(&output.stdout.bytes), text(&output.stderr.bytes))
    }

    /// Runs the probe, whose output must begin with `expected`.
    pub(crate) async fn does(&self, args: &[&str], expected: &str) {
        let (said, complained) = self.run(args).await;
        assert!(said.starts_with(expected), "{args:?}: {said:?} {complained}");
    }
}

// === impl Listening ===

impl Outlet for Listening {
    fn open(&self) -> std::io::Result<OpenOutlet> {
        let socket = self.0.lock().unwrap().take().ok_or(std::io::ErrorKind::NotFound)?;
        Ok(OpenOutlet { socket, guard: Box::new(()) })
    }

    fn reaches_loopback(&self) -> bool {
        false
    }
}
