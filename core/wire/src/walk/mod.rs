//! Incremental parser that checks the reply to a request while it arrives, piece by piece.
//!
//! Pieces may end anywhere: in an escape, a number or a character. Malformed JSON, or a message
//! that is not a reply, is detected at the first byte that makes it so. The checks are those of a
//! full parser.

mod state;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::state::{Level, Member, Role, State};
use crate::number::{Number, Walked};
use crate::scan::Quoted;
use crate::{Json, plain};

/// Deepest nesting that is accepted.
const MAX_DEPTH: usize = 64 * 1024;

/// Longest name or scalar that is read, with its quotes and escapes, in bytes.
const MAX_NOTE: usize = 160;

/// The state of the parser over the bytes of one reply with a result.
#[derive(Debug)]
pub struct Walk {
    /// The members of the result to note.
    keys: &'static [&'static str],
    noted: Vec<(&'static str, Noted)>,
    state: State,
    open: Vec<Level>,
    /// The number of bytes in all earlier pieces.
    before: usize,
    /// Where in this piece the name or scalar that is being noted continues; `note` has its bytes
    /// from earlier pieces.
    note_from: Option<usize>,
    note: Vec<u8>,
    member: Member,
    version: Option<Json>,
    id: Option<Json>,
    start: Option<usize>,
    end: Option<usize>,
    has_members: bool,
    /// The first bytes of a character that continues in the next piece.
    rune: Vec<u8>,
}

/// A noted member of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The first byte of its value.
    pub first: u8,
    /// Its value, if it is short and neither an object nor a list.
    pub value: Option<Json>,
}

/// Why the bytes are not a reply with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoReply(&'static str);

const NOT_JSON: NoReply = NoReply("it is not JSON");
const NOT_UTF8: NoReply = NoReply("it is not UTF-8");

// === impl Walk ===

