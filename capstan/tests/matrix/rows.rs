//! What is tried in every cell, and where it cannot be done. docs/bridging.md has the same rows.

use crate::kinds::{ClientKind, FORMS, ServerKind, URLS};
use crate::{Cell, Outcome, basics, events, questions};

/// Something that the protocol can do.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Cell) -> Outcome,
    /// The first that holds counts.
    pub(crate) exceptions: &'static [Exception],
}

/// Why something cannot be done in some cells, and what happens there instead.
pub(crate) struct Exception {
    pub(crate) name: &'static str,
    pub(crate) holds: fn(&ClientKind, &ServerKind) -> bool,
    pub(crate) instead: fn(&mut Cell) -> Outcome,
}

pub(crate) const ROWS: [Row; 18] = [
    row("tools", basics::tools),
    row("lossless", basics::lossless),
    row("resources", basics::resources),
    row("resource templates", basics::templates),
    row("prompts", basics::prompts),
    row("completion", basics::completion),
    row("ping and batches", basics::ping),
    row("progress", events::progress),
    row("logging", events::logging),
    row("subscriptions", events::subscriptions),
    row("list_changed", events::list_changed),
    row("cancellation", events::cancellation),
    row("form elicitation", questions::form).except(&[NO_FORM_SERVER, NO_FORM_CLIENT]),
    row("questions in turn", questions::several).except(&[NO_FORM_SERVER, NO_FORM_CLIENT]),
    row("questions of prompts", questions::prompt)
        .except(&[NO_FORM_PROMPT_SERVER, NO_FORM_PROMPT_CLIENT]),
    row("URL elicitation", questions::url).except(&[NO_URL_SERVER, NO_URL_CLIENT]),
    row("sampling", questions::sampling),
    row("roots", questions::roots),
];

const NO_FORM_SERVER: Exception = Exception {
    name: "no forms on the server's side",
    holds: |_, server| server.revision < FORMS,
    instead: |cell| questions::not_there(cell, "elicit_form"),
};

const NO_FORM_CLIENT: Exception = Exception {
    name: "no forms on the client's side",
    holds: |client, _| client.revision < FORMS,
    instead: |cell| questions::cannot_be_asked(cell, "elicit_form"),
};

const NO_FORM_PROMPT_SERVER: Exception =
    Exception { instead: questions::no_such_prompt, ..NO_FORM_SERVER };

const NO_FORM_PROMPT_CLIENT: Exception =
    Exception { instead: questions::prompt_refused, ..NO_FORM_CLIENT };

const NO_URL_SERVER: Exception = Exception {
    name: "no pages to visit on the server's side",
    holds: |_, server| server.revision < URLS,
    instead: |cell| questions::not_there(cell, "elicit_url"),
};

const NO_URL_CLIENT: Exception = Exception {
    name: "no pages to visit on the client's side",
    holds: |client, _| client.revision < URLS,
    instead: questions::no_visit,
};

// === impl Row ===

impl Row {
    const fn except(mut self, exceptions: &'static [Exception]) -> Self {
        self.exceptions = exceptions;
        self
    }
}

const fn row(name: &'static str, run: fn(&mut Cell) -> Outcome) -> Row {
    Row { name, run, exceptions: &[] }
}
