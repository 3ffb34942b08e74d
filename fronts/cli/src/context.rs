//! What every command gets.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use capstan_app::{AppError, Host, Selection, Setup};
use capstan_config::{Problem, ServerEntry};
use capstan_hub::Hub;
use capstan_hub::catalog::Patience;
use capstan_model::ServerName;

use crate::args::{Options, WaitArgs};
use crate::exit::Exit;
use crate::far::{Attach, Far, Inside};
use crate::print::Printer;
use crate::serving::Serve;

/// How long servers are waited for when nobody says otherwise.
const USUAL_WAIT: Duration = Duration::from_secs(2);

/// The program around the command line.
#[derive(Clone)]
pub struct Program {
    /// Files, state and the hub.
    pub host: Arc<dyn Host>,
    /// Running gateways.
    pub attach: Arc<dyn Attach>,
    /// Runs a gateway.
    pub serve: Arc<dyn Serve>,
}

/// What every command gets.
pub(crate) struct Context {
    pub(crate) options: Options,
    /// Which configuration the options select.
    pub(crate) selection: Selection,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) attach: Arc<dyn Attach>,
    pub(crate) serve: Arc<dyn Serve>,
    pub(crate) print: Printer,
    /// The gateway that the command runs in, where it runs in one.
    pub(crate) inside: Option<Arc<dyn Inside>>,
    /// What has been read from stdin already.
    pub(crate) stdin: Mutex<Option<io::Result<String>>>,
    hub: OnceLock<Arc<Hub>>,
}

// === impl Context ===

impl Context {
    pub(crate) fn new(options: Options, program: Program) -> Self {
        let Program { host, attach, serve } = program;
        Self {
            print: Printer::new(&options),
            selection: options.selection(),
            options,
            host,
            attach,
            serve,
            inside: None,
            stdin: Mutex::default(),
            hub: OnceLock::new(),
        }
    }

    /// The same, in a gateway, for a shell somewhere else.
    pub(crate) fn inside(
        self,
        inside: Arc<dyn Inside>,
        far: Arc<Far>,
        stdin: Option<String>,
    ) -> Self {
        let print = self.print.far(far);
        Self { print, inside: Some(inside), stdin: Mutex::new(stdin.map(Ok)), ..self }
    }

    /// The configuration; fails when something in it concerns everything.
    ///
    /// A broken entry breaks only its own server, and warnings are shown.
    pub(crate) fn setup(&self) -> Result<Setup, AppError> {
        let setup = self.setup_untold()?;
        self.tell_problems(&setup, |_| true);
        Ok(setup)
    }

    /// The same; what is wrong with single servers is for the caller to tell.
    pub(crate) fn setup_untold(&self) -> Result<Setup, AppError> {
        match &self.inside {
            Some(inside) => inside.setup().checked(),
            None => self.host.load(&self.selection)?.checked(),
        }
    }

    /// Tells of problems that do not stop everything.
    pub(crate) fn tell_problems(&self, setup: &Setup, wanted: impl Fn(&Problem) -> bool) {
        for problem in setup.loaded.problems.iter().filter(|problem| wanted(problem)) {
            self.print.problem(problem);
        }
    }

    /// The configuration of the files that `--config` names, without those that are read unasked.
    pub(crate) fn setup_alone(&self) -> Result<Setup, AppError> {
        if self.selection.config.is_empty() {
            let hint = "name the file of the rules with `--config FILE`";
            return Err(AppError::usage("`--alone` needs `--config`").hint(hint));
        }
        let setup = self.host.load_alone(&self.selection)?.checked()?;
        self.tell_problems(&setup, |_| true);
        Ok(setup)
    }

    /// The hub. Built once, closed when the command ends, however it ends.
    pub(crate) fn hub(&self, setup: &Setup) -> Result<&Hub, AppError> {
        if self.hub.get().is_none() {
            let hub = match &self.inside {
                Some(inside) => inside.hub(),
                None => Arc::new(self.host.hub(setup, &self.selection)?),
            };
            // Only this thread sets it, so it cannot have been set in between.
            drop(self.hub.set(hub));
        }
        self.hub
            .get()
            .map(AsRef::as_ref)
            .ok_or_else(|| AppError::internal("the hub could not be built"))
    }

    /// Ends every server that was started for this command.
    pub(crate) async fn close(&self) {
        if let (None, Some(hub)) = (&self.inside, self.hub.get()) {
            hub.close().await;
        }
    }

    /// Says why there is nothing to show.
    pub(crate) fn say_no_servers(&self, setup: &Setup) {
        if self.selection.no_mcp || setup.loaded.environment.no_mcp {
            self.print.note("servers are switched off by `--no-mcp` or `CAPSTAN_NO_MCP`");
            return;
        }
        self.print.note("no servers are configured");
        let hint = "`capstan add NAME COMMAND…` adds one, `capstan import` takes over those of \
                    other clients; `capstan tools --demo` shows some";
        self.print.hint(hint);
    }

    /// How a command ends that went on without these servers: one that is required is missed.
    pub(crate) fn exit_without<'a>(
        &self,
        setup: &Setup,
        mut failed: impl Iterator<Item = &'a ServerName>,
    ) -> Exit {
        let servers = &setup.loaded.config.servers;
        let required = |name: &&ServerName| {
            let entry = servers.get(*name).and_then(ServerEntry::usable);
            entry.is_some_and(|server| server.required)
        };
        let Some(name) = failed.find(required) else { return Exit::Ok };
        self.print.error(&format!("server `{name}` is required and failed"));
        Exit::Unreachable
    }

    /// How long to wait for servers.
    pub(crate) fn patience(wait: &WaitArgs) -> Patience {
        match wait.wait {
            Some(limit) => Patience::UpTo(limit),
            None => Patience::UntilFirstOr(USUAL_WAIT),
        }
    }
}