impl Walk {
    /// Starts a walk that notes these members of the result.
    pub fn new(keys: &'static [&'static str]) -> Self {
        Self {
            keys,
            noted: Vec::new(),
            state: State::Value,
            open: Vec::new(),
            before: 0,
            note_from: None,
            note: Vec::new(),
            member: Member::Other,
            version: None,
            id: None,
            start: None,
            end: None,
            has_members: false,
            rune: Vec::new(),
        }
    }

    /// Processes the next piece.
    ///
    /// # Errors
    /// Fails if the bytes cannot become a reply with a result.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), NoReply> {
        let mut at = 0;
        while at < piece.len() {
            at = self.step(piece, at)?;
        }
        if let Some(from) = self.note_from {
            self.keep(piece.get(from..).unwrap_or_default());
            self.note_from = Some(0);
        }
        self.before += piece.len();
        Ok(())
    }

    /// Checks that the reply is complete.
    ///
    /// # Errors
    /// Fails if something is missing.
    pub fn finish(&self) -> Result<(), NoReply> {
        let is_whole = self.state == State::After && self.open.is_empty();
        if !is_whole {
            return Err(NoReply("it ends too early"));
        }
        let is_reply = self.is_version_2() && self.id.is_some() && self.end.is_some();
        if is_reply { Ok(()) } else { Err(NoReply("it is no reply with a result")) }
    }

    /// True once this is known to answer the request with this id, with an object as its result.
    pub fn answers(&self, id: u64) -> bool {
        let is_its = self.id.as_ref().is_some_and(|json| json.as_str() == id.to_string());
        is_its && self.is_version_2() && self.start.is_some()
    }

    /// Returns the range of the result within all pieces so far, without its closing brace.
    pub fn inside(&self) -> Range<usize> {
        let start = self.start.unwrap_or(self.before);
        start..self.end.map_or(self.before, |end| end.saturating_sub(1)).max(start)
    }

    /// True if the result is known to have a member.
    pub fn has_members(&self) -> bool {
        self.has_members
    }

    /// Returns the number of bytes so far that are outside of the result.
    pub fn around(&self) -> usize {
        self.before.saturating_sub(self.inside().len())
    }

    /// Returns a noted member of the result.
    pub fn noted(&self, key: &str) -> Option<&Noted> {
        self.noted.iter().find(|(name, _)| *name == key).map(|(_, noted)| noted)
    }

    fn is_version_2(&self) -> bool {
        self.version.as_ref().is_some_and(|version| version.as_bytes() == b"\"2.0\"")
    }

    /// Processes the byte at `at`, and further ones if that is fast. Returns where to continue.
    fn step(&mut self, piece: &[u8], at: usize) -> Result<usize, NoReply> {
        let Some(&byte) = piece.get(at) else { return Err(NOT_JSON) };
        match self.state {
            State::Text(role) => return self.text(piece, at, role),
            State::Number(number) => return self.number(number, piece, at),
            State::Escape(role) => match byte {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                    self.state = State::Text(role);
                }
                b'u' => self.state = State::Hex(role, 4),
                _ => return Err(NOT_JSON),
            },
            State::Hex(role, left) => {
                if !byte.is_ascii_hexdigit() {
                    return Err(NOT_JSON);
                }
                self.state = if left > 1 { State::Hex(role, left - 1) } else { State::Text(role) };
            }
            State::Rune(role) => self.more_of_rune(byte, role)?,
            State::Word([next, rest @ ..]) if *next == byte => {
                self.state = State::Word(rest);
                if rest.is_empty() {
                    self.ended(piece, at + 1);
                }
            }
            State::Word(_) => return Err(NOT_JSON),
            _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => {}
            State::FirstItem if byte == b']' => self.close(Level::List, piece, at)?,
            State::Value | State::FirstItem => self.begin(byte, at)?,
            State::FirstName if byte == b'}' => self.close(Level::Object, piece, at)?,
            State::FirstName | State::Name if byte == b'"' => {
                self.state = State::Text(Role::Name);
                self.note_from = self.is_looked_at().then_some(at);
            }
            State::Colon if byte == b':' => self.state = State::Value,
            State::After => match (byte, self.open.last()) {
                (b',', Some(Level::Object)) => self.state = State::Name,
                (b',', Some(Level::List)) => self.state = State::Value,
                (b'}', _) => self.close(Level::Object, piece, at)?,
                (b']', _) => self.close(Level::List, piece, at)?,
                _ => return Err(NOT_JSON),
            },
            State::FirstName | State::Name | State::Colon => return Err(NOT_JSON),
        }
        Ok(at + 1)
    }

    /// True if members are read at this depth: those of the envelope and of the result.
    fn is_looked_at(&self) -> bool {
        match self.open.len() {
            1 => true,
            2 => self.is_in_result(),
            _ => false,
        }
    }

    fn is_in_result(&self) -> bool {
        self.start.is_some() && self.end.is_none()
    }

    /// Handles the first byte of a value.
    fn begin(&mut self, byte: u8, at: usize) -> Result<(), NoReply> {
        if self.open.is_empty() && byte != b'{' {
            return Err(NoReply("it is no reply with a result"));
        }
        match (self.member, self.open.len()) {
            (Member::Result, 1) if byte == b'{' => self.start = Some(self.before + at),
            (Member::Result, 1) => return Err(NoReply("its result is no object")),
            (Member::Nothing, 1) if byte != b'n' => {
                return Err(NoReply("its members do not make a reply with a result"));
            }
            _ => {}
        }
        self.state = match byte {
            b'{' | b'[' if self.open.len() >= MAX_DEPTH => {
                return Err(NoReply("it is nested too deep"));
            }
            b'{' => State::FirstName,
            b'[' => State::FirstItem,
            b'"' => State::Text(Role::Value),
            b't' => State::Word(b"rue"),
            b'f' => State::Word(b"alse"),
            b'n' => State::Word(b"ull"),
            _ => State::Number(Number::of(byte).ok_or(NOT_JSON)?),
        };
        let is_scalar = !matches!(byte, b'{' | b'[');
        match self.member {
            Member::Version | Member::Id | Member::Key(_) if is_scalar && self.is_looked_at() => {
                self.note_from = Some(at);
            }
            Member::Key(key) if self.is_looked_at() => {
                self.noted.push((key, Noted { first: byte, value: None }));
            }
            Member::Version
            | Member::Id
            | Member::Key(_)
            | Member::Result
            | Member::Nothing
            | Member::Other => {}
        }
        match byte {
            b'{' => self.open.push(Level::Object),
            b'[' => self.open.push(Level::List),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, level: Level, piece: &[u8], at: usize) -> Result<(), NoReply> {
        if self.open.pop() != Some(level) {
            return Err(NOT_JSON);
        }
        if self.open.len() == 1 && self.is_in_result() {
            self.end = Some(self.before + at + 1);
        }
        self.ended(piece, at + 1);
        Ok(())
    }

    /// Handles the end of a value.
    fn ended(&mut self, piece: &[u8], end: usize) {
        self.state = State::After;
        let Some(text) = self.take_note(piece, end) else { return };
        let first = text.first().copied().unwrap_or_default();
        // A string that is too long was cut off, so it does not parse as JSON.
        let value = Json::parse(text).ok();
        match self.member {
            Member::Version => self.version = value,
            Member::Id => self.id = value,
            Member::Key(key) => self.noted.push((key, Noted { first, value })),
            Member::Result | Member::Nothing | Member::Other => {}
        }
    }

    /// Handles the end of a name.
    fn named(&mut self, piece: &[u8], end: usize) -> Result<(), NoReply> {
        self.state = State::Colon;
        let Some(name) = self.take_note(piece, end) else { return Ok(()) };
        let name = Quoted::at(&name, 0).decode();
        let name = name.as_deref().unwrap_or_default();
        self.member = if self.open.len() == 1 {
            let taken = match name {
                "jsonrpc" => self.version.is_some(),
                "id" => self.id.is_some(),
                "result" => self.start.is_some(),
                _ => false,
            };
            if taken {
                return Err(NoReply("a member of it is given twice"));
            }
            match name {
                "jsonrpc" => Member::Version,
                "id" => Member::Id,
                "result" => Member::Result,
                "error" | "method" => Member::Nothing,
                _ => Member::Other,
            }
        } else {
            self.has_members = true;
            // If a name is repeated, the first member counts.
            let key = self.keys.iter().find(|key| **key == name && self.noted(key).is_none());
            key.map_or(Member::Other, |key| Member::Key(key))
        };
        Ok(())
    }

    fn take_note(&mut self, piece: &[u8], end: usize) -> Option<Vec<u8>> {
        let from = self.note_from.take()?;
        self.keep(piece.get(from..end).unwrap_or_default());
        Some(std::mem::take(&mut self.note))
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_NOTE.saturating_sub(self.note.len());
        self.note.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn text(&mut self, piece: &[u8], at: usize, role: Role) -> Result<usize, NoReply> {
        let rest = piece.get(at..).unwrap_or_default();
        let plain = at + plain::ascii(rest);
        match piece.get(plain) {
            None => Ok(plain),
            Some(b'"') => {
                match role {
                    Role::Name => self.named(piece, plain + 1)?,
                    Role::Value => self.ended(piece, plain + 1),
                }
                Ok(plain + 1)
            }
            Some(b'\\') => {
                self.state = State::Escape(role);
                Ok(plain + 1)
            }
            Some(0x80..) => self.runes(piece, plain, role),
            Some(_) => Err(NOT_JSON),
        }
    }

    /// Checks a run of text that contains characters of more than one byte.
    fn runes(&mut self, piece: &[u8], at: usize, role: Role) -> Result<usize, NoReply> {
        let rest = piece.get(at..).unwrap_or_default();
        let text = rest.get(..plain::text(rest)).unwrap_or_default();
        let end = at + text.len();
        match std::str::from_utf8(text) {
            Ok(_) => {}
            Err(error) if error.error_len().is_none() && end == piece.len() => {
                self.rune.clear();
                self.rune.extend_from_slice(text.get(error.valid_up_to()..).unwrap_or_default());
                self.state = State::Rune(role);
            }
            Err(_) => return Err(NOT_UTF8),
        }
        Ok(end)
    }

    fn more_of_rune(&mut self, byte: u8, role: Role) -> Result<(), NoReply> {
        self.rune.push(byte);
        match std::str::from_utf8(&self.rune) {
            Ok(_) => self.state = State::Text(role),
            Err(error) if error.error_len().is_none() => {}
            Err(_) => return Err(NOT_UTF8),
        }
        Ok(())
    }

    fn number(&mut self, number: Number, piece: &[u8], at: usize) -> Result<usize, NoReply> {
        let rest = piece.get(at..).unwrap_or_default();
        match number.walk(rest).ok_or(NOT_JSON)? {
            Walked::Open(number) => {
                self.state = State::Number(number);
                Ok(piece.len())
            }
            Walked::Ended(length) => {
                self.ended(piece, at + length);
                Ok(at + length)
            }
        }
    }
}
