//! Answers to requests, in pieces, so that large results are not copied.

use std::io::Write as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use capstan_wire::{Json, RequestId, compose};

use crate::methods::lists::page::{Page, Parts};
use crate::protocol::fault::Fault;

/// The answer to a request, in pieces.
#[derive(Clone, Debug)]
pub struct Answer {
    head: Vec<u8>,
    body: Text,
    tail: Bytes,
    /// The JSON-RPC error code, if it is an error.
    error: Option<i64>,
}

/// A result, in pieces: a shared body between two short texts.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) before: Bytes,
    pub(crate) body: Text,
    pub(crate) after: Bytes,
}

/// The shared part of a result.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    Bytes(Bytes),
    Page(Arc<Page>),
}

/// Iterator over the parts of an answer. The parts of a page are composed on demand.
pub struct Partly {
    head: Option<Bytes>,
    body: Body,
    tail: Option<Bytes>,
}

enum Body {
    Bytes(Option<Bytes>),
    Page(Parts),
}

// === impl Answer ===

impl Answer {
    pub(super) fn of(id: &RequestId, result: Result<Payload, Fault>) -> Self {
        match result {
            Ok(payload) => {
                let mut head = start(Some(id), br#","result":"#);
                head.extend_from_slice(&payload.before);
                let tail = if payload.after.is_empty() {
                    Bytes::from_static(b"}")
                } else {
                    let mut tail = BytesMut::from(payload.after);
                    tail.extend_from_slice(b"}");
                    tail.freeze()
                };
                Self { head, body: payload.body, tail, error: None }
            }
            Err(fault) => Self::fault(Some(id), &fault),
        }
    }

    /// An answer that is one complete message.
    pub(super) fn whole(body: Bytes) -> Self {
        Self { head: Vec::new(), body: Text::Bytes(body), tail: Bytes::new(), error: None }
    }

    pub(crate) fn result(id: &RequestId, result: &Json) -> Self {
        Self::of(id, Ok(Payload::from(result.clone())))
    }

    pub(crate) fn fault(id: Option<&RequestId>, fault: &Fault) -> Self {
        let (head, tail) = (start(id, br#","error":"#), Bytes::from_static(b"}"));
        let body = Text::Bytes(fault.to_json().bytes().clone());
        Self { head, body, tail, error: Some(fault.code()) }
    }

    /// An error that belongs to no method.
    pub fn error(id: Option<&RequestId>, code: i64, message: &str) -> Self {
        Self::fault(id, &Fault::new(code, message))
    }

    /// The JSON-RPC error code, if it is an error.
    pub fn error_code(&self) -> Option<i64> {
        self.error
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces, in order. Concurrent readers of one page share its bytes.
    pub fn pieces(self) -> [Bytes; 3] {
        let body = match self.body {
            Text::Bytes(body) => body,
            Text::Page(page) => page.whole(),
        };
        [self.head.into(), body, self.tail]
    }

    /// The parts, in order. A page is never held in memory completely.
    pub fn parts(self) -> Partly {
        let body = match self.body {
            Text::Bytes(body) => Body::Bytes(Some(body)),
            Text::Page(page) => Body::Page(Parts::of(page)),
        };
        Partly { head: Some(self.head.into()), body, tail: Some(self.tail) }
    }

    /// Appends the whole answer to `out`.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        out.extend_from_slice(&self.head);
        match &self.body {
            Text::Bytes(body) => out.extend_from_slice(body),
            Text::Page(page) => page.write_into(out),
        }
        out.extend_from_slice(&self.tail);
    }
}

// === impl Payload ===

impl From<Json> for Payload {
    fn from(result: Json) -> Self {
        let body = Text::Bytes(result.bytes().clone());
        Self { before: Bytes::new(), body, after: Bytes::new() }
    }
}

// === impl Text ===

impl Text {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Page(page) => page.len(),
        }
    }
}

// === impl Partly ===

impl Iterator for Partly {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let body = || match &mut self.body {
            Body::Bytes(body) => body.take(),
            Body::Page(parts) => parts.next(),
        };
        self.head.take().or_else(body).or_else(|| self.tail.take())
    }
}

/// The start of a message with this id.
pub(super) fn start(id: Option<&RequestId>, then: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(64);
    head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    match id {
        // Writing into memory does not fail.
        Some(RequestId::Number(id)) => drop(write!(head, "{id}")),
        Some(RequestId::Text(id)) => head.extend_from_slice(compose::string(id).as_bytes()),
        None => head.extend_from_slice(b"null"),
    }
    head.extend_from_slice(then);
    head
}
