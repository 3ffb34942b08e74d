//! Prints the answer, and events while it is being made.

use capstan_app::chat::{CallReport, Outcome, TurnEvent, Watch};
use capstan_hub::ports::TokenCount;
use capstan_wire::Json;
use serde::Serialize;

use crate::args::OutputFormat;
use crate::commands::tell_missing;
use crate::print::Printer;
use crate::spinner::Spinner;

/// Prints in one format.
pub(super) struct Output {
    print: Printer,
    format: OutputFormat,
    spinner: Spinner,
}

/// A line of `stream-json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Text { text: &'a str },
    Reasoning { text: &'a str },
    Retry { seconds: f64, reason: &'a str },
    Call { id: &'a str, tool: &'a str, arguments: &'a Json },
    CallResult(&'a CallReport),
    Compacted,
    Result(Result<'a>),
}

/// The end of `json` and `stream-json`.
#[derive(Serialize)]
struct Result<'a> {
    /// The last text of the model.
    text: &'a str,
    /// The model.
    model: &'a str,
    /// The number of requests to the model.
    turns: u32,
    /// The tokens of these requests.
    tokens: TokenCount,
    /// All calls.
    calls: &'a [CallReport],
    /// True if the answer reached the limit of its length.
    truncated: bool,
    /// The conversation, which `--continue` resumes.
    conversation: &'a str,
}

// === impl Output ===

impl Output {
    pub(super) fn new(print: &Printer, format: OutputFormat) -> Self {
        let spinner = Spinner::new(print, "waiting for the model");
        Self { print: print.clone(), format, spinner }
    }

    /// Prints the end.
    pub(super) fn end(self, outcome: &Outcome, model: &str, conversation: &str) {
        let Self { print, format, spinner } = self;
        drop(spinner);
        if outcome.is_cut {
            print.warning("the answer reached the limit of its length");
            print.hint("set a larger `max_output_tokens` under `[model]`");
        }
        let result = Result {
            text: &outcome.text,
            model,
            turns: outcome.turns,
            tokens: outcome.tokens,
            calls: &outcome.calls,
            truncated: outcome.is_cut,
            conversation,
        };
        match format {
            OutputFormat::Text => print.data(&outcome.text),
            OutputFormat::Json => print.json(&result),
            OutputFormat::StreamJson => write(&print, &Line::Result(result)),
        }
    }

    fn line(&self, line: &Line<'_>) {
        if self.format == OutputFormat::StreamJson {
            write(&self.print, line);
        }
    }
}

impl Watch for Output {
    fn event(&self, event: TurnEvent) {
        match event {
            TurnEvent::Text(text) => self.line(&Line::Text { text: &text }),
            TurnEvent::Reasoning(text) => self.line(&Line::Reasoning { text: &text }),
            TurnEvent::Retrying { wait, reason } => {
                let seconds = wait.as_secs_f64();
                self.line(&Line::Retry { seconds, reason: &reason });
                let print = self.print.clone();
                self.spinner.tell(move || {
                    print.warning(&format!("{reason}; trying again in {seconds:.1} seconds"));
                });
            }
            TurnEvent::Calling(call) => {
                let (id, tool, arguments) = (&call.id, &call.name, &call.arguments);
                self.line(&Line::Call { id, tool, arguments });
                self.spinner.say(&format!("calling `{tool}`"));
            }
            TurnEvent::Called(report) => {
                self.line(&Line::CallResult(&report));
                self.spinner.say("waiting for the model");
            }
            TurnEvent::Compacted => self.line(&Line::Compacted),
            TurnEvent::Offered(offer) => {
                let print = self.print.clone();
                self.spinner.tell(move || {
                    tell_missing(&print, &offer.missing);
                    if let Some(note) = &offer.note {
                        print.warning(note);
                    }
                });
            }
        }
    }
}

fn write(print: &Printer, line: &Line<'_>) {
    match serde_json::to_string(line) {
        Ok(text) => print.exactly(&text),
        Err(error) => print.error(&error.to_string()),
    }
}
