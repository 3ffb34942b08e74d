//! One line of the log, and the seal that ties it to the line before.
//!
//! A line is a JSON object whose last member is `hash`: SHA-256 over the hash of the previous line
//! (64 hex digits) followed by this line's own bytes as they are without the member `hash`.

use capstan_hub::{Entry, Outcome};
use capstan_model::Binding;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::verify::Reason;

/// The most bytes a text from outside takes in a line; more is cut off and marked with `…`.
pub const MAX_TEXT: usize = 1024;

/// The most bytes a line has. Seven texts of [`MAX_TEXT`], each byte escaped, stay below it.
pub const MAX_LINE: usize = 64 * 1024;

/// The word for a row that tells of damage to the log instead of a call.
pub const BREAK: &str = "break";

/// How a line ends before it is sealed.
const UNSEALED: &str = r#","hash":""}"#;

/// One line of the audit log: serialises exactly as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Number of the entry, from 1, without gaps.
    pub seq: u64,
    /// When the call came in.
    #[serde(with = "millis")]
    pub time: Timestamp,
    /// Who asked.
    pub caller: String,
    /// Which agent of the client asked, in the client's words.
    pub caller_id: Option<String>,
    /// What the client calls itself, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The front the call came through; `None` in a [`BREAK`].
    pub front: Option<String>,
    /// The server that was asked.
    pub server: Option<String>,
    /// The item asked for; in a [`BREAK`], what happened to the log.
    pub item: String,
    /// `tool`, `resource`, `prompt` or [`BREAK`].
    pub kind: String,
    /// The method, where the item was not called but asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// What the item does.
    pub effect: Option<String>,
    /// What the rules said.
    pub verdict: Option<String>,
    /// The rule that said it.
    pub rule: Option<String>,
    /// How an `ask` was answered.
    pub approval: Option<String>,
    /// The arguments without what looks like a secret, where they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The caller's roles, where there are any; rules look at them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Whether access rules bind the caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// How the call ended; in a [`BREAK`], the kind of damage.
    pub outcome: String,
    /// The error code, where the call failed.
    pub code: Option<String>,
    /// How long the call took, in milliseconds.
    pub duration_ms: u64,
    /// Size of the request's params.
    pub request_bytes: u64,
    /// Size of the answer; 0 when none was delivered.
    pub answer_bytes: u64,
    /// Hash of the previous line, in hex.
    pub prev: String,
    /// Hash of this line, in hex.
    pub hash: String,
}

/// A place in the chain: an entry's number and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) hash: String,
}

/// What can have happened to a log, as the next entry tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The last line was incomplete; it now stands in the `.torn` file.
    Torn {
        /// Its size.
        size: u64,
    },
    /// The last line is not what was written.
    Damaged,
    /// Entries are missing at the end.
    Cut,
    /// Nothing tells what the last entry was.
    Unanchored,
    /// Entries of this process could not be written.
    Lost {
        /// How many.
        entries: u64,
    },
}

/// Times as RFC 3339 with three digits after the second, always.
mod millis {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{time:.3}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        Timestamp::deserialize(from)
    }
}

// === impl Row ===

