//! Asks a person on the terminal whether a call may run.

use capstan_hub::Ground;
use capstan_hub::approvals::{Extent, Span, Width};
use capstan_hub::ports::{Approval, Question};

use crate::args::AskArgs;
use crate::clean::{one_line, wrap};
use crate::form::Prompter;
use crate::print::Printer;

/// Columns of what is shown of a call, so that no terminal breaks a line where a server likes.
const WIDTH: usize = 64;

/// Most lines of arguments that are shown, so that they cannot scroll the rest away.
const MAX_LINES: usize = 10;

/// Longest name that is shown.
const MAX_NAME: usize = 120;

/// How calls that a rule asks about are approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// Who types the command has decided already.
    Believed,
    /// A person is asked.
    Ask,
    /// Nobody is there to ask.
    Nobody,
}

// === impl Confirm ===

impl Confirm {
    /// What `--ask` means here.
    pub(crate) fn of(print: &Printer, ask: AskArgs) -> Self {
        match (ask.ask, print.has_person()) {
            (false, _) => Self::Believed,
            (true, true) => Self::Ask,
            (true, false) => Self::Nobody,
        }
    }
}

/// Asks. Closing the question is a no.
pub(crate) fn ask(prompter: &mut dyn Prompter, question: &Question) -> Approval {
    let Question { id, kind, effect, rule, offers, caller, .. } = question;
    let (server, item) = (&id.server, one_line(&id.item, MAX_NAME));
    prompter.say(&format!("may the {} `{item}` of `{server}` run?", kind.as_str()));
    let arguments = wrap(&question.shown_arguments(), WIDTH);
    for (at, line) in arguments.iter().take(MAX_LINES).enumerate() {
        let label = if at == 0 { "arguments" } else { "" };
        prompter.say(&format!("  {label:<10} {line}"));
    }
    if arguments.len() > MAX_LINES {
        prompter.say("             …");
    }
    prompter.say(&format!("  {:<10} {}", "effect", effect.as_str()));
    prompter.say(&format!("  {:<10} {}", "caller", one_line(&caller.subject, MAX_NAME)));
    prompter.say(&format!("  {:<10} {}", "rule", one_line(rule, MAX_NAME)));
    let mut choices: Vec<String> =
        offers.iter().map(|extent| choice(*extent, server.as_str(), &item)).collect();
    choices.extend(["no", "cancel"].map(str::to_owned));
    let shown: Vec<&str> = choices.iter().map(String::as_str).collect();
    let chosen = prompter.select("Run it?", &shown, 0).ok();
    match chosen.and_then(|place| offers.get(place)) {
        Some(extent) => Approval::Yes(Ground::Asked, *extent),
        None => Approval::No(Ground::Refused),
    }
}

/// What a person chooses from.
pub(crate) fn choice(extent: Extent, server: &str, item: &str) -> String {
    let Extent::Wider(width, span) = extent else { return "yes, this once".to_owned() };
    let what = match width {
        Width::Item => format!("`{item}`"),
        Width::Arguments => format!("`{item}` with these arguments"),
        Width::ServerReads => format!("whatever `{server}` only reads"),
        Width::Server => format!("everything of `{server}`"),
    };
    match span {
        Span::Session => format!("yes, and {what} for this session"),
        Span::Saved => format!("yes, and {what} from now on"),
    }
}

/// How far a yes reaches by the options of the command line.
pub(crate) fn extent(width: Option<Width>, span: Option<Span>) -> Extent {
    match (width, span) {
        (None, _) => Extent::Once,
        (Some(width), span) => Extent::Wider(width, span.unwrap_or(Span::Session)),
    }
}
