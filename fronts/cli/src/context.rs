//! The context of a command: configuration, ports and printer.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use capstan_app::api::{
    Interact, Local, NoServers, OpenConversation, Operation, Reading, Remote, Source,
};
use capstan_app::chat::ConversationStore;
use capstan_app::{
    Accounts, Addresses, AppError, AuditReader, Browser, BuildHub, CallerTokens, Clients, Configs,
    Doctor, Gateways, HubPurpose, Logins, Models, NameCache, NotRun, PendingApprovals, Registries,
    Secrets, Selection, Setup, TextEditor, Usage, WarmUp, Which,
};
use capstan_config::Problem;
use capstan_hub::Hub;
use capstan_hub::catalog::Patience;
use capstan_hub::ports::ToolIndex;
use capstan_model::ServerName;
use capstan_text::conversation::Output;

use crate::args::{Options, ReadingArgs, WaitArgs};
use crate::attach::Destination;
use crate::commands::login;
use crate::conversing::Converse;
use crate::exit::Exit;
use crate::person::Person;
use crate::print::Printer;
use crate::serving::Serve;

/// Default time to wait for servers that were never seen.
const USUAL_WAIT: Duration = Duration::from_secs(8);

/// Time limit for saving the lists of servers when a command ends.
const SAVE_WAIT: Duration = Duration::from_secs(2);

/// The services and ports that the binary provides to the command line.
#[derive(Clone)]
pub struct Services {
    /// Configuration files.
    pub configs: Arc<Configs>,
    /// Builds the hub of a command.
    pub hubs: Arc<dyn BuildHub>,
    /// Other clients' configuration files.
    pub clients: Arc<Clients>,
    /// Registries of servers.
    pub registries: Arc<Registries>,
    /// Resolves the addresses of URLs.
    pub addresses: Arc<dyn Addresses>,
    /// The audit log.
    pub audit: Arc<dyn AuditReader>,
    /// Tokens for callers of the gateway.
    pub tokens: Arc<CallerTokens>,
    /// Open questions in running gateways.
    pub approvals: Arc<PendingApprovals>,
    /// Users and clients of the authorization server.
    pub accounts: Arc<Accounts>,
    /// Checks of the machine.
    pub doctor: Arc<Doctor>,
    /// Names for completions.
    pub names: Arc<dyn NameCache>,
    /// Secrets that the user named.
    pub secrets: Arc<Secrets>,
    /// Call rates of servers.
    pub usage: Arc<Usage>,
    /// The index of tool search.
    pub index: Arc<dyn ToolIndex>,
    /// Running gateways.
    pub gateways: Arc<Gateways>,
    /// Runs a gateway.
    pub serve: Arc<dyn Serve>,
    /// Connects servers once.
    pub warm_up: Arc<dyn WarmUp>,
    /// The user's text editor.
    pub editor: Arc<dyn TextEditor>,
    /// Logins to servers.
    pub logins: Arc<dyn Logins>,
    /// The user's browser.
    pub browser: Arc<dyn Browser>,
    /// Language models.
    pub models: Arc<dyn Models>,
    /// Saved conversations.
    pub conversations: Arc<dyn ConversationStore>,
    /// Draws conversations on the whole screen.
    pub converse: Arc<dyn Converse>,
}

/// The context of a command.
pub(crate) struct Context {
    /// The configuration that the options select.
    pub(crate) selection: Selection,
    pub(crate) app: Services,
    pub(crate) print: Printer,
    /// Where operations run.
    destination: Destination,
    /// True if the traffic with servers is shown.
    debug: bool,
    /// The port of a login's callback, from the command line.
    pub(crate) oauth_port: Option<u16>,
    hub: OnceLock<OwnHub>,
}

/// The hub of this process.
struct OwnHub {
    hub: Arc<Hub>,
    purpose: HubPurpose,
}

// === impl Context ===

