//! The person at the command line: approves, answers questions, sees progress.

use capstan_app::AppError;
use capstan_app::api::{Answer, Ask, CallQuestion, Event, Form, Interact, Misfit, Slot};
use capstan_hub::approvals::Extent;
use capstan_hub::ports::{Approval, BoxFuture, Elicitation, Reply, Want};
use capstan_model::By;
use capstan_text::arguments::{Given, slots};
use capstan_text::form::{Elicit, Terminal};
use capstan_text::screen::has_person;
use capstan_text::{confirm, form};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;

use crate::args::AskArgs;
use crate::commands::tell_missing;
use crate::print::Printer;
use crate::spinner::Spinner;

/// The person who typed the command, as the front of an operation.
pub(crate) struct Person {
    print: Printer,
    manner: Manner,
    typed: Typed,
    spinner: Spinner,
}

/// The ways in which the person is asked.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// The way in which questions of servers are answered.
    pub(crate) elicit: Elicit,
    /// The way in which calls that a rule asks about are approved.
    pub(crate) confirm: Confirm,
}

/// The way in which a call that a rule asks about is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// Typing the call approves it if the default asks; an explicit rule is answered in this way.
    Typed(ByPerson),
    /// Every question is answered in this way.
    Every(ByPerson),
}

/// The way in which a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByPerson {
    /// The person is asked.
    Asked,
    /// The person typed `--yes` on a terminal.
    SaysYes,
    /// No person can be asked.
    Nobody,
}

/// The words from which arguments are built.
pub(crate) enum Typed {
    /// The command has no arguments.
    Nothing,
    /// The arguments of a tool.
    Arguments(Given),
    /// The values of a prompt or template.
    Values(Vec<String>),
    /// The values that are already given while this argument is completed.
    Completing(String, Vec<String>),
}

// === impl Confirm ===

impl Confirm {
    /// The way that `--ask` and `--yes` select here.
    pub(crate) fn of(ask: AskArgs) -> Self {
        let person = match (has_person(), ask.yes) {
            (false, _) => ByPerson::Nobody,
            (true, true) => ByPerson::SaysYes,
            (true, false) => ByPerson::Asked,
        };
        if ask.ask { Self::Every(person) } else { Self::Typed(person) }
    }
}

// === impl Person ===

impl Person {
    pub(crate) fn new(print: &Printer, manner: Manner, typed: Typed, message: &str) -> Self {
        let spinner = Spinner::new(print, message);
        Self { print: print.clone(), manner, typed, spinner }
    }

    /// A person who is asked nothing and only sees progress.
    pub(crate) fn watching(print: &Printer, message: &str) -> Self {
        Self::completing(print, Typed::Nothing, message)
    }

    /// A person who typed `--complete`, which approves this one request.
    pub(crate) fn completing(print: &Printer, typed: Typed, message: &str) -> Self {
        let confirm = Confirm::Typed(ByPerson::Nobody);
        let manner = Manner { elicit: Elicit::Decline, confirm };
        Self::new(print, manner, typed, message)
    }

    /// Asks the person whether to log in to a server that refused a request.
    pub(crate) async fn wants_to_log_in(&self, error: &AppError) -> bool {
        if !has_person() || self.print.wants_json() || self.print.screen().is_some() {
            return false;
        }
        let Some(server) = &error.login else { return false };
        let question = format!("`{server}` needs a login. Log in now?");
        let asked = self.in_person(move || {
            let yes = inquire::Confirm::new(&question).with_default(true).prompt();
            if matches!(yes, Ok(true)) { Answer::Believed } else { Answer::Refused }
        });
        asked.await == Answer::Believed
    }

    fn arguments(&self, schema: &Json) -> Answer {
        let Typed::Arguments(given) = &self.typed else { return Answer::Refused };
        match given.build(schema) {
            Ok(arguments) => Answer::Arguments { arguments },
            Err(error) => Answer::Misfit(Misfit { problem: error.to_string(), hint: error.hint() }),
        }
    }

    fn values(&self, slots: &[Slot]) -> Answer {
        let values = match &self.typed {
            Typed::Values(words) => slots::fill(words, slots),
            Typed::Completing(name, _) if !slots.iter().any(|slot| slot.name == *name) => {
                Err(slots::unknown(name, slots))
            }
            Typed::Completing(_, words) => slots::assign(words, slots),
            Typed::Nothing | Typed::Arguments(_) => return Answer::Refused,
        };
        match values {
            Ok(values) => Answer::Values { values },
            Err(error) => Answer::Misfit(Misfit { problem: error.to_string(), hint: error.hint() }),
        }
    }

