//! Checks JSON text in one pass, as strictly as a parser, and finds the positions of its values.
//!
//! It reports only success or failure. A parser has to be used to find the cause of a failure.

use crate::number::{Number, Walked};
use crate::plain;

/// A position in a text that is checked from left to right.
pub(crate) struct Check<'a> {
    text: &'a str,
    at: usize,
}

/// The open objects and lists, as bits: a leading one, then a bit for each, which is set for an
/// object.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Open(u64);

/// The syntax that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A value.
    Value,
    /// A comma, or the end of the enclosing object or list.
    After,
}

// === impl Check ===

impl<'a> Check<'a> {
    /// Starts at the beginning of a text.
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// True at the end of the text.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Skips white space.
    pub(crate) fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Consumes and returns the next byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Consumes a name and its colon. Returns the text between the quotes.
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        if self.byte()? != b'"' {
            return None;
        }
        let start = self.at;
        self.string()?;
        let name = self.text.get(start..self.at - 1);
        self.space();
        if self.byte()? != b':' {
            return None;
        }
        self.space();
        name
    }

    /// Consumes a value in an object or a list, and returns it. `None` also if it is nested too
    /// deeply for [`Open`].
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        let (start, mut open) = (self.at, Open::NONE);
        loop {
            let mut next = self.begin(&mut open)?;
            while next == Next::After {
                if open == Open::NONE {
                    return self.text.get(start..self.at);
                }
                next = self.after(&mut open)?;
            }
        }
    }

    /// Consumes a scalar, or enters an object or list.
    fn begin(&mut self, open: &mut Open) -> Option<Next> {
        match self.byte()? {
            b'{' => {
                *open = open.object()?;
                self.space();
                if self.peek() != Some(b'}') {
                    self.name()?;
                    return Some(Next::Value);
                }
            }
            b'[' => {
                *open = open.list()?;
                self.space();
                if self.peek() != Some(b']') {
                    return Some(Next::Value);
                }
            }
            b'"' => self.string()?,
            b't' => self.rest(b"rue")?,
            b'f' => self.rest(b"alse")?,
            b'n' => self.rest(b"ull")?,
            first => self.number(first)?,
        }
        Some(Next::After)
    }

    /// Consumes the end of an object or list, or advances to the next value in it.
    fn after(&mut self, open: &mut Open) -> Option<Next> {
        self.space();
        match self.byte()? {
            b',' => {
                self.space();
                if open.is_object() {
                    self.name()?;
                }
                Some(Next::Value)
            }
            end if end == open.end() => {
                *open = open.without_last();
                Some(Next::After)
            }
            _ => None,
        }
    }

    /// Advances past the closing quote of a string whose opening quote was consumed.
    fn string(&mut self) -> Option<()> {
        loop {
            self.at += plain::text(self.left());
            match self.byte()? {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.byte()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.left().first_chunk::<4>()?;
                self.at += digits.len();
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self, first: u8) -> Option<()> {
        match Number::of(first)?.walk(self.left())? {
            Walked::Ended(length) => {
                self.at += length;
                Some(())
            }
            // The enclosing object or list has no end.
            Walked::Open(_) => None,
        }
    }

    fn rest(&mut self, word: &[u8]) -> Option<()> {
        self.left().starts_with(word).then(|| self.at += word.len())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn left(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}

// === impl Open ===

impl Open {
    const NONE: Self = Self(1);

    fn list(self) -> Option<Self> {
        (self.0.leading_zeros() > 0).then_some(Self(self.0 << 1))
    }

    fn object(self) -> Option<Self> {
        self.list().map(|list| Self(list.0 | 1))
    }

    fn is_object(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns the byte that closes the innermost object or list.
    fn end(self) -> u8 {
        if self.is_object() { b'}' } else { b']' }
    }

    fn without_last(self) -> Self {
        Self(self.0 >> 1)
    }
}
