//! The screen as the front of calls, commands and turns: questions become dialogs, events news.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use capstan_app::AppError;
use capstan_app::api::{Answer, Ask, CallQuestion, Event, Interact};
use capstan_app::chat::{Offer, TurnEvent, Watch};
use capstan_hub::approvals::Extent;
use capstan_hub::ports::{Approval, BoxFuture, Elicitation, Reply};
use capstan_model::{By, Verdict};
use capstan_policy::pattern::spellings;
use capstan_policy::{Arguments, Pattern};
use capstan_safety::clean::clean;
use capstan_text::clean::one_line;
use capstan_text::conversation::{Output, Printed};
use capstan_text::gather::Report;
use capstan_text::{confirm, form};
use tokio::sync::Semaphore;

use crate::mailbox::Mailbox;
use crate::news::News;
use crate::prompter::ScreenPrompter;

/// The most dialogs at a time: the open one and those that wait. Further ones are declined.
const MAX_DIALOGS: usize = 16;

/// The longest line of a message of a server.
const MAX_LINE: usize = 400;

/// The front of all calls of a conversation.
pub(crate) struct ScreenFront {
    mail: Arc<Mailbox>,
    /// Calls that need no approval.
    allow: Vec<Pattern>,
    /// Allows one open dialog at a time.
    turn: Semaphore,
    /// Number of dialogs, with those that wait.
    dialogs: AtomicUsize,
    next: AtomicU64,
}

/// A place among the dialogs, free again when it is dropped.
struct Place<'a>(&'a ScreenFront);

/// Closes a dialog when it is dropped, also if nobody waits for its answer any more.
struct Closing<'a>(&'a Mailbox, u64);

// === impl ScreenFront ===

impl ScreenFront {
    pub(crate) fn new(mail: &Arc<Mailbox>, allow: Vec<Pattern>) -> Self {
        let (dialogs, next) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { mail: Arc::clone(mail), allow, turn: Semaphore::new(1), dialogs, next }
    }

    /// True if `--allow` approves the call.
    fn allows(&self, question: &CallQuestion) -> bool {
        let names = spellings(&question.id, question.id.server.as_str());
        let arguments = Arguments::These(&question.arguments);
        let matches = |pattern: &Pattern| pattern.matches(&names, arguments, Verdict::Allow);
        // A definition that has changed since it was approved needs a person, whatever its name.
        question.by != By::Pins && self.allow.iter().any(matches)
    }

    /// Opens a dialog when it is its turn; `None` if too many wait.
    async fn in_person(
        &self,
        ask: impl FnOnce(&mut ScreenPrompter) -> Answer + Send + 'static,
    ) -> Option<Answer> {
        let _place = Place::take(self)?;
        let Ok(_turn) = self.turn.acquire().await else { return Some(Answer::Refused) };
        let dialog = self.next.fetch_add(1, Ordering::Relaxed);
        let _closing = Closing(&self.mail, dialog);
        let mut prompter = ScreenPrompter::new(&self.mail, dialog);
        // Its own thread, because an answer takes time.
        let asked = tokio::task::spawn_blocking(move || ask(&mut prompter));
        Some(asked.await.unwrap_or(Answer::Refused))
    }

    async fn approve(&self, question: CallQuestion) -> Answer {
        if self.allows(&question) {
            return Answer::Approved { extent: Extent::Once };
        }
        let id = question.id.to_string();
        let asked =
            self.in_person(move |prompter| match confirm::ask(prompter, &question.into()) {
                Approval::Yes(_, extent) => Answer::Approved { extent },
                Approval::No(_) => Answer::Refused,
            });
        asked.await.unwrap_or_else(|| {
            self.warn(&format!("`{id}` was refused: {MAX_DIALOGS} questions wait already"));
            Answer::Refused
        })
    }

    async fn elicit(&self, elicitation: Elicitation) -> Answer {
        let server = elicitation.server.clone();
        let asked = self.in_person(move |prompter| match form::ask(prompter, &elicitation) {
            Reply::Accept(content) => Answer::Accepted { content },
            Reply::Decline => Answer::Declined,
            Reply::Cancel => Answer::Refused,
        });
        asked.await.unwrap_or_else(|| {
            let most = MAX_DIALOGS;
            self.warn(&format!("a question of `{server}` was declined: {most} wait already"));
            Answer::Declined
        })
    }

    fn warn(&self, text: &str) {
        self.mail.tell(News::Printed(Printed::Warning, text.to_owned()));
    }

    fn tell_waiting(&self, dialogs: usize) {
        self.mail.tell(News::Waiting(dialogs.saturating_sub(1)));
    }

    fn tell_offer(&self, offer: &Offer) {
        for (_, error) in &offer.missing.failed {
            self.warn(&one_line(error, MAX_LINE));
        }
        if !offer.missing.pending.is_empty() {
            let names: Vec<String> =
                offer.missing.pending.iter().map(|name| format!("`{name}`")).collect();
            self.warn(&format!("no answer yet from {}", names.join(", ")));
        }
    }

