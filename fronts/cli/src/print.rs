//! All output: data to stdout, everything else to stderr.

use std::borrow::Cow;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use capstan_app::AppError;
use capstan_config::{Problem, Severity, SourceFile};
use capstan_safety::clean::clean;
use capstan_text::conversation::{Output, Printed};
use capstan_text::diagnose;
use capstan_text::screen::{stderr_is_terminal, stdout_is_terminal, width};
use capstan_text::table::coloured_table;
use serde::Serialize;

use crate::args::Options;
use crate::exit::ErrorJson;

/// Prints data and notes.
#[derive(Clone)]
pub(crate) struct Printer {
    format: Format,
    /// The screen that shows all output; `None` for the standard streams.
    screen: Option<Arc<dyn Output>>,
}

/// The output format of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Columns that a screen needs beside a table.
const SCREEN_MARGIN: usize = 4;

/// Tokens of an answer that a terminal shows at once.
const MAX_SHOWN: u32 = 25_000;

pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();

// === impl Printer ===

impl Printer {
    pub(crate) fn new(options: &Options) -> Self {
        let format = if options.json { Format::Json } else { Format::Text };
        Self { format, screen: None }
    }

    /// A printer for a screen.
    pub(crate) fn for_screen(output: Arc<dyn Output>) -> Self {
        Self { format: Format::Text, screen: Some(output) }
    }

    /// The screen that shows all output and asks all questions; `None` for the standard streams.
    pub(crate) fn screen(&self) -> Option<&Arc<dyn Output>> {
        self.screen.as_ref()
    }

    pub(crate) fn json_only() -> Self {
        Self { format: Format::Json, screen: None }
    }

    /// True if a person watches stderr and can be shown progress.
    pub(crate) fn is_watched(&self) -> bool {
        stderr_is_terminal() && !self.wants_json() && self.screen.is_none()
    }

    pub(crate) fn wants_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The number of tokens above which an answer is shown in pages; `None` if a program reads it.
    pub(crate) fn max_tokens(&self) -> Option<u32> {
        (stdout_is_terminal() && !self.wants_json()).then_some(MAX_SHOWN)
    }

    /// Prints data for people, cleaned, with a newline at its end.
    pub(crate) fn data(&self, text: &str) {
        self.exactly(&clean(text));
    }

    /// Prints data for programs, with a newline at its end.
    ///
    /// A closed pipe is no error.
    pub(crate) fn exactly(&self, text: &str) {
        if let Some(screen) = &self.screen {
            return screen.print(Printed::Data, &strip_str(text).to_string());
        }
        let newline = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        let text = format!("{text}{newline}");
        write_data(&text);
    }

    /// Prints rows in columns that fit the terminal, with colours where they are supported.
    pub(crate) fn table(&self, headers: &[&str], rows: &[Vec<String>]) {
        // Every cell is cleaned; the only escapes are those of our colours.
        let margin = if self.screen.is_some() { SCREEN_MARGIN } else { 0 };
        let width = width().map(|width| width.saturating_sub(margin));
        self.exactly(&coloured_table(headers, rows, width));
    }

