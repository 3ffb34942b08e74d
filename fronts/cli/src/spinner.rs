//! Shows a person that a command is working, once it takes longer than half a second.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_safety::clean::clean;
use capstan_text::screen::stderr_size;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::print::Printer;

/// Delay before the spinner is shown.
const DELAY: Duration = Duration::from_millis(500);

/// Interval at which the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Maximum number of messages kept while a question is open; further ones are dropped.
const MAX_LATER: usize = 100;

/// The size of a terminal that does not tell its own.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Columns that stay free at the end of the line.
///
/// A terminal echoes Ctrl-C there. Without room, the echo goes to a line of its own, and the spinner's
/// line cannot be cleared.
const MARGIN: usize = 4;

/// The terminal on stderr, with free columns at the end of the line.
#[derive(Debug)]
struct Margin;

/// A spinner that may not have been shown yet. It vanishes when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Spinner(Arc<Inner>);

struct Inner {
    /// Never held during a question, because the connection's thread locks it too.
    stage: Mutex<Stage>,
    /// Held by the open question; the next question waits for it in its own thread.
    asking: Mutex<()>,
}

/// Prints a message.
type Tell = Box<dyn FnOnce() + Send>;

/// The state of the last line of the screen.
struct Stage {
    spinner: Bar,
    message: String,
    question: Question,
}

enum Bar {
    /// There is no terminal to show it on.
    Unwanted,
    /// The delay has not passed yet.
    Early,
    /// The delay has passed; `None` while a question takes its place.
    Due(Option<ProgressBar>),
}

enum Question {
    None,
    /// A question is open; these messages are printed after it.
    Open(Vec<Tell>),
}

// === impl Spinner ===

impl Spinner {
    /// Starts a spinner.
    pub(crate) fn new(print: &Printer, message: &str) -> Self {
        let wanted = print.is_watched();
        let spinner = Self::of(if wanted { Bar::Early } else { Bar::Unwanted }, message);
        if wanted {
            let inner = Arc::downgrade(&spinner.0);
            tokio::spawn(async move {
                tokio::time::sleep(DELAY).await;
                if let Some(inner) = inner.upgrade() {
                    let mut stage = inner.stage();
                    stage.spinner = Bar::Due(None);
                    stage.show();
                }
            });
        }
        spinner
    }

    fn of(spinner: Bar, message: &str) -> Self {
        let stage = Stage { spinner, message: message.to_owned(), question: Question::None };
        Self(Arc::new(Inner { stage: Mutex::new(stage), asking: Mutex::new(()) }))
    }

    /// Sets the message; it is shown after the question, if one is open.
    pub(crate) fn say(&self, message: &str) {
        let mut stage = self.0.stage();
        stage.message = clean(message).into_owned();
        if let Bar::Due(Some(bar)) = &stage.spinner {
            bar.set_message(stage.message.clone());
        }
    }

    /// Shows progress.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.unwrap_or_default();
        match total {
            Some(total) if total > 0.0 => {
                let percent = (done / total * 100.0).clamp(0.0, 100.0);
                self.say(&format!("{percent:3.0} %  {message}"));
            }
            Some(_) | None => self.say(&format!("{done}  {message}")),
        }
    }

    /// Prints something above the spinner; after the question, if one is open.
    pub(crate) fn tell(&self, act: impl FnOnce() + Send + 'static) {
        self.0.stage().tell(Box::new(act));
    }

    /// Asks a question in place of the spinner. Blocks until it is answered.
    pub(crate) fn ask<T>(&self, act: impl FnOnce() -> T) -> T {
        let asking = self.0.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.stage().step_aside();
        let answer = act();
        let later = self.0.stage().step_back();
        for tell in later {
            self.0.stage().tell(tell);
        }
        drop(asking);
        answer
    }
}

// === impl Inner ===

impl Inner {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stage().hide();
    }
}

// === impl Stage ===

impl Stage {
    /// Shows the spinner if it is due and its line is free.
    fn show(&mut self) {
        if let (Bar::Due(bar @ None), Question::None) = (&mut self.spinner, &self.question) {
            let target = ProgressDrawTarget::term_like(Box::new(Margin));
            let spinner = ProgressBar::with_draw_target(None, target);
            spinner.set_message(self.message.clone());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(TICK);
            *bar = Some(spinner);
        }
    }

    fn hide(&mut self) {
        if let Bar::Due(bar) = &mut self.spinner
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
    }

    fn tell(&mut self, act: Tell) {
        match (&mut self.question, &self.spinner) {
            (Question::Open(later), _) if later.len() < MAX_LATER => later.push(act),
            (Question::Open(_), _) => {}
            (Question::None, Bar::Due(Some(bar))) => bar.suspend(act),
            (Question::None, Bar::Due(None) | Bar::Early | Bar::Unwanted) => act(),
        }
    }

    fn step_aside(&mut self) {
        self.hide();
        self.question = Question::Open(Vec::new());
    }

    /// Ends the question; returns the messages to print now.
    fn step_back(&mut self) -> Vec<Tell> {
        let question = std::mem::replace(&mut self.question, Question::None);
        self.show();
        match question {
            Question::None => Vec::new(),
            Question::Open(later) => later,
        }
    }
}

// === impl Margin ===

impl TermLike for Margin {
    fn width(&self) -> u16 {
        let (columns, _) = stderr_size().unwrap_or(USUAL_SIZE);
        u16::try_from(columns.saturating_sub(MARGIN).max(1)).unwrap_or(u16::MAX)
    }

    fn height(&self) -> u16 {
        let (_, lines) = stderr_size().unwrap_or(USUAL_SIZE);
        u16::try_from(lines).unwrap_or(u16::MAX)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        moved(n, "A")
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        moved(n, "B")
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        moved(n, "C")
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        moved(n, "D")
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        write(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        write(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        write("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

fn write(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// Moves the cursor in a direction; no move is written for zero, which terminals read as one.
fn moved(count: usize, direction: &str) -> io::Result<()> {
    if count == 0 { Ok(()) } else { write(&format!("\x1b[{count}{direction}")) }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn whatever_comes_while_a_question_is_open_neither_waits_nor_writes() {
        let spinner = Spinner::of(Bar::Due(None), "before");
        let (tell, told) = channel();
        let during = spinner.ask(|| {
            for number in 0..MAX_LATER + 5 {
                let tell = tell.clone();
                // This thread asks, so waiting for the answer here would deadlock.
                spinner.tell(move || tell.send(number).unwrap());
            }
            spinner.progress(1.0, Some(4.0), Some("half"));
            told.try_iter().count()
        });
        assert_eq!(during, 0);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), (0..MAX_LATER).collect::<Vec<_>>());
        assert_eq!(spinner.0.stage().message, " 25 %  half");
        spinner.tell(move || tell.send(7).unwrap());
        assert_eq!(told.try_recv(), Ok(7));
    }
}