    /// Asks in a separate thread: an answer takes time, and the connection must not be blocked.
    fn in_person(
        &self,
        ask: impl FnOnce() -> Answer + Send + 'static,
    ) -> BoxFuture<'static, Answer> {
        let spinner = self.spinner.clone();
        async move {
            let asked = tokio::task::spawn_blocking(move || spinner.ask(ask));
            asked.await.unwrap_or(Answer::Refused)
        }
        .boxed()
    }

    fn approve(&self, question: CallQuestion) -> BoxFuture<'_, Answer> {
        let person = match (self.manner.confirm, question.by) {
            (Confirm::Typed(_), By::Default) => return ready(Answer::Believed).boxed(),
            (Confirm::Typed(person), By::Rule | By::Pins) | (Confirm::Every(person), _) => person,
        };
        match person {
            ByPerson::Nobody => ready(Answer::Nobody).boxed(),
            ByPerson::SaysYes => ready(Answer::Approved { extent: Extent::Once }).boxed(),
            ByPerson::Asked => {
                if let Some(screen) = self.print.screen() {
                    return screen.ask(Ask::Approve { question });
                }
                self.in_person(move || match confirm::ask(&mut Terminal, &question.into()) {
                    Approval::Yes(_, extent) => Answer::Approved { extent },
                    Approval::No(_) => Answer::Refused,
                })
            }
        }
    }

    fn elicit(&self, form: Form) -> BoxFuture<'_, Answer> {
        if let (Elicit::Ask, Some(screen)) = (&self.manner.elicit, self.print.screen()) {
            return screen.ask(Ask::Elicit { form });
        }
        let elicitation = Elicitation::from(form);
        match (&self.manner.elicit, &elicitation.want) {
            (Elicit::Ask, _) => {
                self.in_person(move || accepted(form::ask(&mut Terminal, &elicitation)))
            }
            (Elicit::Decline, _) | (_, Want::Visit(_)) => {
                self.say_declined(&elicitation, "questions are declined");
                ready(Answer::Declined).boxed()
            }
            (Elicit::Defaults, Want::Form(schema)) => {
                let content = form::fill_defaults(schema);
                if content.is_none() {
                    self.say_declined(&elicitation, "not every field has a default");
                    return ready(Answer::Declined).boxed();
                }
                ready(Answer::Accepted { content }).boxed()
            }
            (Elicit::File(values), Want::Form(schema)) => {
                let answer = match form::from_file(schema, values) {
                    Ok(content) => Answer::Accepted { content: Some(content) },
                    Err(error) => {
                        self.say_declined(&elicitation, &error.to_string());
                        Answer::Declined
                    }
                };
                ready(answer).boxed()
            }
        }
    }

    fn say_declined(&self, elicitation: &Elicitation, why: &str) {
        let (server, message) = (&elicitation.server, &elicitation.message);
        let text = format!("`{server}` asked: {message}\n  declined: {why}");
        let (print, declines) = (self.print.clone(), matches!(self.manner.elicit, Elicit::Decline));
        self.spinner.tell(move || {
            print.note(&text);
            if declines {
                print.hint("answer it with `--elicit defaults` or `--elicit FILE.json`");
            }
        });
    }
}

impl Interact for Person {
    fn event(&self, event: Event) {
        let print = self.print.clone();
        match event {
            Event::Progress { message: Some(message), .. } if self.print.screen().is_some() => {
                print.note(&format!("… {message}"));
            }
            Event::Problem { problem } => self.spinner.tell(move || print.problem(&problem)),
            Event::Status { text } => self.spinner.say(&text),
            Event::Progress { done, total, message } => {
                self.spinner.progress(done, total, message.as_deref());
            }
            Event::Log { server, level, text } => {
                self.spinner.tell(move || print.note(&format!("{server} {level}: {text}")));
            }
            Event::Missing { missing } => {
                self.spinner.tell(move || tell_missing(&print, &missing));
            }
            Event::Note { text } => self.spinner.tell(move || print.note(&text)),
        }
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        match ask {
            Ask::Arguments { schema } => ready(self.arguments(&schema)).boxed(),
            Ask::Values { slots } => ready(self.values(&slots)).boxed(),
            Ask::Elicit { form } => self.elicit(form),
            Ask::Approve { question } => self.approve(question),
        }
    }
}

pub(crate) fn accepted(reply: Reply) -> Answer {
    match reply {
        Reply::Accept(content) => Answer::Accepted { content },
        Reply::Decline => Answer::Declined,
        Reply::Cancel => Answer::Refused,
    }
}
