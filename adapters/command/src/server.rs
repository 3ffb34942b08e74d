//! A command-line program as a server: its help is read on first use, each call runs it once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::{About, Item, Notice};
use capstan_hub::{Answer, BackChannel, Ticket};
use capstan_lazy::{Attempt, AttemptError, CLOSED, Offer, Outcome, ToolServer, ToolSource};
use capstan_model::{CallError, Effect, Secret, ServerName};
use capstan_process::SpawnError;
use capstan_process::once::{End, Limits, Output, Program};
use capstan_wire::{Json, object};
use serde_json::{Map, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::{debug, info};

use crate::answer::answer;
use crate::cache::Entry;
use crate::discover::{Found, discover};
use crate::settings::CommandSettings;
use crate::tool::{Tool, tools};

/// Time before the first progress notice of a call.
const SILENCE: Duration = Duration::from_secs(1);

/// Minimum interval between two notices of one call.
const PAUSE: Duration = Duration::from_millis(250);

/// Number of concurrent calls; further ones wait.
const AT_ONCE: usize = 16;

/// Number of stderr lines that are kept.
const KEPT: usize = 200;

/// Variables that prevent a program from waiting for a person; the configuration takes precedence.
const UNATTENDED: &[(&str, &str)] = &[
    ("EDITOR", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
];

/// A command-line program as a server.
pub type CommandServer = ToolServer<CommandSource>;

/// A command-line program as a source of tools.
pub struct CommandSource {
    settings: Arc<CommandSettings>,
    /// The program for calls.
    program: Program,
    stderr: Mutex<VecDeque<String>>,
    /// Limits the concurrent calls.
    places: Semaphore,
}

/// The result of the discovery.
pub struct Known {
    tools: Vec<Tool>,
    offer: Offer,
}

// === impl CommandSource ===

impl From<CommandSettings> for CommandSource {
    fn from(settings: CommandSettings) -> Self {
        let mut program = settings.program.clone();
        for (name, value) in UNATTENDED {
            let value = Secret::new((*value).to_owned());
            program.environment.entry((*name).to_owned()).or_insert(value);
        }
        Self {
            settings: Arc::new(settings),
            program,
            stderr: Mutex::new(VecDeque::new()),
            places: Semaphore::new(AT_ONCE),
        }
    }
}

impl ToolSource for CommandSource {
    type Known = Known;

    fn name(&self) -> &ServerName {
        &self.settings.name
    }

    fn read(&self) -> impl Future<Output = Outcome<Known>> + Send + 'static {
        know(Arc::clone(&self.settings))
    }

    async fn call<'a>(
        &'a self,
        known: &'a Known,
        ticket: &'a Ticket,
        back: &'a BackChannel,
        closing: &'a Attempt<Known>,
    ) -> Result<Answer, CallError> {
        let item = &ticket.id().item;
        let invalid =
            |problem| CallError::InvalidArguments { item: ticket.id().to_string(), problem };
        let Some(tool) = known.tools.iter().find(|tool| tool.name == *item) else {
            let (kind, name) = (ticket.kind(), ticket.id().to_string());
            return Err(CallError::Unknown { kind, name, nearest: Vec::new() });
        };
        let arguments =
            object::get(ticket.params(), "arguments").unwrap_or_else(Json::empty_object);
        let arguments: Map<String, serde_json::Value> =
            arguments.read().map_err(|_| invalid("they are not an object".to_owned()))?;
        let line = tool.command_line(&arguments).map_err(invalid)?;
        debug!(server = %self.settings.name, tool = item, words = line.len(), "running");
        let limit = self.settings.timeout;
        let Ok(_place) = timeout(limit, self.places.acquire()).await else {
            let server = self.settings.name.clone();
            return Err(CallError::TimedOut { server, limit, may_have_run: false });
        };
        let output = self.run_once(ticket, &line, back, closing).await?;
        self.keep(&output);
        self.judge(ticket, &output)
    }

    async fn ping<'a>(
        &'a self,
        _: impl Future<Output = Result<Arc<Known>, CallError>> + Send + 'a,
    ) -> Result<(), CallError> {
        Ok(())
    }

    fn stderr(&self) -> Vec<String> {
        lock(&self.stderr).iter().cloned().collect()
    }
}

impl CommandSource {
    /// Runs the program, and sends progress notices if it takes long.
    async fn run_once(
        &self,
        ticket: &Ticket,
        line: &[String],
        back: &BackChannel,
        closing: &Attempt<Known>,
    ) -> Result<Output, CallError> {
        let limits = Limits { time: self.settings.timeout, output: self.settings.output };
        let wanted = back.wishes().progress;
        let mut progress = Progress::new(&self.settings.name, back);
        let mut heard = |line: &str| {
            if wanted {
                progress.heard(line);
            }
        };
        let (server, closed) = (self.settings.name.clone(), CLOSED.to_owned());
        let name = server.clone();
        let unreachable = |reason| CallError::Unreachable { server: name.clone(), reason };
        if closing.is_closed() {
            return Err(unreachable(closed));
        }
        tokio::select! {
            biased;
            () = closing.closed() => Err(match ticket.effect() {
                Effect::Read => unreachable(closed),
                // It was running; its progress is unknown.
                Effect::Write | Effect::Unknown => CallError::OutcomeUnknown { server, reason: closed },
            }),
            output = self.program.run(line, limits, &mut heard) => {
                output.map_err(|error| unreachable(hinted(&self.settings, &error)))
            }
        }
    }

