//! `capstan login`: logs a person in to a server.

use std::collections::HashSet;
use std::io::BufRead;
use std::time::Duration;

use capstan_app::{AppError, HubPurpose, LoginPage, LoginState, Setup, WantedLogin};
use capstan_config::{Kind, OAuth, ServerEntry};
use capstan_hub::Freshness;
use capstan_hub::ports::{BoxFuture, Listing, LoginPerson, LoginStep};
use capstan_model::{CallError, ServerName, ServerState};
use capstan_safety::clean::visible;
use capstan_text::screen::{has_person, stderr_is_terminal, stderr_width};
use futures::FutureExt;
use futures::future::{pending, ready};
use jiff::Timestamp;
use qrcodegen::{QrCode, QrCodeEcc};

use super::{age, import_logins};
use crate::args::LoginArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Printer;

/// How long a person may take to log in.
const WAIT: Duration = Duration::from_mins(10);

/// The light margin around a QR code, in modules.
const MARGIN: i32 = 2;

pub(crate) async fn run(context: &Context, args: &LoginArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    if args.status {
        return status(context, &setup, args.name.as_deref()).await;
    }
    if let Some(file) = &args.import {
        return import_logins::run(context, &setup, file.as_deref(), args.name.as_deref()).await;
    }
    let manner = Manner::of(&setup, args);
    let Some(name) = &args.name else { return all(context, &setup, &manner).await };
    let entry = setup.server(name)?;
    let scopes: Vec<String> =
        args.scope.iter().flat_map(|text| text.split([' ', ','])).map(ToOwned::to_owned).collect();
    let scopes: Vec<String> = scopes.into_iter().filter(|scope| !scope.is_empty()).collect();
    let wanted = WantedLogin {
        server: entry.name.clone(),
        login: args.login.clone(),
        scopes: (!scopes.is_empty()).then_some(scopes),
        ..manner.wanted(context, &setup, &entry.name)
    };
    reach(context, &entry.name).await?;
    let state = context.app.logins.log_in(&setup, &wanted, &manner.person(context)).await?;
    tell(context, &state);
    let configured = entry.status.as_ref().ok().and_then(|server| server.login.as_deref());
    if let Some(login) = args.login.as_deref().filter(|login| Some(*login) != configured) {
        context.print.hint(&format!(
            "to use this login, set `login = \"{login}\"` under `[servers.{}]`",
            entry.name
        ));
    }
    Ok(Exit::Ok)
}

/// Logs in to a server that another command needs.
pub(crate) async fn log_in(context: &Context, server: &ServerName) -> Result<(), AppError> {
    let setup = context.setup_untold()?;
    let manner = Manner::of(&setup, &LoginArgs::default());
    if context.is_attached() {
        reach(context, server).await?;
    }
    let wanted = manner.wanted(context, &setup, server);
    let state = context.app.logins.log_in(&setup, &wanted, &manner.person(context)).await?;
    tell(context, &state);
    Ok(())
}