impl Row {
    /// The row of a call; its place in the chain is not set yet.
    pub(crate) fn of(entry: &Entry) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(clip);
        Self {
            caller: clip(&entry.caller.subject),
            caller_id: text(&entry.caller.caller_id),
            client: text(&entry.caller.client),
            front: Some(entry.caller.front.as_str().to_owned()),
            server: text(&entry.server),
            method: entry.method.map(str::to_owned),
            effect: entry.effect.map(|effect| effect.as_str().to_owned()),
            verdict: entry.verdict.map(|verdict| verdict.as_str().to_owned()),
            rule: text(&entry.rule),
            approval: entry.approval.map(|ground| ground.as_str().to_owned()),
            arguments: text(&entry.arguments),
            roles: roles(&entry.caller.roles),
            bound: entry.caller.binding == Binding::Access,
            code: entry.outcome.code().map(|code| code.as_str().to_owned()),
            duration_ms: u64::try_from(entry.duration.as_millis()).unwrap_or(u64::MAX),
            request_bytes: entry.request_bytes as u64,
            answer_bytes: entry.answer_bytes as u64,
            ..Self::bare(entry.time, entry.kind.as_str(), &entry.item, entry.outcome.as_str())
        }
    }

    /// The row that tells of a fault.
    pub(crate) fn of_fault(fault: Fault, time: Timestamp) -> Self {
        Self::bare(time, BREAK, &fault.story(), fault.as_str())
    }

    /// Whether something other than a plain answer came of it.
    pub fn is_error(&self) -> bool {
        self.outcome != Outcome::Answered.as_str()
    }

    /// Whether this tells of damage to the log instead of a call.
    pub fn is_break(&self) -> bool {
        self.kind == BREAK
    }

    /// Reads a line without looking at its seal.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// Reads a line and checks its seal.
    pub(crate) fn unseal(line: &[u8]) -> Result<Self, Reason> {
        let text = std::str::from_utf8(line).map_err(|_| Reason::NotARow)?;
        let row = Self::parse(line).ok_or(Reason::NotARow)?;
        let end = format!(r#","hash":"{}"}}"#, row.hash);
        let bare = text.strip_suffix(&end).ok_or(Reason::NotARow)?;
        if row.hash != seal_of(&row.prev, bare) {
            return Err(Reason::Changed);
        }
        Ok(row)
    }

    /// Gives the row its place after `link` and adds its line to `text`; the new link comes back.
    pub(crate) fn seal_into(mut self, link: &Link, text: &mut String) -> Link {
        self.seq = link.seq.saturating_add(1);
        self.prev.clone_from(&link.hash);
        self.hash.clear();
        // A struct of numbers and strings always has a JSON text.
        let open = serde_json::to_string(&self).unwrap_or_default();
        let bare = open.strip_suffix(UNSEALED).unwrap_or(&open);
        let hash = seal_of(&self.prev, bare);
        text.push_str(bare);
        text.push_str(r#","hash":""#);
        text.push_str(&hash);
        text.push_str("\"}\n");
        Link { seq: self.seq, hash }
    }

    /// This row as a place in the chain.
    pub(crate) fn link(&self) -> Link {
        Link { seq: self.seq, hash: self.hash.clone() }
    }

    /// The place before this row.
    pub(crate) fn link_before(&self) -> Link {
        Link { seq: self.seq.saturating_sub(1), hash: self.prev.clone() }
    }

    fn bare(time: Timestamp, kind: &str, item: &str, outcome: &str) -> Self {
        Self {
            seq: 0,
            time,
            caller: "capstan".to_owned(),
            caller_id: None,
            client: None,
            front: None,
            server: None,
            item: clip(item),
            kind: kind.to_owned(),
            method: None,
            effect: None,
            verdict: None,
            rule: None,
            approval: None,
            arguments: None,
            roles: Vec::new(),
            bound: false,
            outcome: outcome.to_owned(),
            code: None,
            duration_ms: 0,
            request_bytes: 0,
            answer_bytes: 0,
            prev: String::new(),
            hash: String::new(),
        }
    }
}

// === impl Link ===

impl Link {
    /// The place before the first entry.
    pub(crate) fn start() -> Self {
        Self { seq: 0, hash: "0".repeat(64) }
    }
}

// === impl Fault ===

impl Fault {
    fn as_str(self) -> &'static str {
        match self {
            Self::Torn { .. } => "torn",
            Self::Damaged => "damaged",
            Self::Cut => "cut",
            Self::Unanchored => "unanchored",
            Self::Lost { .. } => "lost",
        }
    }

    fn story(self) -> String {
        match self {
            Self::Torn { size } => {
                format!("the last line was incomplete; its {size} bytes are in the .torn file")
            }
            Self::Damaged => "the last line is not what was written".to_owned(),
            Self::Cut => "entries are missing before this one".to_owned(),
            Self::Unanchored => "nothing told what the last entry was".to_owned(),
            Self::Lost { entries } => format!("{entries} entries could not be written"),
        }
    }
}

/// Texts come from clients and servers; one of them must not fill the log.
fn clip(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// As many roles as there is room for; together they take no more than one text.
fn roles(roles: &[String]) -> Vec<String> {
    let mut room = MAX_TEXT;
    let fits = |role: &&String| {
        let left = room.checked_sub(role.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    roles.iter().take_while(fits).cloned().collect()
}

/// The hash of a line, given without its end `,"hash":"…"}`.
fn seal_of(prev: &str, bare: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [prev, bare, "}"] {
        hasher.update(part.as_bytes());
    }
    let digits = hasher.finalize().into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}
