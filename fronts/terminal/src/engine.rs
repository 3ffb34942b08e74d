//! The half of the conversation on the runtime: handles lines, runs turns, watches servers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use capstan_app::AppError;
use capstan_app::api::Local;
use capstan_app::chat::{Talk, Watch};
use capstan_hub::catalog::Patience;
use capstan_hub::ports::{BoxFuture, ChatPart, Role};
use capstan_model::ServerState;
use capstan_safety::clean::clean;
use capstan_text::conversation::{Commands, Conversing, Output, Printed};
use capstan_text::gather::{self, Report};
use capstan_text::message::{self, Typed};
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::front::ScreenFront;
use crate::mailbox::Mailbox;
use crate::news::{Author, News, Outcome, Request, Status, Wish};
use crate::overview::Answers;
use crate::raw_screen::RawScreen;
use crate::screen::{Screen, Words};
use crate::slash;
use crate::theme::Colours;

/// The interval at which the states of servers are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How long a prompt waits for the lists of servers that were never seen.
const LIST_WAIT: Patience = Patience::UntilFirstOr(Duration::from_secs(8));

/// The most operations that run beside the lines.
const MAX_BESIDE: usize = 32;

/// The most messages that wait while an answer runs.
const MAX_WAITING: usize = 16;

/// The most messages of a continued conversation that are shown.
const MAX_SHOWN: usize = 200;

/// Receives a line of the log.
pub type LogSink = Box<dyn Fn(&str) + Send>;

/// The settings of a screen.
#[derive(Clone, Copy)]
pub struct Settings {
    /// The colours that may be used.
    pub colours: Colours,
    /// Sends lines of the log to a sink, or to stderr again.
    pub divert_log: fn(Option<LogSink>),
}

/// The way in which a conversation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The person has ended it.
    ByPerson,
    /// A signal has ended it.
    BySignal,
}

/// The consequence of a step.
enum Next {
    Go,
    End(End),
}

/// The shared parts of the engine.
struct Engine<'a> {
    commands: &'a dyn Commands,
    mail: Arc<Mailbox>,
    front: Arc<ScreenFront>,
    local: Arc<Local>,
    requests: UnboundedReceiver<Request>,
    signals: Signals,
    /// Futures that run beside the lines.
    beside: FuturesUnordered<BoxFuture<'a, ()>>,
    /// True while the overlay is open.
    is_overlay_open: bool,
    look: Interval,
    status: Status,
    /// Lines that were submitted while another one was handled.
    waiting: VecDeque<String>,
}

/// The signals that end the process.
struct Signals([Signal; 3]);

/// Ends the screen when it is dropped.
struct Ending(Arc<Mailbox>);

/// Sends the log to stderr again when it is dropped.
struct Diverted(fn(Option<LogSink>));

/// Holds a conversation on the terminal of this process.
///
/// # Errors
/// If the terminal cannot be drawn on, or the conversation to continue cannot be read.
pub async fn run(conversing: Conversing<'_>, settings: Settings) -> Result<End, AppError> {
    let Conversing { parts, resume, first, allow, commands, names } = conversing;
    let mail = Arc::new(Mailbox::new());
    let front = Arc::new(ScreenFront::new(&mail, allow));
    let mut talk = Talk::new(parts, Arc::<ScreenFront>::clone(&front));
    if resume {
        talk.resume()?;
    }
    let failed = |error: std::io::Error| AppError::internal(format!("the terminal: {error}"));
    let signals = Signals::new().map_err(failed)?;
    let raw = RawScreen::open().map_err(failed)?;
    // Dropped first, also by a panic, so that nothing waits for a screen that waits for news.
    let ending = Ending(Arc::clone(&mail));
    let _diverted = Diverted::new(settings.divert_log, &mail);
    let (requester, requests) = unbounded_channel();
    let own = slash::COMMANDS.into_iter().chain(commands.names());
    let words = Words { commands: own.collect(), names };
    let screen = Screen::new(&mail, requester, settings.colours, words);
    let drawing = tokio::task::spawn_blocking(move || screen.run(raw));
    let mut engine = Engine {
        commands,
        front,
        local: Arc::clone(talk.local()),
        requests,
        signals,
        beside: FuturesUnordered::new(),
        is_overlay_open: false,
        look: every(LOOK),
        status: Status::default(),
        waiting: first.into_iter().collect(),
        mail: Arc::clone(&mail),
    };
    engine.greet(&talk);
    engine.connect();
    let end = engine.run(&mut talk).await;
    drop(ending);
    match drawing.await {
        Ok(Ok(())) => Ok(end),
        Ok(Err(error)) => Err(failed(error)),
        Err(error) => Err(AppError::internal(format!("the screen: {error}"))),
    }
}