/// Connects to the server, so that it says what it needs.
pub(super) async fn reach(context: &Context, server: &ServerName) -> Result<(), AppError> {
    let local = context.local(HubPurpose::Lists)?;
    // Some servers let everybody connect, and refuse the first request.
    let listed = local.hub.list(server, Listing::Tools, Freshness::Current).await;
    match listed.map(drop) {
        Ok(()) | Err(CallError::NeedsLogin { .. } | CallError::Unauthorized { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Logs in to every server that needs it.
async fn all(context: &Context, setup: &Setup, manner: &Manner) -> Result<Exit, AppError> {
    let local = context.local(HubPurpose::Lists)?;
    let (mut done, mut failed) = (0, None);
    for entry in setup.loaded.config.servers.values().filter(|entry| may_have_login(entry)) {
        // Other failures are for `doctor`; here only logins matter.
        drop(local.hub.list(&entry.name, Listing::Tools, Freshness::Current).await);
        if local.hub.state(&entry.name) != Some(ServerState::NeedsLogin) {
            continue;
        }
        let wanted = manner.wanted(context, setup, &entry.name);
        match context.app.logins.log_in(setup, &wanted, &manner.person(context)).await {
            Ok(state) => {
                tell(context, &state);
                done += 1;
            }
            Err(error) => {
                let name = &entry.name;
                context.print.warning(&format!("no login to `{name}`: {}", error.message));
                failed.get_or_insert(error);
            }
        }
    }
    match failed {
        Some(error) => Err(error),
        None if done == 0 => {
            context.print.note("no server needs a login");
            Ok(Exit::Ok)
        }
        None => Ok(Exit::Ok),
    }
}

async fn status(context: &Context, setup: &Setup, name: Option<&str>) -> Result<Exit, AppError> {
    let only = name.map(|name| setup.server(name)).transpose()?.map(|entry| entry.name.clone());
    let servers = setup.loaded.config.servers.values().filter(|entry| may_have_login(entry));
    let mut used: HashSet<(&str, Option<String>)> = servers.clone().map(configured).collect();
    let mut states = Vec::new();
    for entry in servers.filter(|entry| only.as_ref().is_none_or(|only| *only == entry.name)) {
        for state in context.app.logins.all(setup, &entry.name).await? {
            let (url, own) = configured(entry);
            // A login that no entry uses is shown at the first one with its address.
            if own == state.login || used.insert((url, state.login.clone())) {
                states.push(state);
            }
        }
    }
    if context.print.wants_json() {
        context.print.json(&states);
        return Ok(Exit::Ok);
    }
    if states.is_empty() {
        context.print.note("nobody is logged in");
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<String>> = states.iter().map(row).collect();
    let headers = ["server", "login", "account", "issuer", "scopes", "expires", "stored in"];
    context.print.table(&headers, &rows);
    Ok(Exit::Ok)
}

/// The address and the login of an entry.
fn configured(entry: &ServerEntry) -> (&str, Option<String>) {
    let Some(server) = entry.usable() else { return ("", None) };
    let url = match &server.kind {
        Kind::Http(remote) | Kind::Sse(remote) => remote.url.trim_end_matches('/'),
        Kind::Stdio(_) | Kind::Cli(_) | Kind::OpenApi(_) => "",
    };
    (url, server.login.clone())
}

fn row(state: &LoginState) -> Vec<String> {
    let shown = |text: &Option<String>| text.as_deref().map(visible).unwrap_or_default();
    vec![
        state.server.to_string(),
        shown(&state.login),
        shown(&state.account),
        shown(&state.issuer),
        visible(&state.scopes.join(" ")),
        expiry(state),
        state.stored_in.clone(),
    ]
}

/// When a login expires, in words.
fn expiry(state: &LoginState) -> String {
    let Some(expires) = state.expires else { return "unknown".to_owned() };
    let now = Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default();
    let text = if expires > now {
        let left = now.duration_since(expires).abs();
        let before = now.checked_sub(left).unwrap_or(now);
        format!("in {}", age(before))
    } else {
        format!("{} ago", age(expires))
    };
    if state.renews { format!("{text}, renewed by itself") } else { text }
}

/// True if a server can have a login.
pub(super) fn may_have_login(entry: &ServerEntry) -> bool {
    let Some(server) = entry.usable() else { return false };
    server.oauth != OAuth::Off && matches!(server.kind, Kind::Http(_) | Kind::Sse(_))
}

fn tell(context: &Context, state: &LoginState) {
    if context.print.wants_json() {
        context.print.json(state);
        return;
    }
    let who = state.account.as_deref().map(|who| format!(" as {}", visible(who)));
    let who = who.unwrap_or_default();
    context
        .print
        .note(&format!("logged in to `{}`{who}; stored in {}", state.server, state.stored_in));
}

/// The ways in which a person is asked.
struct Manner {
    page: LoginPage,
    qr: bool,
}

/// The person at this terminal.
struct AtTerminal<'a> {
    context: &'a Context,
    print: Printer,
    page: LoginPage,
    qr: bool,
}

// === impl Manner ===

impl Manner {
    fn of(setup: &Setup, args: &LoginArgs) -> Self {
        let opens = !args.no_browser && setup.loaded.config.mcp.login_browser;
        let page = if opens { LoginPage::Opened } else { LoginPage::Printed };
        Self { page, qr: args.qr }
    }

    fn wanted(&self, context: &Context, setup: &Setup, server: &ServerName) -> WantedLogin {
        WantedLogin {
            server: server.clone(),
            login: None,
            scopes: None,
            page: self.page,
            port: context.oauth_port.or(setup.loaded.environment.oauth_port),
            wait: WAIT,
        }
    }

    fn person<'a>(&self, context: &'a Context) -> AtTerminal<'a> {
        AtTerminal { context, print: context.print.clone(), page: self.page, qr: self.qr }
    }
}

// === impl AtTerminal ===

impl AtTerminal<'_> {
    fn scopes(&self, issuer: Option<&str>, scopes: &[String]) {
        if let Some(issuer) = issuer {
            self.print.note(&format!("authorization server: {}", visible(issuer)));
        }
        let scopes = if scopes.is_empty() {
            "chosen by the authorization server".to_owned()
        } else {
            visible(&scopes.join(" "))
        };
        self.print.note(&format!("scopes: {scopes}"));
    }

    /// True if a pasted address is read; a screen reads all keys itself.
    fn reads_lines(&self) -> bool {
        self.print.screen().is_none() && reads_lines(self.page)
    }

    fn address(&self, url: &str) {
        self.print.note(&format!("\n  {}\n", visible(url)));
        if self.qr {
            match qr(url) {
                Some(code) if fits(&code) => self.print.note(&code),
                Some(_) => self.print.warning("the terminal is too narrow for the QR code"),
                None => self.print.warning("the address is too long for a QR code"),
            }
        }
    }
}

impl LoginPerson for AtTerminal<'_> {
    fn show(&self, step: LoginStep<'_>) {
        match step {
            LoginStep::Visit { url, issuer, scopes } => {
                self.scopes(issuer, scopes);
                self.print.note("log in on this page:");
                self.address(url);
                if self.reads_lines() {
                    self.print.note(
                        "if the browser is on another machine, paste the address that it is sent to at \
                         the end, and press Enter",
                    );
                }
            }
            LoginStep::EnterCode { url, filled_in, code, issuer, scopes } => {
                self.scopes(issuer, scopes);
                let code = visible(code);
                self.print.note(&format!("enter the code {code} on this page, with any device:"));
                self.address(filled_in.unwrap_or(url));
            }
            LoginStep::Unusable { reason } => self.print.warning(reason),
            _ => {}
        }
    }

    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, ()> {
        if self.page == LoginPage::Printed {
            return ready(()).boxed();
        }
        async move {
            if let Err(reason) = self.context.app.browser.open(url).await {
                self.print.note(&format!("no browser was opened: {reason}"));
            }
        }
        .boxed()
    }

    fn paste(&self) -> BoxFuture<'_, String> {
        if !self.reads_lines() {
            return pending().boxed();
        }
        async {
            let read = tokio::task::spawn_blocking(|| {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                read.ok().filter(|read| *read > 0).map(|_| line)
            });
            match read.await {
                Ok(Some(line)) => line,
                // Nothing more can be pasted.
                Ok(None) | Err(_) => pending().await,
            }
        }
        .boxed()
    }
}

