//! The half of the conversation in its own thread: reads keys, keeps what is shown, draws.
//!
//! `transcript` is the conversation, `answer` one that grows, `editor` the input, `completion` its
//! candidates, `dialog` the open question, `overlay` the servers, `view` draws all of them, `keys` names the keys.

mod answer;
mod completion;
mod dialog;
mod editor;
mod keys;
mod overlay;
mod transcript;
mod view;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capstan_text::conversation::Printed;
use crossterm::event::{self, Event};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use self::completion::Words;

use self::completion::Popup;
use self::dialog::Dialog;
use self::editor::Editor;
use self::keys::Key;
use self::overlay::{Overlay, Step};
use self::transcript::Transcript;
use crate::mailbox::{Input, Mailbox};
use crate::news::{Author, News, Outcome, Question, Request, Status, Wish};
use crate::raw_screen::RawScreen;
use crate::theme::Colours;

/// The shortest time between two drawings for news. A key is drawn at once.
const FRAME: Duration = Duration::from_millis(33);

/// The time after which the screen is drawn without any input, for running times.
const TICK: Duration = Duration::from_millis(500);

/// The longest wait for input.
const IDLE: Duration = Duration::from_mins(1);

/// How long a draft counts as being written after its last key.
const WRITING: Duration = Duration::from_secs(1);

/// How long keys that were meant for the message do not answer a question.
const GUARD: Duration = Duration::from_millis(700);

/// The state of the screen.
pub(crate) struct Screen {
    mail: Arc<Mailbox>,
    requests: UnboundedSender<Request>,
    colours: Colours,
    words: Words,
    transcript: Transcript,
    editor: Editor,
    popup: Option<Popup>,
    dialog: Option<Dialog>,
    overlay: Option<Overlay>,
    /// Number of dialogs that wait.
    waiting: usize,
    /// Number of submitted lines that wait.
    queued: usize,
    status: Status,
    busy_since: Option<Instant>,
    is_reasoning: bool,
    /// A remark in the status line, until the next key.
    hint: Option<&'static str>,
    last_key: Option<Instant>,
    width: u16,
}

/// The consequence of an input.
#[derive(PartialEq, Eq)]
enum Next {
    Draw,
    End,
}

// === impl Screen ===

impl Screen {
    pub(crate) fn new(
        mail: &Arc<Mailbox>,
        requests: UnboundedSender<Request>,
        colours: Colours,
        words: Words,
    ) -> Self {
        Self {
            mail: Arc::clone(mail),
            requests,
            colours,
            words,
            transcript: Transcript::default(),
            editor: Editor::default(),
            popup: None,
            dialog: None,
            overlay: None,
            waiting: 0,
            queued: 0,
            status: Status::default(),
            busy_since: None,
            is_reasoning: false,
            hint: None,
            last_key: None,
            width: 80,
        }
    }

    /// Draws until the conversation ends.
    pub(crate) fn run(mut self, mut raw: RawScreen) -> io::Result<()> {
        let keys = Arc::clone(&self.mail);
        // Its own thread, because waiting for a key cannot be cancelled; it ends with the process.
        std::thread::spawn(move || {
            loop {
                match event::read() {
                    Ok(event) => keys.key(Input::Terminal(event)),
                    Err(_) => return keys.key(Input::Lost),
                }
            }
        });
        let mut drawn = Instant::now();
        raw.terminal.draw(|frame| self.draw(frame))?;
        let mut is_stale = false;
        loop {
            let is_busy = self.busy_since.is_some() || self.transcript.has_running();
            let limit = match (is_stale, is_busy) {
                (true, _) => FRAME.saturating_sub(drawn.elapsed()),
                (false, true) => TICK,
                (false, false) => IDLE,
            };
            let inputs = self.mail.take(limit);
            is_stale |= is_busy || !inputs.is_empty();
            let mut is_urgent = false;
            for input in inputs {
                let next = match input {
                    Input::Terminal(event) => {
                        is_urgent = true;
                        self.terminal(event, &mut raw)?
                    }
                    Input::News(news) => self.news(news),
                    Input::Lost => Next::End,
                };
                if next == Next::End {
                    self.ask(Request::Quit);
                    return Ok(());
                }
            }
            if is_stale && (is_urgent || drawn.elapsed() >= FRAME) {
                raw.terminal.draw(|frame| self.draw(frame))?;
                drawn = Instant::now();
                is_stale = false;
            }
        }
    }

    fn ask(&self, request: Request) {
        // An engine that is gone ends the screen by itself.
        drop(self.requests.send(request));
    }

    fn news(&mut self, news: News) -> Next {
        match news {
            News::Text(text) => {
                self.is_reasoning = false;
                self.transcript.answer(&text);
            }
            News::Reasoning => self.is_reasoning = true,
            News::Printed(kind, text) => {
                if let Some(overlay) = &mut self.overlay {
                    overlay.say(&text);
                }
                self.transcript.printed(kind, &text);
            }
            News::Said(Author::Person, text) => {
                self.editor.remember(text.clone());
                self.transcript.person(text);
            }
            News::Said(Author::Model, text) => self.transcript.answer(&text),
            News::Calling { id, name, arguments } => self.transcript.calling(id, name, arguments),
            News::Called(report) => self.transcript.called(report),
            News::Progress(text) => self.transcript.progress(&text),
            News::Begun(line) => {
                self.queued = self.queued.saturating_sub(1);
                (self.busy_since, self.is_reasoning) = (Some(Instant::now()), false);
                self.transcript.person(line);
            }
            News::Done(outcome) => {
                self.busy_since = None;
                self.transcript.stop();
                if outcome == Outcome::Stopped {
                    self.queued = 0;
                    self.transcript.printed(Printed::Note, "stopped");
                }
            }
            News::Status(status) => self.status = status,
            News::Question(question) => self.question(*question),
            News::Closed(id) => {
                if self.dialog.as_ref().is_some_and(|dialog| dialog.id == id) {
                    self.dialog = None;
                }
            }
            News::Overlay => {
                self.overlay = Some(Overlay::default());
                self.ask(Request::Overlay(Wish::Servers));
            }
            News::Overview(overview) => {
                let wish = self.overlay.as_mut().and_then(|overlay| overlay.hear(overview));
                if let Some(wish) = wish {
                    self.ask(Request::Overlay(wish));
                }
            }
            News::Waiting(waiting) => self.waiting = waiting,
            News::Cleared => self.transcript.clear(),
            News::End => return Next::End,
        }
        Next::Draw
    }

