//! Asks a person on the terminal whether a call may run.

use capstan_hub::Ground;
use capstan_hub::approvals::{Extent, Layout, ShownArguments, Span, Width};
use capstan_hub::ports::{Approval, Question};
use capstan_model::Kind;

use crate::args::AskArgs;
use crate::clean::{one_line, wrap};
use crate::form::{Closed, Prompter};
use crate::panel::{self, Room, Seen};
use crate::print::Printer;

/// Longest name that is shown.
const MAX_NAME: usize = 120;

/// Columns of the label before a fact.
const LABEL: usize = 10;

/// Fewest columns of a fact: a digest is never broken.
const MIN_FACT: usize = 64;

/// Choices that a terminal shows at the same time.
const MAX_CHOICES: usize = 7;

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

/// A call that is asked about, as a person sees it.
pub(crate) struct Shown<'a> {
    pub(crate) kind: Kind,
    pub(crate) server: &'a str,
    /// The item as its server calls it.
    pub(crate) name: &'a str,
    /// Labels with what they say.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) arguments: &'a ShownArguments,
}

/// Asks. Closing the question is a no, and so is the answer that nothing needs to be chosen for.
pub(crate) fn ask(prompter: &mut dyn Prompter, question: &Question) -> Approval {
    let Question { id, kind, effect, rule, offers, caller, .. } = question;
    let (server, name) = (id.server.as_str(), id.item.as_str());
    let facts = vec![
        ("effect", effect.as_str().to_owned()),
        ("caller", caller.subject.clone()),
        ("rule", rule.clone()),
    ];
    let arguments = &question.shown_arguments(Layout::Full);
    let shown = Shown { kind: *kind, server, name, facts, arguments };
    let mut choices: Vec<String> =
        offers.iter().map(|extent| choice(*extent, server, &quotable(name))).collect();
    choices.extend(["no", "cancel"].map(str::to_owned));
    match run_it(prompter, &shown, &choices, offers.len()).and_then(|place| offers.get(place)) {
        Some(extent) => Approval::Yes(Ground::Asked, *extent),
        None => Approval::No(Ground::Refused),
    }
}

/// Shows a call with all of its arguments and asks which of these it shall be, beginning at the place
/// of the no; `None` when the question is closed.
pub(crate) fn run_it(
    prompter: &mut dyn Prompter,
    shown: &Shown<'_>,
    choices: &[String],
    no: usize,
) -> Option<usize> {
    match present(prompter, shown, choices.len().min(MAX_CHOICES) + 2) {
        Ok(Seen::Enough) => {}
        Ok(Seen::Refused) => return Some(no),
        Err(Closed) => return None,
    }
    let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
    prompter.select("Run it?", &choices, no).ok()
}

/// Shows a call with all of its arguments; `below` more lines have to fit on the screen.
pub(crate) fn present(
    prompter: &mut dyn Prompter,
    shown: &Shown<'_>,
    below: usize,
) -> Result<Seen, Closed> {
    let (columns, _) = prompter.size();
    let head = head(shown, columns);
    prompter.say(&head.join("\n"));
    let room = Room { above: head.len(), below };
    panel::show(prompter, &panel::lines(&shown.arguments.text, columns), room)
}

/// What is said of a call, without its arguments.
pub(crate) fn head(shown: &Shown<'_>, columns: usize) -> Vec<String> {
    let Shown { kind, server, name, facts, arguments } = shown;
    let mut head =
        vec![format!("may the {} `{}` of `{server}` run?", kind.as_str(), quotable(name))];
    let summary = [("arguments", arguments.summary()), ("sha256", arguments.sha256.clone())];
    for (label, text) in facts.iter().chain(&summary) {
        let mut label = *label;
        for line in wrap(text, columns.saturating_sub(LABEL + 4).max(MIN_FACT)) {
            head.push(format!("  {label:<LABEL$} {line}"));
            label = "";
        }
    }
    head
}

/// A name that a server chose, on one line and without anything that could end the quotes around it.
pub(crate) fn quotable(name: &str) -> String {
    one_line(&name.replace('`', "\\u{60}"), MAX_NAME)
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
