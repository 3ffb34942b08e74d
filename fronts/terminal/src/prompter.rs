//! Asks the questions of a dialog on the screen; blocks its own thread until they are answered.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use capstan_text::form::{Closed, Prompter};

use crate::mailbox::Mailbox;
use crate::news::{Form, News, Question, Reply};

/// Columns of a dialog's frame.
const FRAME: usize = 3;

/// The height that is reported: a dialog scrolls, so that everything fits.
const ROWS: usize = usize::MAX / 4;

/// Asks the questions of one dialog.
pub(crate) struct ScreenPrompter {
    mail: Arc<Mailbox>,
    dialog: u64,
    said: Vec<String>,
}

// === impl ScreenPrompter ===

impl ScreenPrompter {
    pub(crate) fn new(mail: &Arc<Mailbox>, dialog: u64) -> Self {
        Self { mail: Arc::clone(mail), dialog, said: Vec::new() }
    }

    fn ask(&mut self, text: &str, form: Form) -> Result<Reply, Closed> {
        let (reply, answer) = sync_channel(1);
        let said = std::mem::take(&mut self.said);
        let (dialog, text) = (self.dialog, text.to_owned());
        self.mail.tell(News::Question(Box::new(Question { dialog, said, text, form, reply })));
        // Without a screen there is no answer.
        answer.recv().ok().flatten().ok_or(Closed)
    }

    fn one(&mut self, text: &str, options: &[&str], start: usize) -> Result<usize, Closed> {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        match self.ask(text, Form::One { options, start })? {
            Reply::One(place) => Ok(place),
            Reply::Text(_) | Reply::Many(_) => Err(Closed),
        }
    }

    fn line(&mut self, text: &str, form: Form) -> Result<String, Closed> {
        match self.ask(text, form)? {
            Reply::Text(text) => Ok(text),
            Reply::One(_) | Reply::Many(_) => Err(Closed),
        }
    }
}

impl Prompter for ScreenPrompter {
    fn size(&self) -> (usize, usize) {
        (self.mail.columns().saturating_sub(FRAME), ROWS)
    }

    fn say(&mut self, line: &str) {
        self.said.extend(line.lines().map(str::to_owned));
    }

    fn text(&mut self, question: &str) -> Result<String, Closed> {
        self.line(question, Form::Text)
    }

    fn secret(&mut self, question: &str) -> Result<String, Closed> {
        self.line(question, Form::Secret)
    }

    fn confirm(&mut self, question: &str, default: Option<bool>) -> Result<bool, Closed> {
        let start = usize::from(default == Some(false));
        Ok(self.one(question, &["yes", "no"], start)? == 0)
    }

    fn select(&mut self, question: &str, options: &[&str], start: usize) -> Result<usize, Closed> {
        self.one(question, options, start)
    }

    fn multi_select(
        &mut self,
        question: &str,
        options: &[&str],
        chosen: &[usize],
    ) -> Result<Vec<usize>, Closed> {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        match self.ask(question, Form::Many { options, chosen: chosen.to_vec() })? {
            Reply::Many(places) => Ok(places),
            Reply::Text(_) | Reply::One(_) => Err(Closed),
        }
    }
}
