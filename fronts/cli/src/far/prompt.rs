//! Questions to a person whose terminal is somewhere else.

use std::sync::mpsc::sync_channel;

use capstan_text::form::{Closed, Prompter, Terminal};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use super::Event;

/// One question. Everything in it is safe to show.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Prompt {
    /// No question: something that is said before one.
    Say {
        /// What.
        line: String,
    },
    /// For a line.
    Text {
        /// What is asked.
        question: String,
    },
    /// For a line that is not shown.
    Secret {
        /// What is asked.
        question: String,
    },
    /// For yes or no.
    Confirm {
        /// What is asked.
        question: String,
        /// What counts when nothing is typed.
        default: Option<bool>,
    },
    /// For one of several.
    Select {
        /// What is asked.
        question: String,
        /// What there is.
        options: Vec<String>,
        /// Where to begin.
        start: usize,
    },
    /// For some of several.
    MultiSelect {
        /// What is asked.
        question: String,
        /// What there is.
        options: Vec<String>,
        /// What is chosen at first.
        chosen: Vec<usize>,
    },
}

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Typed {
    /// The question was closed, or cannot be asked.
    Closed,
    /// Nothing was to be typed.
    Heard,
    /// A line.
    Text(String),
    /// Yes or no.
    Yes(bool),
    /// The places of what was chosen.
    Chosen(Vec<usize>),
}

/// The terminal of a shell that is somewhere else.
pub(crate) struct FarTerminal(UnboundedSender<Event>);

// === impl Prompt ===

impl Prompt {
    /// Asks here. Blocks until it is answered.
    pub(super) fn ask(&self) -> Typed {
        fn shown(options: &[String]) -> Vec<&str> {
            options.iter().map(String::as_str).collect()
        }
        let mut here = Terminal;
        let typed = match self {
            Self::Say { line } => {
                here.say(line);
                Ok(Typed::Heard)
            }
            Self::Text { question } => here.text(question).map(Typed::Text),
            Self::Secret { question } => here.secret(question).map(Typed::Text),
            Self::Confirm { question, default } => here.confirm(question, *default).map(Typed::Yes),
            Self::Select { question, options, start } => {
                let place = here.select(question, &shown(options), *start);
                place.map(|place| Typed::Chosen(vec![place]))
            }
            Self::MultiSelect { question, options, chosen } => {
                here.multi_select(question, &shown(options), chosen).map(Typed::Chosen)
            }
        };
        typed.unwrap_or(Typed::Closed)
    }
}

// === impl FarTerminal ===

impl FarTerminal {
    pub(super) fn new(events: UnboundedSender<Event>) -> Self {
        Self(events)
    }

    /// Asks there. Blocks until it is answered; a shell that is gone answers nothing.
    fn ask(&self, prompt: Prompt) -> Typed {
        let (answer, answered) = sync_channel(1);
        if self.0.send(Event::Ask(prompt, answer)).is_err() {
            return Typed::Closed;
        }
        answered.recv().unwrap_or(Typed::Closed)
    }
}

impl Prompter for FarTerminal {
    fn say(&mut self, line: &str) {
        self.ask(Prompt::Say { line: line.to_owned() });
    }

    fn text(&mut self, question: &str) -> Result<String, Closed> {
        match self.ask(Prompt::Text { question: question.to_owned() }) {
            Typed::Text(text) => Ok(text),
            Typed::Closed | Typed::Heard | Typed::Yes(_) | Typed::Chosen(_) => Err(Closed),
        }
    }

    fn secret(&mut self, question: &str) -> Result<String, Closed> {
        match self.ask(Prompt::Secret { question: question.to_owned() }) {
            Typed::Text(text) => Ok(text),
            Typed::Closed | Typed::Heard | Typed::Yes(_) | Typed::Chosen(_) => Err(Closed),
        }
    }

    fn confirm(&mut self, question: &str, default: Option<bool>) -> Result<bool, Closed> {
        match self.ask(Prompt::Confirm { question: question.to_owned(), default }) {
            Typed::Yes(yes) => Ok(yes),
            Typed::Closed | Typed::Heard | Typed::Text(_) | Typed::Chosen(_) => Err(Closed),
        }
    }

    fn select(&mut self, question: &str, options: &[&str], start: usize) -> Result<usize, Closed> {
        let prompt =
            Prompt::Select { question: question.to_owned(), options: owned(options), start };
        match self.ask(prompt) {
            Typed::Chosen(places) => {
                let place = places.first().copied();
                place.filter(|place| *place < options.len()).ok_or(Closed)
            }
            Typed::Closed | Typed::Heard | Typed::Text(_) | Typed::Yes(_) => Err(Closed),
        }
    }

    fn multi_select(
        &mut self,
        question: &str,
        options: &[&str],
        chosen: &[usize],
    ) -> Result<Vec<usize>, Closed> {
        let (question, chosen) = (question.to_owned(), chosen.to_vec());
        match self.ask(Prompt::MultiSelect { question, options: owned(options), chosen }) {
            Typed::Chosen(mut places) => {
                places.retain(|place| *place < options.len());
                Ok(places)
            }
            Typed::Closed | Typed::Heard | Typed::Text(_) | Typed::Yes(_) => Err(Closed),
        }
    }
}

fn owned(options: &[&str]) -> Vec<String> {
    options.iter().map(|option| (*option).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// What a command gets whose shell answers this to a choice of three.
    fn chosen(typed: Typed) -> Result<usize, Closed> {
        let (events, mut asked) = unbounded_channel();
        let shell = std::thread::spawn(move || {
            let Some(Event::Ask(Prompt::Select { options, .. }, answer)) = asked.blocking_recv()
            else {
                panic!("no question")
            };
            assert_eq!(options, ["a", "b", "c"]);
            answer.send(typed).unwrap();
        });
        let chosen = FarTerminal::new(events).select("which?", &["a", "b", "c"], 0);
        shell.join().unwrap();
        chosen
    }

    #[test]
    fn what_was_typed_elsewhere_counts_and_what_does_not_fit_is_no_answer() {
        assert_eq!(chosen(Typed::Chosen(vec![2])), Ok(2));
        for odd in [
            Typed::Chosen(vec![3]),
            Typed::Chosen(Vec::new()),
            Typed::Text("a".to_owned()),
            Typed::Yes(true),
            Typed::Heard,
            Typed::Closed,
        ] {
            assert_eq!(chosen(odd.clone()), Err(Closed), "{odd:?}");
        }
    }

    #[test]
    fn a_shell_that_is_gone_has_closed_the_question() {
        let (events, asked) = unbounded_channel();
        drop(asked);
        assert_eq!(FarTerminal::new(events).text("name?"), Err(Closed));
    }
}