/// True if lines of the standard input are read: of a person, or of a script that asked for it.
fn reads_lines(page: LoginPage) -> bool {
    has_person() || page == LoginPage::Printed && !stderr_is_terminal()
}

/// True if no line is wider than the terminal, where it would be broken.
fn fits(code: &str) -> bool {
    let columns = code.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    stderr_width().is_none_or(|width| columns <= width)
}

/// A QR code, two rows of modules in each line.
fn qr(text: &str) -> Option<String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Low).ok()?;
    let range = -MARGIN..code.size() + MARGIN;
    let mut lines = Vec::new();
    for row in range.clone().step_by(2) {
        // Dark terminals are the usual ones: light modules are printed.
        let line = range.clone().map(|column| {
            match (code.get_module(column, row), code.get_module(column, row + 1)) {
                (false, false) => '█',
                (false, true) => '▀',
                (true, false) => '▄',
                (true, true) => ' ',
            }
        });
        lines.push(line.collect::<String>());
    }
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qr_code_has_square_modules_and_a_margin() {
        let code = qr("https://example.com/authorize?state=x").unwrap();
        let lines: Vec<&str> = code.lines().collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width));
        assert_eq!(lines.len(), width.div_ceil(2));
        assert!(lines[0].chars().all(|c| c == '█'), "{code}");
        assert!(code.contains('▀') && code.contains('▄'));
        assert_eq!(qr(&"x".repeat(10_000)), None);
    }
}
