//! The rows that every cell tries, with the cells that cannot carry them. The tables of docs/bridging.md are made from it.

use crate::kinds::{ClientKind, FORMS, MODERN, Revision, Transport, URLS};
use crate::{Cell, Outcome, basics, events, extensions, questions};

/// Something that the protocol can do.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The work of the bridge, for people.
    pub(crate) note: &'static str,
    pub(crate) run: fn(&mut Cell) -> Outcome,
    /// The first that holds counts.
    pub(crate) exceptions: &'static [Exception],
}

/// Why something cannot be done in some cells, and what happens there instead.
pub(crate) struct Exception {
    pub(crate) name: &'static str,
    /// For this client, and a server that is spoken to in this revision.
    pub(crate) holds: fn(&ClientKind, Revision) -> bool,
    pub(crate) instead: fn(&mut Cell) -> Outcome,
}

pub(crate) const ROWS: [Row; 19] = [
    row("tools", basics::tools, "a result without `resultType` gets `complete` for modern clients"),
    row("lossless", basics::lossless, "the bytes of a result stay as they are; only `resultType`, `ttlMs` and `cacheScope` are added where a modern client needs them and the server gave none; for URIs of several servers see [below](#whose-resource-it-is)"),
    row("resources", basics::resources, "\"no such resource\" of a server of the other era becomes -32002 for legacy clients and -32602 for modern ones, with the server's own text and data; within one era it stays as it is; `ttlMs` 0 and `cacheScope` `private` are added for modern clients"),
    row("resource templates", basics::templates, ""),
    row("prompts", basics::prompts, ""),
    row("completion", basics::completion, "a server without completions offers none"),
    row("ping and batches", basics::ping, "answered here, for the revisions that have them: ping before 2026-07-28, batches in 2025-03-26"),
    row("progress", events::progress, "tokens are translated; messages come in order, before the result, to this client only"),
    row("logging", events::logging, "a legacy client's level goes to modern servers with every request, `debug` if it never set one, because a legacy client then hears everything; a legacy server is set to the most that any client wants, and each hears what it asked for"),
    row("subscriptions", events::subscriptions, "`resources/subscribe` and `subscriptions/listen` are each made of the other"),
    row("list_changed", events::list_changed, "modern servers are listened to on behalf of legacy clients; changes of a moment are told together; a client that listens is told of every reported change; a caller with access rules that has requested the list is told of visible changes only; a report within a call reaches its client there, if that has no stream for other messages"),
    row("cancellation", events::cancellation, "`notifications/cancelled`, or closing the stream, whichever the other side knows"),
    row("form elicitation", questions::form, "a question of a legacy server parks its call and becomes `input_required`; `input_required` of a modern server becomes questions, and the call is sent again with the answers").except(&[NO_FORM_SERVER, NO_FORM_CLIENT]),
    row("questions in turn", questions::several, "as often as the server likes, ten times at most where the hub sends the call again").except(&[NO_FORM_SERVER, NO_FORM_CLIENT]),
    row("questions of prompts", questions::prompt, "the same as for tools")
        .except(&[NO_FORM_PROMPT_SERVER, NO_FORM_PROMPT_CLIENT]),
    row("URL elicitation", questions::url, "-32042 becomes `input_required` for modern clients; a visit has an `elicitationId` for 2025-11-25 and none for 2026-07-28").except(&[NO_URL_SERVER, NO_URL_CLIENT]),
    row("sampling", questions::sampling, "as with forms"),
    row("roots", questions::roots, "a client that has none is spoken for by the project that Capstan was started in and the `roots` of the configuration; outside a project by these alone, so that a server keeps the folders it was given as arguments; a question outside of all calls goes to the only client that it can mean, see below"),
    row("methods of extensions", extensions::method, "at the endpoint of one server, with progress and questions; `input_required` of a modern server becomes questions for a legacy client, as for calls").except(&[ALL_SERVERS, ONLY_CALLS_ASK]),
];

const ALL_SERVERS: Exception = Exception {
    name: "methods of extensions at the endpoint of all servers",
    holds: |client, _| client.transport == Transport::Stdio,
    instead: extensions::unknown,
};

const ONLY_CALLS_ASK: Exception = Exception {
    name: "questions of a legacy server to a modern client during a method of an extension",
    holds: |client, server| client.is_modern() && server != MODERN,
    instead: extensions::not_asked,
};

const NO_FORM_SERVER: Exception = Exception {
    name: "no forms on the server's side",
    holds: |_, server| server < FORMS,
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
    holds: |_, server| server < URLS,
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

const fn row(name: &'static str, run: fn(&mut Cell) -> Outcome, note: &'static str) -> Row {
    Row { name, note, run, exceptions: &[] }
}
