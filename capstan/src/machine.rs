//! The machine ports of the application layer: clocks, programs, sockets and addresses.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use capstan_app::{Addresses, AppError, Environment, Machine, UrlAddresses};
use capstan_http::WebAddress;
use capstan_hub::ports::{BoxFuture, Clock};
use capstan_model::Secret;
use capstan_process::once::{End, Limits, Program};
use capstan_process::sandbox::{self, Sandbox};
use capstan_store::Database;
use jiff::Timestamp;
use tokio::time::timeout;

/// Time limit for a DNS lookup.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// Limits on running a program to get its version.
const VERSION: Limits = Limits { time: Duration::from_secs(5), output: 4096 };

/// The machine that the program runs on.
pub(crate) struct LocalMachine {
    pub(crate) environment: Arc<Environment>,
    pub(crate) database: Arc<Database>,
}

/// The system's clocks.
pub(crate) struct SystemClock {
    start: Instant,
}

// === impl LocalMachine ===

impl LocalMachine {
    /// A command whose environment has only the variables that it needs to be found.
    fn program(&self, command: &str, path: Option<&str>, folder: Option<&Path>) -> Program {
        let variable = |name: &str, value: String| (name.to_owned(), Secret::new(value));
        let path = path.map(|path| variable("PATH", path.to_owned()));
        let home = self.environment.variable("HOME").map(|home| variable("HOME", home));
        let environment: BTreeMap<_, _> = path.into_iter().chain(home).collect();
        Program {
            command: command.to_owned(),
            environment,
            secrets: Vec::new(),
            cwd: folder.map(Path::to_owned),
            keeper: self.environment.program.clone().unwrap_or_default(),
            sandbox: None,
        }
    }
}

impl Machine for LocalMachine {
    fn connect(&self, socket: &Path) -> io::Result<()> {
        UnixStream::connect(socket).map(drop)
    }

    fn listen(&self, address: SocketAddr) -> io::Result<()> {
        TcpListener::bind(address).map(drop)
    }

    fn find_program(
        &self,
        command: &str,
        path: Option<&str>,
        folder: Option<&Path>,
    ) -> Result<PathBuf, String> {
        self.program(command, path, folder).find().map_err(|error| error.to_string())
    }

    fn version<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let path = self.environment.variable("PATH");
            let program = self.program(command, path.as_deref(), None);
            let output = program.run(&["--version".to_owned()], VERSION, &mut |_| {}).await.ok()?;
            let text = String::from_utf8_lossy(&output.stdout.bytes).into_owned();
            (output.end == End::Code(0)).then_some(text)
        })
    }

    fn check_sandbox(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let path = self.environment.variable("PATH");
            let sandbox = Sandbox {
                private: self.environment.cache.join("sandbox/doctor"),
                home: self.environment.home.clone(),
                read: Vec::new(),
                write: Vec::new(),
                outlet: None,
                limits: sandbox::Limits::default(),
            };
            let program = self.program("true", path.as_deref(), None);
            let program = Program { sandbox: Some(Arc::new(sandbox)), ..program };
            let output = program.run(&[], VERSION, &mut |_| {}).await;
            let output = output.map_err(|error| error.to_string())?;
            if output.end == End::Code(0) {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr.bytes);
            Err(said.trim().trim_start_matches("capstan: ").to_owned())
        })
    }

    fn check_database(&self) -> BoxFuture<'_, Result<Vec<PathBuf>, String>> {
        Box::pin(async move {
            self.database.check().await.map_err(|error| match &error.cause {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            })
        })
    }
}

impl Addresses for LocalMachine {
    fn addresses<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<UrlAddresses, AppError>> {
        Box::pin(async move {
            let address = WebAddress::parse(url).map_err(AppError::usage)?;
            if address.is_configured_here() {
                return Ok(UrlAddresses::Here);
            }
            if let Some(literal) = address.ip() {
                return Ok(UrlAddresses::Literal(literal));
            }
            let found = timeout(LOOKUP_LIMIT, address.addresses()).await;
            let found = found.ok().and_then(Result::ok).unwrap_or_default();
            Ok(UrlAddresses::Name(address.host(), found))
        })
    }
}

// === impl SystemClock ===

impl SystemClock {
    pub(crate) fn shared() -> Arc<dyn Clock> {
        Arc::new(Self { start: Instant::now() })
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock adapter")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
