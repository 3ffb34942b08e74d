//! One line of the log, and the seal that ties it to the line before.
//!
//! A line is a JSON object whose last member is `hash`: SHA-256 over the hash of the previous line
//! (64 hex digits) followed by this line's own bytes as they are without the member `hash`.

use std::borrow::Cow;

use capstan_hub::{Entry, Outcome};
use capstan_model::Binding;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::verify::Reason;
use crate::write::write;

/// The most bytes a text from outside takes in a line; more is cut off and marked with `…`.
pub const MAX_TEXT: usize = 1024;

/// The most bytes a line has. Seven texts of [`MAX_TEXT`], each byte escaped, stay below it.
pub const MAX_LINE: usize = 64 * 1024;

/// The word for a row that tells of damage to the log instead of a call.
pub const BREAK: &str = "break";

/// The word for a row that tells of entries that retention removed.
pub const RETENTION: &str = "retention";

/// One line of the audit log: serialises exactly as it is written.
///
/// A row that was read has its texts; one that is written has those of its [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row<Text = String> {
    /// Number of the entry, from 1, without gaps.
    pub seq: u64,
    /// When the call came in.
    #[serde(with = "millis")]
    pub time: Timestamp,
    /// Who asked.
    pub caller: Text,
    /// Which agent of the client asked, in the client's words.
    pub caller_id: Option<Text>,
    /// What the client calls itself, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Text>,
    /// The front the call came through; `None` in a [`BREAK`] or [`RETENTION`].
    pub front: Option<Text>,
    /// The server that was asked.
    pub server: Option<Text>,
    /// The item asked for; in a [`BREAK`] or [`RETENTION`], what happened to the log.
    pub item: Text,
    /// `tool`, `resource`, `prompt`, [`BREAK`] or [`RETENTION`].
    pub kind: Text,
    /// The method, where the item was not called but asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Text>,
    /// What the item does.
    pub effect: Option<Text>,
    /// What the rules said.
    pub verdict: Option<Text>,
    /// The rule that said it.
    pub rule: Option<Text>,
    /// How an `ask` was answered.
    pub approval: Option<Text>,
    /// The arguments without what looks like a secret, where they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Text>,
    /// The caller's roles, where there are any; rules look at them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Text>,
    /// Whether access rules bind the caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// How the call ended; in a [`BREAK`], the kind of damage.
    pub outcome: Text,
    /// The error code, where the call failed.
    pub code: Option<Text>,
    /// How long the call took, in milliseconds.
    pub duration_ms: u64,
    /// Size of the request's params.
    pub request_bytes: u64,
    /// Size of the answer; 0 when none was delivered.
    pub answer_bytes: u64,
    /// Hash of the previous line, in hex.
    pub prev: Text,
    /// Hash of this line, in hex.
    pub hash: Text,
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
    /// A process that wrote beside its calls was killed.
    Unclosed {
        /// Its number.
        process: u32,
    },
    /// Retention removes entries: no damage, but the log tells of it.
    Expired {
        /// The first of them.
        first: u64,
        /// The last one.
        last: u64,
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
        if row.hash.as_bytes() != seal_of(&row.prev, bare.as_bytes()) {
            return Err(Reason::Changed);
        }
        Ok(row)
    }

    /// This row as a place in the chain.
    pub(crate) fn link(&self) -> Link {
        Link { seq: self.seq, hash: self.hash.clone() }
    }

    /// The place before this row.
    pub(crate) fn link_before(&self) -> Link {
        Link { seq: self.seq.saturating_sub(1), hash: self.prev.clone() }
    }
}

