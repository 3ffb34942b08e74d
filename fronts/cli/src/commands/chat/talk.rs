//! The conversation on a terminal, line by line: no part of the screen is redrawn, so that screen
//! readers and logs can follow it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_app::chat::{Talk, TurnEvent, Watch};
use capstan_app::{AppError, HubPurpose};
use capstan_model::Kind;
use capstan_safety::clean::clean;
use capstan_text::clean::one_line;
use capstan_text::message::{self, Typed};
use capstan_text::screen::has_person;
use inquire::autocompletion::{Autocomplete, Replacement};
use inquire::{CustomUserError, InquireError, Text};
use tokio::signal::unix::{SignalKind, signal};

use super::front::PersonFront;
use super::full_screen::parts;
use super::{messages, slash};
use crate::args::ChatArgs;
use crate::commands::tell_missing;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Printer;

/// Commands that only a conversation has, and those of `slash`.
const COMMANDS: [&str; 11] = [
    "/help",
    "/quit",
    "/new",
    "/model",
    "/cost",
    "/mcp",
    "/tools",
    "/call",
    "/read",
    "/why",
    "/mcp desc",
];

const HELP: &str = "In a conversation:
  /new                      begin another conversation
  /model [PROVIDER/NAME]    show or change the model
  /cost                     show the tokens of this conversation
  /quit                     end; Ctrl-C stops an answer";

/// The longest arguments of a call that are shown.
const MAX_ARGUMENTS: usize = 120;

/// The most suggestions that are shown.
const MAX_SUGGESTIONS: usize = 50;

/// A running conversation.
struct Lines<'a> {
    context: &'a Context,
    talk: Talk,
}

/// A line of the user.
enum Line {
    Text(String),
    Nothing,
    End,
}

/// What follows a line.
enum Next {
    Line,
    End(Exit),
}

/// Prints an answer while it arrives.
struct Shown {
    print: Printer,
    /// True if the cursor stands behind a text.
    within_line: AtomicBool,
}

/// Completes commands, prompts and resources that were seen before; starts nothing.
#[derive(Clone)]
struct Known {
    commands: Vec<String>,
    resources: Vec<String>,
}

pub(super) async fn run(context: &Context, args: &ChatArgs) -> Result<Exit, AppError> {
    if !has_person() {
        return Err(AppError::usage("a conversation needs a terminal")
            .hint("`capstan -p TEXT` answers once, also in scripts"));
    }
    let local = Arc::new(context.local(HubPurpose::Calls)?);
    let front = Arc::new(PersonFront::new(&context.print, &args.allow)?);
    let mut talk = Talk::new(parts(context, local, args), front);
    if args.resume {
        talk.resume()?;
    }
    let mut lines = Lines { context, talk };
    lines.greet();
    let mut first = Some(args.text.join(" ")).filter(|text| !text.trim().is_empty());
    loop {
        let line = if let Some(text) = first.take() {
            Line::Text(text)
        } else {
            tokio::select! {
                biased;
                () = crate::terminated() => return Ok(Exit::Interrupted),
                line = ask(Known::of(context)) => line,
            }
        };
        let text = match line {
            Line::Text(text) => text,
            Line::Nothing => continue,
            Line::End => return Ok(Exit::Ok),
        };
        let next = tokio::select! {
            biased;
            next = stopped(&context.print) => Ok(next),
            next = lines.line(text.trim()) => next,
        };
        match next {
            Ok(Next::Line) => {}
            Ok(Next::End(exit)) => return Ok(exit),
            // The conversation goes on after an error.
            Err(error) => context.print.failure(&error),
        }
    }
}

/// Waits for Ctrl-C, which ends what runs for the current line, or SIGTERM, which ends everything.
async fn stopped(print: &Printer) -> Next {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let next = match signals {
        (Ok(mut interrupt), Ok(mut terminate)) => tokio::select! {
            _ = interrupt.recv() => Next::Line,
            _ = terminate.recv() => Next::End(Exit::Interrupted),
        },
        (_, _) => std::future::pending().await,
    };
    print.raw(b"\n");
    print.note("stopped");
    next
}

/// Asks for a line in a separate thread, because typing takes time.
async fn ask(known: Known) -> Line {
    let asked = tokio::task::spawn_blocking(|| Text::new("You:").with_autocomplete(known).prompt());
    match asked.await {
        Ok(Ok(text)) if text.trim().is_empty() => Line::Nothing,
        Ok(Ok(text)) => Line::Text(text),
        Ok(Err(InquireError::OperationCanceled)) => Line::Nothing,
        Ok(Err(_)) | Err(_) => Line::End,
    }
}

// === impl Lines ===