fn every(time: Duration) -> Interval {
    let mut interval = interval(time);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

// === impl Engine ===

impl<'a> Engine<'a> {
    /// Handles lines until the person or a signal ends the conversation.
    async fn run(&mut self, talk: &mut Talk) -> End {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                match self.handle(talk, &line).await {
                    Next::Go => continue,
                    Next::End(end) => return end,
                }
            }
            let request = tokio::select! {
                biased;
                () = self.signals.any() => return End::BySignal,
                request = self.requests.recv() => request,
                _ = self.look.tick() => {
                    self.look_at(talk);
                    continue;
                }
                Some(()) = self.beside.next() => continue,
            };
            match request {
                Some(Request::Submit(line)) => self.waiting.push_back(line),
                Some(Request::Overlay(wish)) => self.wish(wish),
                Some(Request::Cancel) => {}
                // Without a screen nobody sees anything.
                Some(Request::Quit) | None => return End::ByPerson,
            }
        }
    }

    /// Handles a line; meanwhile the person can stop it, and submit further ones.
    async fn handle(&mut self, talk: &mut Talk, line: &str) -> Next {
        self.mail.tell(News::Begun(line.to_owned()));
        let (mail, front) = (Arc::clone(&self.mail), Arc::clone(&self.front));
        let mut work = Box::pin(handle(self.commands, &mail, &front, talk, line));
        let next = loop {
            let request = tokio::select! {
                biased;
                () = self.signals.any() => break Ok(Next::End(End::BySignal)),
                request = self.requests.recv() => request,
                next = &mut work => break next,
                Some(()) = self.beside.next() => continue,
                _ = self.look.tick() => {
                    self.look_at_servers();
                    continue;
                }
            };
            match request {
                Some(Request::Submit(line)) if self.waiting.len() < MAX_WAITING => {
                    self.waiting.push_back(line);
                }
                Some(Request::Submit(_)) => {
                    let text = format!("not sent: {MAX_WAITING} messages wait already");
                    mail.tell(News::Printed(Printed::Warning, text));
                }
                Some(Request::Cancel) => {
                    drop(work);
                    self.waiting.clear();
                    mail.tell(News::Done(Outcome::Stopped));
                    return Next::Go;
                }
                Some(Request::Overlay(wish)) => self.wish(wish),
                Some(Request::Quit) | None => break Ok(Next::End(End::ByPerson)),
            }
        };
        drop(work);
        self.look_at(talk);
        self.mail.tell(News::Done(Outcome::Handled));
        next.unwrap_or_else(|error| {
            tell_error(&self.mail, &error);
            Next::Go
        })
    }

    /// Answers a wish of the overlay beside the lines.
    fn wish(&mut self, wish: Wish) {
        match wish {
            Wish::Servers => self.is_overlay_open = true,
            Wish::Nothing => self.is_overlay_open = false,
            Wish::Tools(_)
            | Wish::Resources(_)
            | Wish::Prompts(_)
            | Wish::Messages(_)
            | Wish::Rule(_)
            | Wish::Switch(..)
            | Wish::Refresh(_)
            | Wish::Login(_) => {}
        }
        let answers: Answers<'a> = Answers {
            local: Arc::clone(&self.local),
            front: Arc::clone(&self.front),
            mail: Arc::clone(&self.mail),
            commands: self.commands,
        };
        if self.beside.len() < MAX_BESIDE {
            self.beside.push(answers.answer(wish).boxed());
        }
    }

    fn greet(&mut self, talk: &Talk) {
        self.look_at(talk);
        if talk.conversation().is_some() {
            return show_conversation(&self.mail, talk);
        }
        let note = |text: String| self.mail.tell(News::Printed(Printed::Note, text));
        match talk.model() {
            Ok(choice) => note(format!("You talk to {}.", choice.label)),
            Err(error) => {
                let (message, hint) = (error.message, error.hint);
                self.mail.tell(News::Printed(Printed::Warning, message));
                if let Some(hint) = hint {
                    self.mail.tell(News::Printed(Printed::Hint, hint));
                }
                note("Commands such as /mcp and /call work without a model.".to_owned());
            }
        }
        note("/help lists the commands, /quit ends.".to_owned());
    }

    /// Connects all servers beside the conversation. A server that fails shows its state.
    fn connect(&self) {
        if self.local.switched_off {
            return;
        }
        let local = Arc::clone(&self.local);
        let all = async move {
            let start = |name| local.hub.start(name);
            drop(join_all(local.hub.servers().map(start)).await);
        };
        self.beside.push(all.boxed());
    }

    /// Tells the screen of changed facts.
    fn look_at(&mut self, talk: &Talk) {
        let tokens = talk.tokens();
        self.status.model = talk.model().ok().map(|choice| choice.label.clone());
        (self.status.input, self.status.output) = (tokens.input, tokens.output);
        let status = self.status.clone();
        self.look_at_servers();
        // Told once, with or without changes of servers.
        if status == self.status {
            self.mail.tell(News::Status(status));
        }
    }

    fn look_at_servers(&mut self) {
        if self.is_overlay_open {
            self.wish(Wish::Servers);
        }
        let hub = &self.local.hub;
        let is_ready = |state: Option<ServerState>| match state {
            Some(ServerState::Connected | ServerState::Degraded(_)) => true,
            Some(
                ServerState::Disabled
                | ServerState::AwaitingApproval
                | ServerState::Cached
                | ServerState::Connecting
                | ServerState::NeedsLogin
                | ServerState::Idle
                | ServerState::Failed(_),
            )
            | None => false,
        };
        let ready = hub.servers().filter(|name| is_ready(hub.state(name))).count();
        let servers = hub.servers().len();
        if (self.status.ready, self.status.servers) != (ready, servers) {
            (self.status.ready, self.status.servers) = (ready, servers);
            self.mail.tell(News::Status(self.status.clone()));
        }
    }
}