    /// Prints data byte for byte, with a newline at its end.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        self.raw(&[bytes, b"\n"].concat());
    }

    /// Prints data exactly as it is.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        match &self.screen {
            Some(screen) => screen.print(Printed::Data, &String::from_utf8_lossy(bytes)),
            None => write_bytes(bytes),
        }
    }

    /// Prints data as JSON.
    pub(crate) fn json(&self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.exactly(&text),
            Err(error) => self.error(&error.to_string()),
        }
    }

    /// Prints a note on stderr.
    pub(crate) fn note(&self, text: &str) {
        self.say(Printed::Note, text);
    }

    /// Prints a hint on what to do next.
    pub(crate) fn hint(&self, text: &str) {
        self.say(Printed::Hint, text);
    }

    pub(crate) fn warning(&self, text: &str) {
        self.say(Printed::Warning, text);
    }

    pub(crate) fn error(&self, text: &str) {
        self.say(Printed::Error, text);
    }

    /// Prints a configuration problem in a line or two.
    pub(crate) fn problem(&self, problem: &Problem) {
        let text = problem.to_string();
        match problem.severity {
            Severity::Error => self.error(&text),
            Severity::Warning => self.warning(&text),
        }
        if let Some(help) = &problem.help {
            self.hint(help);
        }
    }

    /// Prints a configuration problem with the affected lines.
    pub(crate) fn diagnosis(&self, problem: &Problem, files: &[SourceFile]) {
        if JSON_LINES.get().is_some() {
            return self.problem(problem);
        }
        if self.screen.is_some() {
            return self.problem(problem);
        }
        write_note(as_typed(&diagnose::render(problem, files, width())).trim_end());
    }

    /// Prints a text on stderr, with a prefix if people read it.
    fn say(&self, kind: Printed, text: &str) {
        if let Some(screen) = &self.screen {
            return screen.print(kind, text);
        }
        let (level, before) = match kind {
            Printed::Data | Printed::Note => ("INFO", String::new()),
            Printed::Hint => ("INFO", format!("{CYAN}  hint:{CYAN:#} ")),
            Printed::Warning => ("WARN", format!("{YELLOW}warning:{YELLOW:#} ")),
            Printed::Error => ("ERROR", format!("{RED}error:{RED:#} ")),
        };
        if JSON_LINES.get().is_none() {
            return write_note(&format!("{before}{}", as_typed(&clean(text))));
        }
        let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default();
        let (message, time) = (text.trim(), format!("{now:.6}"));
        let said = serde_json::json!({ "timestamp": time, "level": level, "message": message });
        write_note(&said.to_string());
    }

    /// Prints the reason why the command failed.
    pub(crate) fn failure(&self, failure: &AppError) {
        if self.wants_json() {
            self.json(&ErrorJson::from(failure));
            return;
        }
        for problem in &failure.problems {
            self.diagnosis(problem, &failure.files);
        }
        self.error(&failure.message);
        if let Some(hint) = &failure.hint {
            self.hint(hint);
        }
    }
}

/// The command as the user typed it.
static COMMAND: OnceLock<String> = OnceLock::new();

/// Sets the command that hints name.
pub(crate) fn set_command(typed: String) {
    COMMAND.get_or_init(|| typed);
}

/// The command as the user typed it: `capstan`, a path, or `capstan mcp`.
pub(crate) fn command() -> &'static str {
    COMMAND.get().map_or("capstan", String::as_str)
}

/// Replaces our command in a text of ours by the one that the user typed.
pub(crate) fn as_typed(text: &str) -> Cow<'_, str> {
    match command() {
        "capstan" => Cow::Borrowed(text),
        typed => Cow::Owned(text.replace("`capstan ", &format!("`{typed} "))),
    }
}

/// The reason why data could not be written.
static LOST: OnceLock<String> = OnceLock::new();

/// Stores the error if data was lost; a closed pipe does not count.
fn note_loss(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// The reason why data could not be written; `None` if nothing was lost.
pub(crate) fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Set if the lines on stderr are a log for programs.
static JSON_LINES: OnceLock<()> = OnceLock::new();

/// Switches all output on stderr to one JSON object per line, like the log.
pub(crate) fn log_as_json() {
    JSON_LINES.get_or_init(|| ());
}

/// Writes a line to stderr; colours are removed if they are not supported.
pub(crate) fn write_note(text: &str) {
    let mut err = std::io::stderr().lock();
    let text = format!("{text}\n");
    drop(err.write_all(styled(&text, AutoStream::choice(&err)).as_bytes()));
}

/// Clears the line of the cursor and everything below it: the key that a terminal has echoed, and a
/// question that was not answered.
pub(crate) fn clear_line() {
    if stderr_is_terminal() {
        let mut err = std::io::stderr().lock();
        drop(err.write_all(b"\r\x1b[J").and_then(|()| err.flush()));
    }
}

/// Writes data to stdout; colours are removed if they are not supported.
pub(crate) fn write_data(text: &str) {
    let mut out = std::io::stdout().lock();
    let text = styled(text, AutoStream::choice(&out));
    note_loss(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Removes colours if they are not supported. The result is written at once: a system call for each
/// line takes longer than everything else about a long table.
fn styled(text: &str, choice: ColorChoice) -> Cow<'_, str> {
    match choice {
        ColorChoice::Never => Cow::Owned(strip_str(text).to_string()),
        ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => Cow::Borrowed(text),
    }
}

/// Writes bytes to stdout unchanged.
pub(crate) fn write_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    note_loss(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Formats a number with its noun in singular or plural.
pub(crate) fn counted<N>(count: N, one: &str, many: &str) -> String
where
    N: Copy + std::fmt::Display + PartialEq + From<u8>,
{
    let noun = if count == N::from(1) { one } else { many };
    format!("{count} {noun}")
}

/// Sets a member of a JSON object.
pub(crate) fn set(object: &mut serde_json::Value, key: &str, value: impl Serialize) {
    if let Some(members) = object.as_object_mut() {
        members.insert(key.to_owned(), serde_json::json!(value));
    }
}
