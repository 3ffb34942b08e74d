//! The person at the command line: approves by typing, answers questions, sees progress.

use std::sync::atomic::{AtomicU64, Ordering};

use capstan_hub::Ground;
use capstan_hub::ports::{
    Approval, BoxFuture, Elicitation, Notice, Operator, Question, Reply, Want,
};
use capstan_text::confirm;
use capstan_text::form::{self, Elicit};
use futures::FutureExt;
use futures::future::ready;

use crate::args::AskArgs;
use crate::print::Printer;
use crate::waiting::Waiting;

/// Whoever typed the command.
pub(crate) struct Person {
    print: Printer,
    manner: Manner,
    waiting: Waiting,
    /// Tells them apart from others whose commands run in the same gateway.
    number: u64,
}

/// How they are asked.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// What a server asks.
    pub(crate) elicit: Elicit,
    /// What a rule asks.
    pub(crate) confirm: Confirm,
}

/// How a call that needs approval is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// The person who typed the command has decided already.
    Believed,
    /// The person is asked.
    Ask,
    /// No person can be asked.
    Nobody,
}

// === impl Confirm ===

impl Confirm {
    /// The effect of `--ask` here.
    pub(crate) fn of(print: &Printer, ask: AskArgs) -> Self {
        match (ask.ask, print.has_person()) {
            (false, _) => Self::Believed,
            (true, true) => Self::Ask,
            (true, false) => Self::Nobody,
        }
    }
}

// === impl Person ===

impl Person {
    pub(crate) fn new(print: Printer, manner: Manner, waiting: Waiting) -> Self {
        // Clients of a gateway count from one.
        static NUMBERS: AtomicU64 = AtomicU64::new(1 << 48);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self { print, manner, waiting, number }
    }

    fn answer(&self, elicitation: Elicitation) -> BoxFuture<'_, Reply> {
        match (&self.manner.elicit, &elicitation.want) {
            (Elicit::Ask, _) => self.ask(elicitation),
            (Elicit::Decline, _) | (_, Want::Visit(_)) => {
                self.say_declined(&elicitation, "questions are declined");
                ready(Reply::Decline).boxed()
            }
            (Elicit::Defaults, Want::Form(schema)) => {
                let reply = form::fill_defaults(schema).map(|values| Reply::Accept(Some(values)));
                if reply.is_none() {
                    self.say_declined(&elicitation, "not every field has a default");
                }
                ready(reply.unwrap_or(Reply::Decline)).boxed()
            }
            (Elicit::File(values), Want::Form(schema)) => {
                let reply = match form::from_file(schema, values) {
                    Ok(values) => Reply::Accept(Some(values)),
                    Err(error) => {
                        self.say_declined(&elicitation, &error.to_string());
                        Reply::Decline
                    }
                };
                ready(reply).boxed()
            }
        }
    }

    /// Asks in a thread of its own: a person takes time, and the connection must go on.
    fn ask(&self, elicitation: Elicitation) -> BoxFuture<'_, Reply> {
        let (waiting, print) = (self.waiting.clone(), self.print.clone());
        async move {
            let asked = tokio::task::spawn_blocking(move || {
                waiting.ask(|| form::ask(&mut *print.prompter(), &elicitation))
            });
            asked.await.unwrap_or(Reply::Cancel)
        }
        .boxed()
    }

    fn say_declined(&self, elicitation: &Elicitation, why: &str) {
        let (server, message) = (&elicitation.server, &elicitation.message);
        let text = format!("`{server}` asked: {message}\n  declined: {why}");
        let (print, declines) = (self.print.clone(), matches!(self.manner.elicit, Elicit::Decline));
        self.waiting.tell(move || {
            print.note(&text);
            if declines {
                print.hint("`--elicit defaults` or `--elicit FILE.json` answers it");
            }
        });
    }
}

impl Operator for Person {
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval> {
        match self.manner.confirm {
            // Who types `capstan call` has decided already, for this one call.
            Confirm::Believed => ready(Approval::once(Ground::ByHand)).boxed(),
            Confirm::Nobody => ready(Approval::No(Ground::Nobody)).boxed(),
            Confirm::Ask => {
                let (waiting, question) = (self.waiting.clone(), question.clone());
                let print = self.print.clone();
                async move {
                    let asked = tokio::task::spawn_blocking(move || {
                        waiting.ask(|| confirm::ask(&mut *print.prompter(), &question))
                    });
                    asked.await.unwrap_or(Approval::No(Ground::Refused))
                }
                .boxed()
            }
        }
    }

    fn told(&self, text: &str) {
        let (print, text) = (self.print.clone(), text.to_owned());
        self.waiting.tell(move || print.note(&text));
    }

    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, Reply> {
        self.answer(elicitation)
    }

    fn party(&self) -> u64 {
        self.number
    }

    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Progress { done, total, message, .. } => {
                self.waiting.progress(done, total, message.as_deref());
            }
            Notice::Log { server, level, text, .. } => {
                let print = self.print.clone();
                self.waiting.tell(move || print.note(&format!("{server} {level}: {text}")));
            }
        }
    }
}
