//! Logging to stderr, or to the screen while one is drawn.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use capstan_app::Environment;
use capstan_safety::clean::visible;
use capstan_terminal::LogSink;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// The default log filter.
const USUAL: &str = "warn";

/// The filter of `--debug`, which includes protocol traffic and the servers' stderr.
const DEBUG: &str = "info,capstan=debug,capstan_mcp=debug,capstan_process=debug,capstan_hub=debug";

/// Formats events like the command line's own warnings, for people who did not request a log.
struct AsWarnings {
    colour: bool,
}

/// The text of an event.
#[derive(Default)]
struct Words {
    server: String,
    message: String,
    more: Vec<String>,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Warnings and errors in the format of the command line's own.
    Short,
    /// Lines with a time, for a long-running gateway.
    Timed,
    /// One JSON object per line.
    Json,
}

/// The amount that is logged if `CAPSTAN_LOG` is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Warnings and errors.
    Usual,
    /// Also protocol traffic and the stderr of servers.
    Debug,
}

/// Starts logging. `CAPSTAN_LOG` selects the events; without it, `detail` does.
pub(crate) fn start(environment: &Environment, format: Format, detail: Detail) {
    let usual = match detail {
        Detail::Usual => USUAL,
        Detail::Debug => DEBUG,
    };
    let asked = environment.variable("CAPSTAN_LOG").filter(|filter| !filter.trim().is_empty());
    let filter = asked.as_deref().unwrap_or(usual);
    let filter = match EnvFilter::try_new(filter) {
        Ok(filter) => filter,
        Err(error) => {
            last_words(&format!("CAPSTAN_LOG is not a log filter: {error}"));
            EnvFilter::new(usual)
        }
    };
    let colour = io::stderr().is_terminal() && environment.variable("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Stream);
    match format {
        Format::Short if detail == Detail::Debug || asked.is_some() => {
            log.with_ansi(colour).without_time().init();
        }
        Format::Short => log.with_ansi(false).event_format(AsWarnings { colour }).init(),
        Format::Timed => log.with_ansi(colour).init(),
        Format::Json => log.json().flatten_event(true).init(),
    }
}

/// Receives the lines of the log instead of stderr.
static SINK: Mutex<Option<LogSink>> = Mutex::new(None);

/// Sends the lines of the log to a sink, or to stderr again.
pub(crate) fn divert(sink: Option<LogSink>) {
    *SINK.lock().unwrap_or_else(PoisonError::into_inner) = sink;
}

/// The place where the log is written.
struct Stream;

/// Prints an error to stderr without the log, for when there is none.
pub(crate) fn last_words(text: &str) {
    drop(writeln!(io::stderr(), "error: {text}"));
}

// === impl Stream ===

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(sink) = &*SINK.lock().unwrap_or_else(PoisonError::into_inner) {
            sink(&String::from_utf8_lossy(bytes));
            return Ok(bytes.len());
        }
        io::stderr().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

// === impl AsWarnings ===

impl<S, N> FormatEvent<S, N> for AsWarnings
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut words = Words::default();
        event.record(&mut words);
        let spans = context.event_scope().into_iter().flatten();
        let name = spans.filter(|span| span.name() == "server").find_map(|span| {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>();
            let name = fields.and_then(|fields| fields.fields.strip_prefix("name="));
            let name = name.map(str::to_owned);
            drop(extensions);
            name
        });
        if words.server.is_empty() {
            words.server = visible(&name.unwrap_or_default());
        }
        let (word, colour) = match *event.metadata().level() {
            Level::ERROR => ("error:", "31"),
            _ => ("warning:", "33"),
        };
        if self.colour {
            write!(writer, "\u{1b}[1;{colour}m{word}\u{1b}[0m ")?;
        } else {
            write!(writer, "{word} ")?;
        }
        words.write(&mut writer)
    }
}

// === impl Words ===

impl Words {
    fn write(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let Self { server, message, more } = self;
        if !server.is_empty() {
            write!(writer, "server `{server}`: ")?;
        }
        writer.write_str(message)?;
        if !more.is_empty() {
            write!(writer, " ({})", more.join(", "))?;
        }
        writeln!(writer)
    }
}

impl Visit for Words {
    fn record_u64(&mut self, field: &Field, value: u64) {
        // Counters that are zero are left out.
        if value > 0 {
            self.more.push(format!("{}: {value}", field.name()));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = visible(&format!("{value:?}"));
        match field.name() {
            "message" => self.message = text,
            "server" => self.server = text,
            _ if matches!(text.as_str(), "" | "\"\"" | "None") => {}
            name => self.more.push(format!("{name}: {text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn nothing_that_is_logged_commands_the_terminal() {
        let (mut reader, writer) = io::pipe().unwrap();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .event_format(AsWarnings { colour: false })
            .with_writer(move || writer.try_clone().unwrap());
        let odd = "a\u{1b}]0;x\u{7}\r\nerror: b\u{9b}2J\u{202e}ü";
        tracing::subscriber::with_default(log.finish(), || {
            tracing::warn!(server = %odd, reason = %odd, text = odd, "it says {odd}");
        });
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        let line = said.strip_suffix('\n').unwrap();
        assert!(line.starts_with("warning: server `a\\u{1b}]0;x\\u{7}\\r\\nerror: b"), "{line}");
        assert!(line.contains("it says a\\u{1b}") && line.contains('ü'), "{line}");
        assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}