    /// Converts the end of a run to an answer or an error.
    fn judge(&self, ticket: &Ticket, output: &Output) -> Result<Answer, CallError> {
        let server = self.settings.name.clone();
        let reads = ticket.effect() == Effect::Read;
        match output.end {
            End::Code(code) => Ok(Answer::Whole(answer(code, output))),
            End::TimedOut => {
                let limit = self.settings.timeout;
                Err(CallError::TimedOut { server, limit, may_have_run: !reads })
            }
            End::Killed => {
                Err(CallError::OutcomeUnknown { server, reason: "it was killed".to_owned() })
            }
        }
    }

    /// Keeps the last lines of stderr for diagnosis.
    fn keep(&self, output: &Output) {
        let text = String::from_utf8_lossy(&output.stderr.bytes);
        let lines: Vec<&str> = text.lines().rev().take(KEPT).collect();
        let mut kept = lock(&self.stderr);
        for line in lines.into_iter().rev() {
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(self.settings.program.mask(line));
        }
    }
}

// === impl Known ===

impl AsRef<Offer> for Known {
    fn as_ref(&self) -> &Offer {
        &self.offer
    }
}

/// The reason why the program cannot be started, with a hint.
fn hinted(settings: &CommandSettings, error: &SpawnError) -> String {
    format!("{error}; {}", error.hint(&settings.name))
}

/// Discovers the tools.
async fn know(settings: Arc<CommandSettings>) -> Result<Arc<Known>, AttemptError> {
    // The program must exist, even if the configuration describes its tools.
    settings.program.find().map_err(|error| hinted(&settings, &error))?;
    let found = if settings.presets.is_empty() {
        let wait = settings.startup_timeout;
        let found = timeout(wait, recall(&settings)).await.map_err(|_| too_slow(wait))?;
        found.map_err(|error| hinted(&settings, &error))?
    } else {
        Found::default()
    };
    let tools = tools(&settings, &found)?;
    if tools.is_empty() {
        return Err(nothing(&settings, &found).into());
    }
    info!(server = %settings.name, tools = tools.len(), "its help is read");
    let items = tools
        .iter()
        .map(|tool| Item { name: tool.name.clone(), definition: tool.definition.clone() });
    let about = About {
        protocol: "cli".to_owned(),
        title: Some(settings.binary().to_owned()),
        capabilities: Json::from_value(&json!({ "tools": {} })).ok(),
        ..About::default()
    };
    let lacking = missing(&settings, &found);
    let offer = Offer { items: items.collect(), about: Arc::new(about), lacking };
    Ok(Arc::new(Known { tools, offer }))
}

fn too_slow(wait: Duration) -> String {
    format!(
        "its help was not read within {wait:?}; raise `startup_timeout`, lower `cli_depth`, or name \
         the subcommands under `cli_only`"
    )
}

fn nothing(settings: &CommandSettings, found: &Found) -> String {
    missing(settings, found).unwrap_or_else(|| format!("`{}` offers nothing", settings.binary()))
}

/// Subcommands in `cli_only` that do not exist.
fn missing(settings: &CommandSettings, found: &Found) -> Option<String> {
    if found.unknown.is_empty() {
        return None;
    }
    let names: Vec<String> = found.unknown.iter().map(|name| format!("`{name}`")).collect();
    let (binary, names) = (settings.binary(), names.join(", "));
    Some(format!("`cli_only` names {names}, which `{binary}` does not have"))
}

/// Loads the cached commands, or discovers and caches them.
async fn recall(settings: &Arc<CommandSettings>) -> Result<Found, SpawnError> {
    let at = Arc::clone(settings);
    let looked = tokio::task::spawn_blocking(move || {
        let entry = Entry::of(&at);
        let found = entry.as_ref().and_then(Entry::load);
        (entry, found)
    });
    let (entry, kept) = looked.await.unwrap_or_default();
    if let Some(found) = kept {
        return Ok(found);
    }
    let found = discover(settings).await?;
    if let Some(entry) = entry {
        let (kept, program) = (found.clone(), settings.program.command.clone());
        let stored = tokio::task::spawn_blocking(move || entry.store(&program, &kept)).await;
        if !matches!(stored, Ok(Ok(()))) {
            info!(server = %settings.name, "the tools could not be cached");
        }
    }
    Ok(found)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends progress notices of a long call.
struct Progress<'a> {
    server: &'a ServerName,
    back: &'a BackChannel,
    lines: u32,
    next: Instant,
}

// === impl Progress ===

impl<'a> Progress<'a> {
    fn new(server: &'a ServerName, back: &'a BackChannel) -> Self {
        Self { server, back, lines: 0, next: Instant::now() + SILENCE }
    }

    fn heard(&mut self, line: &str) {
        self.lines = self.lines.saturating_add(1);
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + PAUSE;
        let params = json!({ "progress": self.lines, "message": line });
        let Ok(params) = Json::from_value(&params) else { return };
        self.back.notice(Notice::Progress {
            server: self.server.clone(),
            done: f64::from(self.lines),
            total: None,
            message: Some(line.to_owned()),
            params,
        });
    }
}
