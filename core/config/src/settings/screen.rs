//! The keys of `[screen]`.

use capstan_safety::scan::{Mode, Modes};

use super::define::keys;
use super::form::{Form, OneOf, Size, Table};
use crate::fields::{Fields, Words};

keys! {
    /// Checks of what servers send: texts that try to steer a model, and the size of answers.
    pub merged Screen
    keys {
        /// The maximum size of an answer.
        max_answer: u64 as Size = 10 << 20, smallest;
        /// The number of tokens above which an answer is delivered in pages, to clients of the gateway and in output of every kind. Without it, only output on a terminal is paged, above 25,000 tokens.
        max_tokens: u32, smallest;
        /// The longest part of a tool's description that a model of ours, or tool search, reads. Clients of the gateway and people get all of it.
        max_description: u64 as Size = 2 << 10, smallest;
        /// Suspicious text in definitions of tools, prompts and resources: hide the item (`block`), replace the text by `[sanitized]` (`mask`), log it (`flag`), or do not look for it (`off`). Of several files, the strictest mode applies.
        definitions: Mode = Modes::default().definitions, smallest;
        /// Suspicious text in instructions of servers: leave them out (`block`), `mask`, `flag` or `off`.
        instructions: Mode = Modes::default().instructions, smallest;
        /// Suspicious text in answers: refuse the answer (`block`), `mask`, `flag` or `off`. Answers stay byte for byte as they are with `flag` and `off`.
        answers: Mode = Modes::default().answers, smallest;
        /// Mask tokens and keys of known services in answers.
        secrets: bool = false, any;
        /// Digests of suspicious texts that you have accepted, as `capstan scan --accept` writes them. Those of a project file do not count.
        accept: Vec<String> = Vec::new(), own;
    }
}

keys! {
    /// Checks of one server's texts, in place of those under `[screen]`.
    pub table ServerScreen
    keys {
        /// Suspicious text in its definitions: `block`, `mask`, `flag` or `off`.
        definitions: Mode;
        /// Suspicious text in its instructions: `block`, `mask`, `flag` or `off`.
        instructions: Mode;
        /// Suspicious text in its answers: `block`, `mask`, `flag` or `off`.
        answers: Mode;
    }
}

/// The form of a server's table `screen`.
pub(crate) struct ServerScreenTable;

// === impl Screen ===

impl Screen {
    /// The modes for a server.
    pub fn modes(&self, server: &ServerScreen) -> Modes {
        Modes {
            definitions: server.definitions.unwrap_or(self.definitions),
            instructions: server.instructions.unwrap_or(self.instructions),
            answers: server.answers.unwrap_or(self.answers),
        }
    }
}

// === impl ServerScreen ===

impl ServerScreen {
    /// Adds the stricter modes of another entry for the same server.
    pub(crate) fn keep_restrictions_of(&mut self, other: &Self) {
        let stricter = |own: Option<Mode>, other: Option<Mode>| match (own, other) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
        self.definitions = stricter(self.definitions, other.definitions);
        self.instructions = stricter(self.instructions, other.instructions);
        self.answers = stricter(self.answers, other.answers);
    }
}

// === impl Mode ===

impl OneOf for Mode {
    const WORDS: Words<Self> =
        &[("block", Self::Block), ("mask", Self::Mask), ("flag", Self::Flag), ("off", Self::Off)];
}

// === impl ServerScreenTable ===

impl Form for ServerScreenTable {
    type Value = ServerScreen;
    type Schema = <ServerScreen as Table>::Keys;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<ServerScreen> {
        let mut nested = fields.nested(key)?;
        let screen = ServerScreen::read(&mut nested);
        nested.finish();
        Some(screen)
    }

    fn write(_: &ServerScreen) -> serde_json::Value {
        serde_json::Value::Null
    }
}
