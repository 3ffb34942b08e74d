//! One line of the log, and the seal that links it to the previous line.
//!
//! A line is a JSON object whose last member is `hash`: SHA-256 over the hash of the previous line
//! (64 hex digits) followed by this line's own bytes as they are without the member `hash`.

mod write;

use std::borrow::Cow;

use capstan_hub::{Entry, Outcome};
use capstan_model::Binding;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::reading::verify::Reason;
use write::write;

/// Maximum length of an external text in a line, in bytes; the rest is cut off and marked with `…`.
pub(crate) const MAX_TEXT: usize = 1024;

/// Maximum length of a line, in bytes. Seven texts of [`MAX_TEXT`], each byte escaped, fit.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// The kind of a row that records damage to the log instead of a call.
pub(crate) const BREAK: &str = "break";

/// The kind of a row that records entries removed by retention.
pub(crate) const RETENTION: &str = "retention";

/// One line of the audit log; its serialization is exactly the written line.
///
/// A row that was read owns its texts; one that is written borrows those of its [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row<Text = String> {
    /// Number of the entry, from 1, without gaps.
    pub seq: u64,
    /// The time of the call.
    #[serde(with = "millis")]
    pub time: Timestamp,
    /// The caller.
    pub caller: Text,
    /// The agent that made the call, as declared by the client.
    pub caller_id: Option<Text>,
    /// The client's name for itself, if it declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Text>,
    /// The front of the call; `None` in a `BREAK` or `RETENTION`.
    pub front: Option<Text>,
    /// The server of the call.
    pub server: Option<Text>,
    /// The item; in a `BREAK` or `RETENTION`, a description of the event.
    pub item: Text,
    /// `tool`, `resource`, `prompt`, `BREAK` or `RETENTION`.
    pub kind: Text,
    /// The method, if the item was not called but the subject of a side request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Text>,
    /// The effect of the item.
    pub effect: Option<Text>,
    /// The verdict of the rules.
    pub verdict: Option<Text>,
    /// The rule of that verdict.
    pub rule: Option<Text>,
    /// How an `ask` was answered.
    pub approval: Option<Text>,
    /// The arguments with secrets masked, if they are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Text>,
    /// The caller's roles, which rules depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Text>,
    /// True if access rules bind the caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// The outcome of the call; in a `BREAK`, the kind of damage.
    pub outcome: Text,
    /// The error code, if the call failed.
    pub code: Option<Text>,
    /// Duration of the call, in milliseconds.
    pub duration_ms: u64,
    /// Size of the request's params.
    pub request_bytes: u64,
    /// Size of the answer; 0 if none was delivered.
    pub answer_bytes: u64,
    /// Hash of the previous line, in hex.
    pub prev: Text,
    /// Hash of this line, in hex.
    pub hash: Text,
}

/// A link of the chain: an entry's number and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainLink {
    pub(crate) seq: u64,
    pub(crate) hash: String,
}

/// A fault of the log, which the next write records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The last line was incomplete; it is now in the `.torn` file.
    Torn {
        /// Its size.
        size: u64,
    },
    /// The last line was changed.
    Damaged,
    /// Entries are missing at the end.
    Cut,
    /// The last entry is unknown, because the head is missing.
    Unanchored,
    /// Entries of this process could not be written.
    Lost {
        /// Their number.
        entries: u64,
    },
    /// A process that wrote in the background was killed.
    Unclosed {
        /// The process id.
        process: u32,
    },
    /// Retention removes entries: no damage, but it is recorded.
    Expired {
        /// The first of them.
        first: u64,
        /// The last one.
        last: u64,
    },
}

/// Formats times as RFC 3339, always with three digits after the second.
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
    /// True if the outcome is not a plain answer.
    pub fn is_error(&self) -> bool {
        self.outcome != Outcome::Answered.as_str()
    }

    /// True if it records damage to the log instead of a call.
    pub fn is_break(&self) -> bool {
        self.kind == BREAK
    }

    /// Parses a line without checking its seal.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// Parses a line and checks its seal.
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

    /// This row as a link of the chain.
    pub(crate) fn link(&self) -> ChainLink {
        ChainLink { seq: self.seq, hash: self.hash.clone() }
    }

    /// The link before this row.
    pub(crate) fn link_before(&self) -> ChainLink {
        ChainLink { seq: self.seq.saturating_sub(1), hash: self.prev.clone() }
    }
}

impl<'a> Row<Cow<'a, str>> {
    /// The row of a call; its position in the chain is not set yet.
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

    /// The row that records a fault.
    pub(crate) fn of_fault(fault: Fault, time: Timestamp) -> Self {
        Self::bare(time, fault.kind(), fault.as_str(), fault.story().into())
    }

    /// Seals the row after `link`, appends its line to `text`, and sets `link` to this row.
    pub(crate) fn seal_into(self, link: &mut ChainLink, text: &mut Vec<u8>) {
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

// === impl ChainLink ===

impl ChainLink {
    /// The link before the first entry.
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

/// Cuts a text from a client or a server, so that one of them cannot fill the log.
fn clip(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT {
        return text.into();
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    format!("{}…", text.get(..end).unwrap_or_default()).into()
}

/// As many roles as fit; together they take no more than one text.
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
