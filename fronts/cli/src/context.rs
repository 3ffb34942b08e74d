//! What every command gets.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use capstan_config::{Problem, ServerEntry};
use capstan_hub::Hub;
use capstan_hub::catalog::Patience;
use capstan_model::ServerName;

use crate::args::{Options, WaitArgs};
use crate::exit::{Exit, Failure};
use crate::far::Far;
use crate::host::{Host, Inside, Setup};
use crate::print::Printer;

/// How long servers are waited for when nobody says otherwise.
const USUAL_WAIT: Duration = Duration::from_secs(2);

/// What every command gets.
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) print: Printer,
    /// The gateway that the command runs in, where it runs in one.
    pub(crate) inside: Option<Arc<dyn Inside>>,
    /// What has been read from stdin already.
    pub(crate) stdin: Mutex<Option<io::Result<String>>>,
    hub: OnceLock<Arc<Hub>>,
}

// === impl Context ===

impl Context {
    pub(crate) fn new(options: Options, host: Arc<dyn Host>) -> Self {
        let print = Printer::new(&options);
        Self { options, host, print, inside: None, stdin: Mutex::default(), hub: OnceLock::new() }
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
    pub(crate) fn setup(&self) -> Result<Setup, Failure> {
        let setup = self.setup_untold()?;
        self.tell_problems(&setup, |_| true);
        Ok(setup)
    }

    /// The same; what is wrong with single servers is for the caller to tell.
    pub(crate) fn setup_untold(&self) -> Result<Setup, Failure> {
        match &self.inside {
            Some(inside) => checked(inside.setup()),
            None => checked(self.host.load(&self.options)?),
        }
    }

    /// Tells of problems that do not stop everything.
    pub(crate) fn tell_problems(&self, setup: &Setup, wanted: impl Fn(&Problem) -> bool) {
        for problem in setup.loaded.problems.iter().filter(|problem| wanted(problem)) {
            self.print.problem(problem);
        }
    }

    /// The configuration of the files that `--config` names, without those that are read unasked.
    pub(crate) fn setup_alone(&self) -> Result<Setup, Failure> {
        if self.options.config.is_empty() {
            let hint = "name the file of the rules with `--config FILE`";
            return Err(Failure::usage("`--alone` needs `--config`").hint(hint));
        }
        let setup = checked(self.host.load_alone(&self.options)?)?;
        self.tell_problems(&setup, |_| true);
        Ok(setup)
    }

    /// The hub. Built once, closed when the command ends, however it ends.
    pub(crate) fn hub(&self, setup: &Setup) -> Result<&Hub, Failure> {
        if self.hub.get().is_none() {
            let hub = match &self.inside {
                Some(inside) => inside.hub(),
                None => Arc::new(self.host.hub(setup, &self.options)?),
            };
            // Only this thread sets it, so it cannot have been set in between.
            drop(self.hub.set(hub));
        }
        self.hub
            .get()
            .map(AsRef::as_ref)
            .ok_or_else(|| Failure::internal("the hub could not be built"))
    }

    /// Ends every server that was started for this command.
    pub(crate) async fn close(&self) {
        if let (None, Some(hub)) = (&self.inside, self.hub.get()) {
            hub.close().await;
        }
    }

    /// Says why there is nothing to show.
    pub(crate) fn say_no_servers(&self, setup: &Setup) {
        if self.options.no_mcp || setup.loaded.environment.no_mcp {
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

/// A configuration in which nothing concerns everything.
fn checked(setup: Setup) -> Result<Setup, Failure> {
    // A file that nobody has approved starts nothing, so it must not stop anything either.
    let heard = |problem: &&Problem| {
        let place = problem.place.as_ref();
        let file = place.and_then(|place| setup.files.iter().find(|f| f.path == place.file));
        file.is_none_or(|file| file.approved)
    };
    let fatal: Vec<_> = setup.loaded.fatal().filter(heard).cloned().collect();
    if fatal.is_empty() { Ok(setup) } else { Err(Failure::config(fatal, setup.files.to_vec())) }
}

/// The entry of a server by its slug or its own name.
///
/// # Errors
/// When there is none.
pub fn find_server<'a>(setup: &'a Setup, name: &str) -> Result<&'a ServerEntry, Failure> {
    let servers = &setup.loaded.config.servers;
    let by_slug = name.parse::<ServerName>().ok().and_then(|slug| servers.get(&slug));
    let found = by_slug.or_else(|| servers.values().find(|entry| entry.display == name));
    found.ok_or_else(|| {
        let failure = Failure::not_found(format!("no server named `{name}`"));
        match nearest(name, servers.values().map(|entry| entry.display.as_str())) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`capstan list` shows the servers there are"),
        }
    })
}

/// The word most like `wanted`, if any is like it at all.
pub(crate) fn nearest<'a>(wanted: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words
        .map(|word| (strsim::jaro_winkler(wanted, word), word))
        .filter(|(score, _)| *score >= 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}