impl Context {
    pub(crate) fn new(options: &Options, destination: Destination, app: Services) -> Self {
        let (selection, print) = (options.selection(), Printer::new(options));
        let (debug, oauth_port) = (options.debug, options.mcp_oauth_port);
        Self { selection, app, print, destination, debug, oauth_port, hub: OnceLock::new() }
    }

    /// This context for a command whose output a screen shows. Both have one hub, which the original
    /// closes.
    pub(crate) fn on_screen(&self, output: Arc<dyn Output>) -> Self {
        let hub = OnceLock::new();
        if let Some(OwnHub { hub: own, purpose }) = self.hub.get() {
            // The lock is new, so it is empty.
            drop(hub.set(OwnHub { hub: Arc::clone(own), purpose: *purpose }));
        }
        Self {
            selection: self.selection.clone(),
            app: self.app.clone(),
            print: Printer::for_screen(output),
            destination: self.destination,
            debug: self.debug,
            oauth_port: self.oauth_port,
            hub,
        }
    }

    /// True if the command line requests that operations run in a gateway.
    pub(crate) fn is_attached(&self) -> bool {
        matches!(self.destination, Destination::Gateway(_))
    }

    /// Runs an operation, here or in a running gateway.
    pub(crate) async fn run<O: Operation>(
        &self,
        operation: O,
        person: Person,
    ) -> Result<O::Output, AppError> {
        let person = Arc::new(person);
        let front: Arc<dyn Interact> = Arc::<Person>::clone(&person);
        let error = match self.run_once(&operation, &front).await {
            Ok(output) => return Ok(output),
            Err(error) => error,
        };
        let Some(server) = error.login.clone() else { return Err(error) };
        if !person.wants_to_log_in(&error).await {
            return Err(error);
        }
        Box::pin(login::log_in(self, &server)).await?;
        // The server refused the request, so nothing has run yet.
        self.run_once(&operation, &front).await
    }

    async fn run_once<O: Operation>(
        &self,
        operation: &O,
        front: &Arc<dyn Interact>,
    ) -> Result<O::Output, AppError> {
        let which = match self.destination {
            Destination::Here => return self.run_here(operation, front).await,
            Destination::Anywhere => Which::Like(&self.selection),
            Destination::Gateway(None) => Which::Only(&self.selection),
            Destination::Gateway(Some(process)) => Which::Process(process),
        };
        match (Remote { gateways: &self.app.gateways, which }).run(operation, front).await {
            Ok(output) => Ok(output),
            Err(NotRun::Failed(error)) => Err(*error),
            Err(NotRun::Here) => self.run_here(operation, front).await,
        }
    }

    async fn run_here<O: Operation>(
        &self,
        operation: &O,
        front: &Arc<dyn Interact>,
    ) -> Result<O::Output, AppError> {
        operation.run(&self.local(O::PURPOSE)?, front).await
    }

    /// The servers of this process.
    pub(crate) fn local(&self, purpose: HubPurpose) -> Result<Local, AppError> {
        let setup = self.app.configs.load(&self.selection)?.checked()?;
        self.hub(&setup, purpose)?;
        let hub = self.hub.get().map(|own| Arc::clone(&own.hub));
        Ok(Local {
            hub: hub.ok_or_else(|| AppError::internal("the hub could not be built"))?,
            names: (!self.selection.demo).then(|| Arc::clone(&self.app.names)),
            usage: Arc::clone(&self.app.usage),
            index: Arc::clone(&self.app.index),
            switched_off: self.selection.no_mcp || setup.loaded.environment.no_mcp,
            gateway: None,
            conversation: OpenConversation::default(),
            setup,
        })
    }

    /// Loads the configuration; fails on an error that affects everything.
    ///
    /// A broken entry breaks only its own server, and warnings are printed.
    pub(crate) fn setup(&self) -> Result<Setup, AppError> {
        self.setup_of(&self.selection)
    }

    /// Loads the configuration that a selection means, as [`Self::setup`] does.
    pub(crate) fn setup_of(&self, selection: &Selection) -> Result<Setup, AppError> {
        let setup = self.app.configs.load(selection)?.checked()?;
        self.tell_problems(&setup, |_| true);
        Ok(setup)
    }