    fn question(&mut self, question: Question) {
        match &mut self.dialog {
            Some(dialog) if dialog.id == question.dialog => dialog.ask(question),
            // Only one dialog is open at a time; the one before is closed.
            Some(_) | None => {
                let is_writing = self.last_key.is_some_and(|last| last.elapsed() < WRITING);
                let is_writing = is_writing && !self.editor.is_empty();
                let not_before = is_writing.then(|| Instant::now() + GUARD);
                self.dialog = Some(Dialog::open(question, not_before));
            }
        }
    }

    fn terminal(&mut self, event: Event, raw: &mut RawScreen) -> io::Result<Next> {
        match event {
            Event::Key(event) => {
                let Some(key) = keys::read(event) else { return Ok(Next::Draw) };
                if key == Key::Redraw {
                    raw.terminal.clear()?;
                    return Ok(Next::Draw);
                }
                return Ok(self.key(key));
            }
            Event::Paste(text) => {
                if let Some(dialog) = &mut self.dialog {
                    dialog.paste(&text);
                } else {
                    self.editor.paste(&text);
                    self.complete();
                }
            }
            Event::Resize(..) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => {}
        }
        Ok(Next::Draw)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys are for the input")]
    fn key(&mut self, key: Key) -> Next {
        self.hint = None;
        if let Some(dialog) = &mut self.dialog {
            dialog.key(key);
            return Next::Draw;
        }
        if let Some(overlay) = &mut self.overlay {
            match overlay.key(key) {
                Step::Stay => {}
                Step::Ask(wish) => self.ask(Request::Overlay(wish)),
                Step::Close => {
                    self.overlay = None;
                    self.ask(Request::Overlay(Wish::Nothing));
                }
            }
            return Next::Draw;
        }
        self.last_key = Some(Instant::now());
        if self.popup.is_some() && self.popup_key(key) {
            return Next::Draw;
        }
        match key {
            Key::Enter => self.submit(),
            Key::Esc => self.stop(),
            Key::Interrupt => return self.interrupt(),
            Key::EndOfInput if self.editor.is_empty() => return Next::End,
            Key::PageUp => self.transcript.scroll(-self.transcript.page()),
            Key::PageDown => self.transcript.scroll(self.transcript.page()),
            Key::First => self.transcript.scroll_to_start(),
            Key::Last => self.transcript.scroll_to_end(),
            Key::Tab => self.complete(),
            key => {
                let width = usize::from(self.width.saturating_sub(2));
                let before = self.editor.text().len();
                self.editor.key(key, width);
                // Moving through the history offers nothing.
                if self.editor.text().len() == before || matches!(key, Key::Up | Key::Down) {
                    self.popup = None;
                } else {
                    self.complete();
                }
            }
        }
        Next::Draw
    }

    /// Handles a key while candidates are shown; false if it is for the input.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys are for the input")]
    fn popup_key(&mut self, key: Key) -> bool {
        let Some(popup) = &mut self.popup else { return false };
        match key {
            Key::Up | Key::BackTab => popup.up(),
            Key::Down => popup.down(),
            Key::Esc => self.popup = None,
            Key::Tab => self.accept(),
            Key::Enter if popup.moved => self.accept(),
            _ => return false,
        }
        true
    }

    fn accept(&mut self) {
        let Some(popup) = self.popup.take() else { return };
        if let Some(candidate) = popup.chosen() {
            self.editor.replace(popup.start, &candidate.text);
        }
        // A folder has further files.
        self.complete();
    }

    fn complete(&mut self) {
        self.popup = self.words.complete(self.editor.text(), self.editor.cursor());
    }

    fn submit(&mut self) {
        // A backslash before Enter continues the message on the next line.
        if let Some(text) = self.editor.text().strip_suffix('\\') {
            let text = format!("{text}\n");
            return self.editor.set(text);
        }
        self.popup = None;
        if self.editor.text().trim().is_empty() {
            return;
        }
        let text = self.editor.take();
        self.queued += 1;
        self.ask(Request::Submit(text));
    }

    fn stop(&mut self) {
        if self.busy_since.is_some() {
            self.ask(Request::Cancel);
        }
    }

    /// Ctrl-C stops what runs, else empties the input, else ends the conversation.
    fn interrupt(&mut self) -> Next {
        if self.busy_since.is_some() {
            self.ask(Request::Cancel);
        } else if self.editor.is_empty() {
            return Next::End;
        } else {
            self.editor.clear();
            self.popup = None;
            self.hint = Some("Ctrl-C again ends the conversation");
        }
        Next::Draw
    }
}