/// Handles one line.
async fn handle(
    commands: &dyn Commands,
    mail: &Arc<Mailbox>,
    front: &Arc<ScreenFront>,
    talk: &mut Talk,
    line: &str,
) -> Result<Next, AppError> {
    let typed = message::read(line);
    if let Typed::Command(name, rest) = typed {
        if let Some(next) = own_command(mail, &**front, talk, (name, rest)).await? {
            return Ok(next);
        }
        let output: Arc<dyn Output> = Arc::<ScreenFront>::clone(front);
        if commands.run(name, rest, output).await?.is_some() {
            return Ok(Next::Go);
        }
    }
    // Nothing is read from servers if there is no model to read it.
    talk.model()?;
    let report: Arc<dyn Report> = Arc::<ScreenFront>::clone(front);
    let messages = gather::messages(talk.local(), typed, LIST_WAIT, &report).await?;
    let outcome = talk.answer(messages, &**front).await?;
    if outcome.is_cut {
        let text = "the answer reached the limit of its length".to_owned();
        mail.tell(News::Printed(Printed::Warning, text));
    }
    Ok(Next::Go)
}

/// Runs a command that needs the conversation; `None` if there is no such command.
async fn own_command(
    mail: &Mailbox,
    watch: &dyn Watch,
    talk: &mut Talk,
    (name, rest): (&str, &str),
) -> Result<Option<Next>, AppError> {
    let note = |text: String| mail.tell(News::Printed(Printed::Note, text));
    match name {
        "quit" | "exit" => return Ok(Some(Next::End(End::ByPerson))),
        "new" | "clear" => {
            talk.leave();
            mail.tell(News::Cleared);
            note("The next message begins another conversation.".to_owned());
        }
        "resume" => {
            talk.resume()?;
            show_conversation(mail, talk);
        }
        "model" => {
            if !rest.is_empty() {
                talk.choose(rest)?;
            }
            note(format!("You talk to {}.", talk.model()?.label));
        }
        "compact" => {
            if !talk.compact(watch).await? {
                note("nothing can be left out yet".to_owned());
            }
        }
        "export" => note(format!("wrote {}", slash::export(talk, rest)?)),
        "cost" => note(slash::cost(talk)),
        // Without servers, the text says why there are none.
        "mcp" if rest.is_empty() && talk.local().none().is_none() => mail.tell(News::Overlay),
        "help" => {
            mail.tell(News::Printed(Printed::Data, slash::help()));
            return Ok(None);
        }
        _ => return Ok(None),
    }
    Ok(Some(Next::Go))
}

/// Shows the messages of a continued conversation.
fn show_conversation(mail: &Mailbox, talk: &Talk) {
    mail.tell(News::Cleared);
    let Some(conversation) = talk.conversation() else { return };
    let messages = conversation.messages();
    let left = messages.len().saturating_sub(MAX_SHOWN);
    if left > 0 {
        let text = format!("{left} earlier messages are not shown");
        mail.tell(News::Printed(Printed::Note, text));
    }
    for message in messages.iter().skip(left) {
        let author = match message.role {
            Role::User => Author::Person,
            Role::Assistant => Author::Model,
        };
        for part in &message.parts {
            match part {
                ChatPart::Text { text, .. } if !text.trim().is_empty() => {
                    mail.tell(News::Said(author, clean(text).into_owned()));
                }
                ChatPart::Call(call) => {
                    let text = format!("→ {} {}", call.name, call.arguments);
                    mail.tell(News::Printed(Printed::Note, clean(&text).into_owned()));
                }
                ChatPart::Text { .. }
                | ChatPart::Image(_)
                | ChatPart::Result(_)
                | ChatPart::Reasoning(_) => {}
            }
        }
    }
}

fn tell_error(mail: &Mailbox, error: &AppError) {
    mail.tell(News::Printed(Printed::Error, clean(&error.message).into_owned()));
    if let Some(hint) = &error.hint {
        mail.tell(News::Printed(Printed::Hint, clean(hint).into_owned()));
    }
}

// === impl Signals ===

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    /// Waits for one of them.
    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

// === impl Diverted ===

impl Diverted {
    fn new(divert: fn(Option<LogSink>), mail: &Arc<Mailbox>) -> Self {
        let mail = Arc::clone(mail);
        divert(Some(Box::new(move |line| {
            let text = clean(line.trim_end()).into_owned();
            let kind = match text.strip_prefix("warning: ") {
                Some(text) => (Printed::Warning, text.to_owned()),
                None => (Printed::Note, text),
            };
            mail.tell(News::Printed(kind.0, kind.1));
        })));
        Self(divert)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.tell(News::End);
    }
}

impl Drop for Diverted {
    fn drop(&mut self) {
        (self.0)(None);
    }
}