    fn tell_event(&self, event: Event) {
        match event {
            Event::Problem { problem } => {
                self.warn(&problem.to_string());
                if let Some(help) = problem.help {
                    self.mail.tell(News::Printed(Printed::Hint, help));
                }
            }
            Event::Progress { done, total, message } => {
                let message = one_line(&message.unwrap_or_default(), MAX_LINE);
                let count = total.map_or(format!("{done}"), |total| format!("{done} of {total}"));
                self.mail.tell(News::Progress(format!("{count} {message}").trim_end().to_owned()));
            }
            Event::Log { server, level, text } => {
                // Messages below warnings are for the developers of the server.
                if !matches!(level.as_str(), "debug" | "info" | "notice") {
                    self.warn(&format!("{server} {level}: {}", one_line(&text, MAX_LINE)));
                }
            }
            Event::Missing { missing } => {
                for (_, error) in &missing.failed {
                    self.warn(&one_line(error, MAX_LINE));
                }
            }
            Event::Note { text } => self.mail.tell(News::Printed(Printed::Note, text)),
            Event::Status { .. } => {}
        }
    }
}

impl Interact for ScreenFront {
    fn event(&self, event: Event) {
        self.tell_event(event);
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            match ask {
                Ask::Approve { question } => self.approve(question).await,
                Ask::Elicit { form } => self.elicit(form.into()).await,
                Ask::Arguments { .. } | Ask::Values { .. } => Answer::Refused,
            }
        })
    }
}

impl Output for ScreenFront {
    fn print(&self, kind: Printed, text: &str) {
        self.mail.tell(News::Printed(kind, clean(text).into_owned()));
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        Interact::ask(self, ask)
    }
}

impl Report for ScreenFront {
    fn event(&self, event: Event) {
        self.tell_event(event);
    }

    fn left_out(&self, name: &str, error: &AppError) {
        self.warn(&format!("`@{name}`: {}", error.message));
        if let Some(hint) = &error.hint {
            self.mail.tell(News::Printed(Printed::Hint, hint.clone()));
        }
    }
}

impl Watch for ScreenFront {
    fn event(&self, event: TurnEvent) {
        self.mail.tell(match event {
            TurnEvent::Text(text) => News::Text(text),
            TurnEvent::Reasoning(_) => News::Reasoning,
            TurnEvent::Retrying { wait, reason } => {
                let text = format!("{reason}; trying again in {:.1} seconds", wait.as_secs_f64());
                News::Printed(Printed::Warning, clean(&text).into_owned())
            }
            TurnEvent::Calling(call) => {
                let arguments = one_line(call.arguments.as_str(), MAX_LINE);
                News::Calling { id: call.id, name: one_line(&call.name, MAX_LINE), arguments }
            }
            TurnEvent::Called(report) => News::Called(report),
            TurnEvent::Compacted => {
                let text = "earlier messages were summarized".to_owned();
                News::Printed(Printed::Note, text)
            }
            TurnEvent::Offered(offer) => return self.tell_offer(&offer),
        });
    }
}

// === impl Place ===

impl<'a> Place<'a> {
    fn take(front: &'a ScreenFront) -> Option<Self> {
        let more = |dialogs: usize| (dialogs < MAX_DIALOGS).then_some(dialogs + 1);
        let before = front.dialogs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        front.tell_waiting(before + 1);
        Some(Self(front))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let before = self.0.dialogs.fetch_sub(1, Ordering::Relaxed);
        self.0.tell_waiting(before.saturating_sub(1));
    }
}

// === impl Closing ===

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.tell(News::Closed(self.1));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use capstan_app::api::Form;
    use capstan_model::ServerName;
    use capstan_wire::Json;
    use futures::future::join_all;
    use futures::poll;

    use super::*;
    use crate::mailbox::Input;

    fn question() -> Ask {
        let schema = Some(Json::parse(r#"{"type":"object","properties":{}}"#.to_owned()).unwrap());
        let server: ServerName = "s".parse().unwrap();
        Ask::Elicit { form: Form { server, message: "Who?".to_owned(), schema, url: None } }
    }

    /// C46: sixteen questions are open or wait; the next one is declined with a warning.
    #[tokio::test]
    async fn c46_the_seventeenth_question_is_declined_and_says_so() {
        let mail = Arc::new(Mailbox::new());
        let front = ScreenFront::new(&mail, Vec::new());
        let asked = (0..MAX_DIALOGS).map(|_| Interact::ask(&front, question()));
        let mut waiting = Box::pin(join_all(asked));
        assert!(poll!(&mut waiting).is_pending());
        let answer = Interact::ask(&front, question()).await;
        assert!(matches!(answer, Answer::Declined), "{answer:?}");
        let (mut is_open, mut is_warned, mut most) = (false, false, 0);
        while !is_open {
            let inputs = mail.take(Duration::from_secs(20));
            assert!(!inputs.is_empty(), "no dialog opens");
            for input in inputs {
                let Input::News(news) = input else { continue };
                is_open |= matches!(news, News::Question(_));
                if let News::Printed(Printed::Warning, text) = news {
                    is_warned |= text == "a question of `s` was declined: 16 wait already";
                } else if let News::Waiting(waiting) = news {
                    most = most.max(waiting);
                }
            }
        }
        assert!(is_warned);
        assert_eq!(most, MAX_DIALOGS - 1);
        // The askers do not wait any more, so that all dialogs are closed.
        drop(waiting);
        let closed = mail
            .take(Duration::ZERO)
            .into_iter()
            .any(|input| matches!(input, Input::News(News::Closed(_))));
        assert!(closed);
        assert_eq!(front.dialogs.load(Ordering::Relaxed), 0);
    }
}