impl Lines<'_> {
    fn greet(&self) {
        let print = &self.context.print;
        match self.talk.model() {
            Ok(choice) => print.note(&format!("You talk to {}.", choice.label)),
            Err(error) => {
                print.warning(&error.message);
                if let Some(hint) = &error.hint {
                    print.hint(hint);
                }
                print.note("Commands such as /mcp and /call work without a model.");
            }
        }
        print.note("/help lists the commands, /quit ends.");
    }

    async fn line(&mut self, text: &str) -> Result<Next, AppError> {
        let typed = message::read(text);
        if let Typed::Command(name, rest) = typed {
            match name {
                "quit" | "exit" => return Ok(Next::End(Exit::Ok)),
                "new" => {
                    self.talk.leave();
                    self.context.print.note("The next message begins another conversation.");
                    return Ok(Next::Line);
                }
                "model" => return self.change_model(rest),
                "cost" => {
                    self.tell_cost();
                    return Ok(Next::Line);
                }
                "help" => self.context.print.data(HELP),
                _ => {}
            }
            if slash::run(self.context, name, rest).await?.is_some() {
                return Ok(Next::Line);
            }
        }
        self.answer(typed).await
    }

    fn change_model(&mut self, wanted: &str) -> Result<Next, AppError> {
        if !wanted.is_empty() {
            self.talk.choose(wanted)?;
        }
        let choice = self.talk.model()?;
        self.context.print.note(&format!("You talk to {}.", choice.label));
        Ok(Next::Line)
    }

    fn tell_cost(&self) {
        let tokens = self.talk.tokens();
        let (input, output, cached) = (tokens.input, tokens.output, tokens.cached);
        self.context.print.note(&format!(
            "{input} tokens read ({cached} of them from a cache), {output} tokens written"
        ));
    }

    async fn answer(&mut self, typed: Typed<'_>) -> Result<Next, AppError> {
        // Nothing is read from servers if there is no model to read it.
        self.talk.model()?;
        let messages = messages(self.context, self.talk.local(), typed).await?;
        let shown = Shown::new(&self.context.print);
        let outcome = self.talk.answer(messages, &shown).await;
        shown.end_line();
        if outcome?.is_cut {
            self.context.print.warning("the answer reached the limit of its length");
        }
        Ok(Next::Line)
    }
}

// === impl Shown ===

impl Shown {
    fn new(print: &Printer) -> Self {
        Self { print: print.clone(), within_line: AtomicBool::new(false) }
    }

    fn end_line(&self) {
        if self.within_line.swap(false, Ordering::Relaxed) {
            self.print.raw(b"\n");
        }
    }
}

impl Watch for Shown {
    fn event(&self, event: TurnEvent) {
        match event {
            TurnEvent::Text(text) => {
                let text = clean(&text);
                self.within_line.store(!text.ends_with('\n'), Ordering::Relaxed);
                self.print.raw(text.as_bytes());
            }
            // It is not part of the answer.
            TurnEvent::Reasoning(_) => {}
            TurnEvent::Retrying { wait, reason } => {
                self.end_line();
                let seconds = wait.as_secs_f64();
                self.print.warning(&format!("{reason}; trying again in {seconds:.1} seconds"));
            }
            TurnEvent::Calling(call) => {
                self.end_line();
                let arguments = one_line(call.arguments.as_str(), MAX_ARGUMENTS);
                self.print.note(&format!("→ {} {arguments}", one_line(&call.name, MAX_ARGUMENTS)));
            }
            TurnEvent::Called(report) => {
                let sign = if report.is_error { "✗" } else { "←" };
                self.print.note(&format!(
                    "{sign} {}: {}",
                    report.tool,
                    one_line(&report.summary, 400)
                ));
            }
            TurnEvent::Compacted => self.print.note("earlier messages were summarized"),
            TurnEvent::Offered(offer) => {
                tell_missing(&self.print, &offer.missing);
                if let Some(note) = &offer.note {
                    self.print.warning(note);
                }
            }
        }
    }
}

// === impl Known ===

impl Known {
    fn of(context: &Context) -> Self {
        let names = |kind, sign: &str| {
            let remembered = context.app.names.remembered(kind);
            let each = remembered.into_iter().flat_map(|(server, names)| {
                names.into_iter().map(move |name| format!("{server}:{name}"))
            });
            each.map(|name| one_line(&format!("{sign}{name}"), 200)).collect::<Vec<_>>()
        };
        let own = COMMANDS.iter().map(|&command| command.to_owned());
        let commands = own.chain(names(Kind::Prompt, "/")).collect();
        Self { commands, resources: names(Kind::Resource, "@") }
    }

    /// The text before the word that is being typed, and the candidates for the word.
    fn candidates<'a>(&'a self, input: &'a str) -> (&'a str, &'a str, &'a [String]) {
        if input.starts_with('/') {
            return ("", input, &self.commands);
        }
        let at = input.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, word) = input.split_at_checked(at).unwrap_or(("", input));
        if word.starts_with('@') { (before, word, &self.resources) } else { (input, "", &[]) }
    }
}

impl Autocomplete for Known {
    fn get_suggestions(&mut self, input: &str) -> Result<Vec<String>, CustomUserError> {
        let (_, word, candidates) = self.candidates(input);
        let fitting = candidates.iter().filter(|name| name.starts_with(word) && *name != word);
        Ok(fitting.take(MAX_SUGGESTIONS).cloned().collect())
    }

    fn get_completion(
        &mut self,
        input: &str,
        highlighted: Option<String>,
    ) -> Result<Replacement, CustomUserError> {
        let first = self.get_suggestions(input)?.into_iter().next();
        let (before, ..) = self.candidates(input);
        Ok(highlighted.or(first).map(|chosen| format!("{before}{chosen}")))
    }
}