    /// Loads the configuration without printing problems of single servers, which the caller
    /// reports.
    pub(crate) fn setup_untold(&self) -> Result<Setup, AppError> {
        self.app.configs.load(&self.selection)?.checked()
    }

    /// Prints the problems that `wanted` selects; none of them stops everything.
    pub(crate) fn tell_problems(&self, setup: &Setup, wanted: impl Fn(&Problem) -> bool) {
        for problem in setup.loaded.problems.iter().filter(|problem| wanted(problem)) {
            self.print.problem(problem);
        }
    }

    /// Loads only the files that `--config` names, without those that are read by default.
    pub(crate) fn setup_alone(&self) -> Result<Setup, AppError> {
        if self.selection.config.is_empty() {
            let hint = "name the file of the rules with `--config FILE`";
            return Err(AppError::usage("`--alone` needs `--config`").hint(hint));
        }
        let setup = self.app.configs.load_alone(&self.selection)?.checked()?;
        self.tell_problems(&setup, |_| true);
        Ok(setup)
    }

    /// The hub, built on first use and closed when the command ends, however it ends.
    pub(crate) fn hub(&self, setup: &Setup, purpose: HubPurpose) -> Result<&Hub, AppError> {
        if self.hub.get().is_none() {
            let hub = Arc::new(self.app.hubs.build(setup, purpose)?);
            // Only this thread sets it, so it cannot have been set in the meantime.
            drop(self.hub.set(OwnHub { hub, purpose }));
        }
        self.hub
            .get()
            .map(|own| &*own.hub)
            .ok_or_else(|| AppError::internal("the hub could not be built"))
    }

    /// Saves the lists of the servers that were started for this command, so that the next one need
    /// not start them.
    ///
    /// After a call, the list that it has asked for is saved already, and no other one is asked for.
    pub(crate) async fn save_lists(&self) {
        match self.hub.get() {
            Some(OwnHub { hub, purpose: HubPurpose::Lists }) => {
                // A server that is too slow is asked again by the next command.
                drop(tokio::time::timeout(SAVE_WAIT, hub.save_lists()).await);
            }
            Some(OwnHub { purpose: HubPurpose::Calls, .. }) | None => {}
        }
    }

    /// Stops every server that was started for this command.
    pub(crate) async fn close(&self) {
        if let Some(OwnHub { hub, .. }) = self.hub.get() {
            hub.close().await;
        }
    }

    /// Prints the reason why there is nothing to show.
    pub(crate) fn say_no_servers(&self, none: NoServers) {
        match none {
            NoServers::SwitchedOff => {
                self.print.note("servers are disabled by `--no-mcp` or `CAPSTAN_NO_MCP`");
            }
            NoServers::NotConfigured => {
                self.print.note("no servers are configured");
                self.print.hint(
                    "`capstan add NAME COMMAND…` adds one, `capstan adopt CLIENT` moves those of another client, \
                     `capstan import` copies them; `capstan tools --demo` \
                     shows examples",
                );
            }
        }
    }

    /// The exit code of a command; an error if a required server failed.
    pub(crate) fn exit_without(&self, required: Option<&ServerName>) -> Exit {
        let Some(name) = required else { return Exit::Ok };
        self.print.error(&format!("server `{name}` is required and failed"));
        Exit::Unreachable
    }

    /// The source of lists, and the wait for servers, that the options select.
    ///
    /// `--debug` shows the traffic with servers, so they are asked.
    pub(crate) fn reading(&self, args: &ReadingArgs) -> Reading {
        let asks = args.refresh || self.debug;
        let source = if asks { Source::Servers } else { Source::Saved };
        Reading { source, wait: Self::patience(&args.wait) }
    }

    /// The wait for servers that the options select.
    pub(crate) fn patience(wait: &WaitArgs) -> Patience {
        match wait.wait {
            Some(limit) => Patience::UpTo(limit),
            None => Patience::UntilFirstOr(USUAL_WAIT),
        }
    }
}
