//! A dialog: text of a call or a server that scrolls, a question, and the form of its answer.

use std::sync::mpsc::SyncSender;
use std::time::Instant;

use ratatui::style::Style;
use ratatui::text::Line;

use super::editor::Editor;
use super::keys::Key;
use crate::markdown::wrap;
use crate::news::{Form, Question, Reply};
use crate::theme::Colours;

/// The most options that are seen at once.
const MAX_OPTIONS: usize = 8;

/// The open dialog.
pub(crate) struct Dialog {
    pub(crate) id: u64,
    /// The text above the question.
    said: Vec<String>,
    /// The first row of the text that is seen; `None` if the end is.
    top: Option<usize>,
    /// Number of rows of the text, and of those that are seen.
    seen: (usize, usize),
    question: Option<Asked>,
    /// No key is an answer before this moment.
    not_before: Option<Instant>,
}

/// A question that waits for its answer.
struct Asked {
    text: String,
    form: Form,
    reply: SyncSender<Option<Reply>>,
    /// The option under the cursor.
    place: usize,
    /// The options that are chosen, if many can be.
    chosen: Vec<usize>,
    /// The typed text: the answer, or the beginning of an option.
    typed: Editor,
}

/// The consequence of a key.
enum Pressed {
    Nothing,
    Close,
    Answer(Reply),
}

/// A drawn dialog.
pub(crate) struct Drawn {
    pub(crate) lines: Vec<Line<'static>>,
    /// The place of the cursor, if something is typed.
    pub(crate) cursor: Option<(usize, usize)>,
}

// === impl Dialog ===

impl Dialog {
    /// Opens a dialog; keys before a moment are meant for something else.
    pub(crate) fn open(question: Question, not_before: Option<Instant>) -> Self {
        let id = question.dialog;
        let mut dialog =
            Self { id, said: Vec::new(), top: Some(0), seen: (0, 0), question: None, not_before };
        dialog.ask(question);
        dialog.top = Some(0);
        dialog
    }

    /// Asks the next question.
    pub(crate) fn ask(&mut self, question: Question) {
        let Question { said, text, form, reply, .. } = question;
        self.said.extend(said);
        // What was said last belongs to this question.
        self.top = None;
        let (place, chosen) = match &form {
            Form::One { start, .. } => (*start, Vec::new()),
            Form::Many { chosen, .. } => (0, chosen.clone()),
            Form::Text | Form::Secret => (0, Vec::new()),
        };
        let typed = Editor::default();
        self.question = Some(Asked { text, form, reply, place, chosen, typed });
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(asked) = &mut self.question
            && matches!(asked.form, Form::Text | Form::Secret)
        {
            // An answer is a line.
            for c in text.chars().filter(|c| !c.is_control()) {
                asked.typed.key(Key::Char(c), usize::MAX);
            }
        }
    }

    /// Handles a key.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys are for the question")]
    pub(crate) fn key(&mut self, key: Key) {
        if self.not_before.is_some_and(|moment| Instant::now() < moment) {
            return;
        }
        self.not_before = None;
        match key {
            Key::PageUp => return self.scroll(-self.page()),
            Key::PageDown => return self.scroll(self.page()),
            Key::First => return self.top = Some(0),
            Key::Last => return self.top = None,
            _ => {}
        }
        let Some(asked) = &mut self.question else { return };
        let reply = match asked.key(key) {
            Pressed::Nothing => return,
            Pressed::Close => None,
            Pressed::Answer(reply) => Some(reply),
        };
        if let (Some(reply), Some(asked)) = (&reply, &self.question) {
            self.said.push(asked.answered(reply));
        }
        if let Some(asked) = self.question.take() {
            // The asker may have gone.
            drop(asked.reply.send(reply));
        }
    }

    fn page(&self) -> isize {
        isize::try_from(self.seen.1.saturating_sub(1).max(1)).unwrap_or(1)
    }

    fn scroll(&mut self, by: isize) {
        let last = self.seen.0.saturating_sub(self.seen.1);
        let top = self.top.unwrap_or(last).saturating_add_signed(by);
        self.top = (top < last).then_some(top);
    }

    /// Draws the dialog into at most so many rows.
    pub(crate) fn draw(&mut self, width: usize, height: usize, colours: Colours) -> Drawn {
        let mut cursor = None;
        let mut form = Vec::new();
        if let Some(asked) = &self.question {
            form = asked.lines(width, colours);
            cursor = asked.cursor(width, form.len());
            form.push(wrap::line(vec![(asked.help(), colours.dim())]));
        }
        let text: Vec<Line<'static>> = self
            .said
            .iter()
            .flat_map(|line| wrap::columns(&[(line.clone(), Style::new())], width))
            .map(wrap::line)
            .collect();
        let room = height.saturating_sub(form.len() + 1).max(1);
        let last = text.len().saturating_sub(room);
        let top = self.top.unwrap_or(last).min(last);
        self.seen = (text.len(), room.min(text.len()));
        let below = last - top;
        let mut lines: Vec<Line<'static>> = text.into_iter().skip(top).take(room).collect();
        let more = match (top, below) {
            (0, 0) => String::new(),
            (_, 0) => "(the end; PgUp scrolls)".to_owned(),
            (_, below) => format!("({below} more rows below; PgDn scrolls)"),
        };
        lines.push(wrap::line(vec![(more, colours.dim())]));
        let above = lines.len();
        lines.extend(form);
        Drawn { lines, cursor: cursor.map(|(row, column)| (above + row, column)) }
    }
}