impl<'a> Row<Cow<'a, str>> {
    /// The row of a call; its place in the chain is not set yet.
    pub(crate) fn of(entry: &'a Entry) -> Self {
        let text = |text: &'a Option<String>| text.as_deref().map(clip);
        Self {
            caller: clip(&entry.caller.subject),
            caller_id: text(&entry.caller.caller_id),
            client: text(&entry.caller.client),
            front: Some(entry.caller.front.as_str().into()),
            server: text(&entry.server),
            method: entry.method.map(Cow::from),
            effect: entry.effect.map(|effect| effect.as_str().into()),
            verdict: entry.verdict.map(|verdict| verdict.as_str().into()),
            rule: text(&entry.rule),
            approval: entry.approval.map(|ground| ground.as_str().into()),
            arguments: text(&entry.arguments),
            roles: roles(&entry.caller.roles),
            bound: entry.caller.binding == Binding::Access,
            code: entry.outcome.code().map(|code| code.as_str().into()),
            duration_ms: u64::try_from(entry.duration.as_millis()).unwrap_or(u64::MAX),
            request_bytes: entry.request_bytes as u64,
            answer_bytes: entry.answer_bytes as u64,
            ..Self::bare(entry.time, entry.kind.as_str(), entry.outcome.as_str(), clip(&entry.item))
        }
    }

    /// The row that tells of a fault.
    pub(crate) fn of_fault(fault: Fault, time: Timestamp) -> Self {
        Self::bare(time, fault.kind(), fault.as_str(), fault.story().into())
    }

    /// Gives the row its place after `link`, which then is this row's own, and adds its line to
    /// `text`.
    pub(crate) fn seal_into(self, link: &mut Link, text: &mut Vec<u8>) {
        let (seq, start) = (link.seq.saturating_add(1), text.len());
        let row = Row { seq, prev: Cow::from(&link.hash), ..self };
        write(&row, text);
        let hash = seal_of(&link.hash, text.get(start..).unwrap_or_default());
        text.extend_from_slice(br#","hash":""#);
        text.extend_from_slice(&hash);
        text.extend_from_slice(b"\"}\n");
        link.seq = seq;
        link.hash.clear();
        link.hash.push_str(std::str::from_utf8(&hash).unwrap_or_default());
    }

    fn bare(
        time: Timestamp,
        kind: &'static str,
        outcome: &'static str,
        item: Cow<'a, str>,
    ) -> Self {
        Self {
            seq: 0,
            time,
            caller: "capstan".into(),
            caller_id: None,
            client: None,
            front: None,
            server: None,
            item,
            kind: kind.into(),
            method: None,
            effect: None,
            verdict: None,
            rule: None,
            approval: None,
            arguments: None,
            roles: Vec::new(),
            bound: false,
            outcome: outcome.into(),
            code: None,
            duration_ms: 0,
            request_bytes: 0,
            answer_bytes: 0,
            prev: Cow::default(),
            hash: Cow::default(),
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
    fn kind(self) -> &'static str {
        match self {
            Self::Expired { .. } => RETENTION,
            Self::Torn { .. }
            | Self::Damaged
            | Self::Cut
            | Self::Unanchored
            | Self::Lost { .. }
            | Self::Unclosed { .. } => BREAK,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Torn { .. } => "torn",
            Self::Damaged => "damaged",
            Self::Cut => "cut",
            Self::Unanchored => "unanchored",
            Self::Lost { .. } => "lost",
            Self::Unclosed { .. } => "unclosed",
            Self::Expired { .. } => "removed",
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
            Self::Unclosed { process } => format!(
                "process {process} ended without closing the log; entries of its last calls may be \
                 missing"
            ),
            Self::Expired { first, last } => {
                format!("retention removes the entries {first} to {last}")
            }
        }
    }
}

/// Texts come from clients and servers; one of them must not fill the log.
fn clip(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT {
        return text.into();
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    format!("{}…", text.get(..end).unwrap_or_default()).into()
}

/// As many roles as there is room for; together they take no more than one text.
fn roles(roles: &[String]) -> Vec<Cow<'_, str>> {
    let mut room = MAX_TEXT;
    let fits = |role: &&String| {
        let left = room.checked_sub(role.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    roles.iter().take_while(fits).map(Cow::from).collect()
}

/// The hash of a line, given without its end `,"hash":"…"}`, in hex.
fn seal_of(prev: &str, bare: &[u8]) -> [u8; 64] {
    let mut hasher = Sha256::new();
    for part in [prev.as_bytes(), bare, b"}"] {
        hasher.update(part);
    }
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    let mut hex = [0; 64];
    let (pairs, _) = hex.as_chunks_mut();
    for (pair, byte) in pairs.iter_mut().zip(hasher.finalize()) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    hex
}
