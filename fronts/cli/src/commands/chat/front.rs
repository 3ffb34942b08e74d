//! Answers the questions of operations where no person can be asked.

use std::sync::{Mutex, PoisonError};

use capstan_app::AppError;
use capstan_app::api::{Answer, Ask, CallQuestion, Event, Interact};
use capstan_hub::approvals::Extent;
use capstan_hub::ports::{Approval, BoxFuture, Elicitation};
use capstan_model::{By, ItemId, Verdict};
use capstan_policy::pattern::spellings;
use capstan_policy::{Arguments, Pattern};
use capstan_text::conversation::allowed;
use capstan_text::form::Terminal;
use capstan_text::gather::Report;
use capstan_text::{confirm, form};
use futures::FutureExt as _;
use futures::future::ready;
use tokio::sync::Semaphore;

use crate::commands::tell_missing;
use crate::person::accepted;
use crate::print::Printer;

/// The front of a model's calls: approves what `--allow` matches, and nothing else.
pub(super) struct ModelFront {
    print: Printer,
    allow: Vec<Pattern>,
    /// Items that needed an approval and got none.
    unapproved: Mutex<Vec<ItemId>>,
}

/// The front of a model's calls in a conversation: approves what `--allow` matches, and asks the
/// person about everything else, one question at a time.
pub(super) struct PersonFront {
    rules: ModelFront,
    turn: Semaphore,
}

/// Prints what happens while a message is gathered.
pub(super) struct Reported(pub(super) Printer);

// === impl ModelFront ===

impl ModelFront {
    /// A front that approves calls that match these patterns.
    ///
    /// # Errors
    /// If a pattern is invalid.
    pub(super) fn new(print: &Printer, allow: &[String]) -> Result<Self, AppError> {
        let allow = allow.iter().map(|text| allowed(text)).collect::<Result<_, _>>()?;
        Ok(Self { print: print.clone(), allow, unapproved: Mutex::default() })
    }

    /// Prints which calls needed an approval, and how to allow them.
    pub(super) fn tell_unapproved(&self) {
        let mut items =
            std::mem::take(&mut *self.unapproved.lock().unwrap_or_else(PoisonError::into_inner));
        items.sort_by_key(ToString::to_string);
        items.dedup();
        for item in items {
            self.print.warning(&format!("`{item}` needs an approval, and nobody can be asked"));
            self.print.hint(&format!("`--allow '{item}'` approves its calls"));
        }
    }

    /// True if `--allow` approves the call.
    fn allows(&self, question: &CallQuestion) -> bool {
        let names = spellings(&question.id, question.id.server.as_str());
        let arguments = Arguments::These(&question.arguments);
        let matches = |pattern: &Pattern| pattern.matches(&names, arguments, Verdict::Allow);
        // A definition that has changed since it was approved needs a person, whatever its name.
        question.by != By::Pins && self.allow.iter().any(matches)
    }

    fn approve(&self, question: &CallQuestion) -> Answer {
        if self.allows(question) {
            return Answer::Approved { extent: Extent::Once };
        }
        let mut unapproved = self.unapproved.lock().unwrap_or_else(PoisonError::into_inner);
        unapproved.push(question.id.clone());
        Answer::Nobody
    }
}

impl Interact for ModelFront {
    fn event(&self, event: Event) {
        tell(&self.print, event);
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        let answer = match ask {
            Ask::Approve { question } => self.approve(&question),
            Ask::Elicit { form } => {
                let server = &form.server;
                self.print.note(&format!(
                    "`{server}` asked: {}\n  declined: nobody can be asked",
                    form.message
                ));
                Answer::Declined
            }
            Ask::Arguments { .. } | Ask::Values { .. } => Answer::Refused,
        };
        ready(answer).boxed()
    }
}

// === impl PersonFront ===

impl PersonFront {
    /// A front that approves calls that match these patterns, and asks about others.
    ///
    /// # Errors
    /// If a pattern is invalid.
    pub(super) fn new(print: &Printer, allow: &[String]) -> Result<Self, AppError> {
        Ok(Self { rules: ModelFront::new(print, allow)?, turn: Semaphore::new(1) })
    }

    /// Asks in a separate thread, because an answer takes time.
    async fn in_person(&self, ask: impl FnOnce() -> Answer + Send + 'static) -> Answer {
        let Ok(_turn) = self.turn.acquire().await else { return Answer::Refused };
        tokio::task::spawn_blocking(ask).await.unwrap_or(Answer::Refused)
    }
}

impl Interact for PersonFront {
    fn event(&self, event: Event) {
        if let Event::Progress { message: Some(message), .. } = &event {
            self.rules.print.note(&format!("  … {message}"));
        }
        tell(&self.rules.print, event);
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        match ask {
            Ask::Approve { question } if self.rules.allows(&question) => {
                ready(Answer::Approved { extent: Extent::Once }).boxed()
            }
            Ask::Approve { question } => self
                .in_person(move || match confirm::ask(&mut Terminal, &question.into()) {
                    Approval::Yes(_, extent) => Answer::Approved { extent },
                    Approval::No(_) => Answer::Refused,
                })
                .boxed(),
            Ask::Elicit { form } => {
                let elicitation = Elicitation::from(form);
                self.in_person(move || accepted(form::ask(&mut Terminal, &elicitation))).boxed()
            }
            Ask::Arguments { .. } | Ask::Values { .. } => ready(Answer::Refused).boxed(),
        }
    }
}

impl Report for Reported {
    fn event(&self, event: Event) {
        tell(&self.0, event);
    }

    fn left_out(&self, name: &str, error: &AppError) {
        self.0.warning(&format!("`@{name}`: {}", error.message));
        if let Some(hint) = &error.hint {
            self.0.hint(hint);
        }
    }
}

fn tell(print: &Printer, event: Event) {
    match event {
        Event::Problem { problem } => print.problem(&problem),
        Event::Missing { missing } => tell_missing(print, &missing),
        Event::Note { text } => print.note(&text),
        // Scripts read the answer, not what happens on the way.
        Event::Status { .. } | Event::Progress { .. } | Event::Log { .. } => {}
    }
}