// === impl Asked ===

impl Asked {
    /// Handles a key.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys mean nothing here")]
    fn key(&mut self, key: Key) -> Pressed {
        if matches!(key, Key::Esc | Key::Interrupt) {
            return Pressed::Close;
        }
        let (options, is_many) = match &self.form {
            Form::Text | Form::Secret => {
                if key == Key::Enter {
                    return Pressed::Answer(Reply::Text(self.typed.text().to_owned()));
                }
                if key != Key::NewLine {
                    self.typed.key(key, usize::MAX);
                }
                return Pressed::Nothing;
            }
            Form::One { options, .. } => (options, false),
            Form::Many { options, .. } => (options, true),
        };
        match key {
            Key::Up | Key::BackTab => self.place = self.place.saturating_sub(1),
            Key::Down | Key::Tab => {
                self.place = (self.place + 1).min(options.len().saturating_sub(1));
            }
            Key::Home => self.place = 0,
            Key::End => self.place = options.len().saturating_sub(1),
            Key::Enter if is_many => {
                let mut chosen = self.chosen.clone();
                chosen.sort_unstable();
                return Pressed::Answer(Reply::Many(chosen));
            }
            Key::Enter if options.is_empty() => return Pressed::Close,
            Key::Enter => return Pressed::Answer(Reply::One(self.place)),
            Key::Char(' ') if is_many => {
                let place = self.place;
                if self.chosen.contains(&place) {
                    self.chosen.retain(|chosen| *chosen != place);
                } else {
                    self.chosen.push(place);
                }
            }
            Key::Char(c) => {
                self.typed.key(Key::Char(c), usize::MAX);
                let typed = self.typed.text().to_lowercase();
                let fits = |option: &String| option.to_lowercase().starts_with(&typed);
                match options.iter().position(fits) {
                    Some(place) => self.place = place,
                    None => self.typed.clear(),
                }
            }
            _ => {}
        }
        Pressed::Nothing
    }

    /// The line that remembers the answer.
    fn answered(&self, reply: &Reply) -> String {
        let options = match &self.form {
            Form::One { options, .. } | Form::Many { options, .. } => options.as_slice(),
            Form::Text | Form::Secret => &[],
        };
        let option = |place: &usize| options.get(*place).cloned().unwrap_or_default();
        let answer = match (reply, &self.form) {
            (Reply::Text(_), Form::Secret) => "•••".to_owned(),
            (Reply::Text(text), _) => text.clone(),
            (Reply::One(place), _) => option(place),
            (Reply::Many(places), _) => places.iter().map(option).collect::<Vec<_>>().join(", "),
        };
        format!("{} {answer}", self.text)
    }

    fn lines(&self, width: usize, colours: Colours) -> Vec<Line<'static>> {
        let question = wrap::words(&[(self.text.clone(), colours.strong())], width);
        let mut lines: Vec<Line<'static>> = question.into_iter().map(wrap::line).collect();
        let options = match &self.form {
            Form::Text => {
                lines.extend(field(self.typed.text(), width, colours));
                return lines;
            }
            Form::Secret => {
                let dots = "•".repeat(self.typed.text().chars().count());
                lines.extend(field(&dots, width, colours));
                return lines;
            }
            Form::One { options, .. } | Form::Many { options, .. } => options,
        };
        let first = (self.place + 1).saturating_sub(MAX_OPTIONS);
        for (at, option) in options.iter().enumerate().skip(first).take(MAX_OPTIONS) {
            let sign = if at == self.place { "› " } else { "  " };
            let mark = match (&self.form, self.chosen.contains(&at)) {
                (Form::Many { .. }, true) => "[x] ",
                (Form::Many { .. }, false) => "[ ] ",
                (Form::Text | Form::Secret | Form::One { .. }, _) => "",
            };
            let style = if at == self.place { Colours::selected() } else { Style::new() };
            let row = wrap::columns(&[(format!("{sign}{mark}{option}"), style)], width);
            lines.extend(row.into_iter().next().map(wrap::line));
        }
        lines
    }

    fn cursor(&self, width: usize, height: usize) -> Option<(usize, usize)> {
        match self.form {
            Form::Text | Form::Secret => {
                let before = self.typed.text().get(..self.typed.cursor()).unwrap_or_default();
                let columns = match self.form {
                    Form::Secret => before.chars().count(),
                    Form::Text | Form::One { .. } | Form::Many { .. } => {
                        wrap::width(&[(before.to_owned(), Style::new())])
                    }
                };
                let room = width.saturating_sub(2).max(1);
                let hidden = columns.saturating_sub(room.saturating_sub(1));
                Some((height.saturating_sub(1), 2 + columns - hidden))
            }
            Form::One { .. } | Form::Many { .. } => None,
        }
    }

    fn help(&self) -> String {
        let keys = match self.form {
            Form::Text | Form::Secret => "Enter answers",
            Form::One { .. } => "↑↓ choose · Enter answers",
            Form::Many { .. } => "↑↓ move · Space chooses · Enter answers",
        };
        format!("{keys} · Esc cancels")
    }
}

/// A line that is typed; its end is seen.
fn field(text: &str, width: usize, colours: Colours) -> Vec<Line<'static>> {
    let room = width.saturating_sub(3).max(1);
    let rows = wrap::columns(&[(text.to_owned(), Style::new())], room);
    let last = rows.into_iter().next_back().unwrap_or_default();
    vec![wrap::line(std::iter::once(("> ".to_owned(), colours.accent())).chain(last).collect())]
}
