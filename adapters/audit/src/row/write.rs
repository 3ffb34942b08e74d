//! Writes a row in its serialized form, directly into the text of a batch.
//!
//! A serializer would check every byte of every name, for each of thousands of lines per second.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::Serialize;

use crate::row::Row;

/// Formats times as RFC 3339, always with three digits after the second.
const TIMES: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// Appends the line of a row to `text`, without its end `,"hash":"…"}`.
pub(crate) fn write(row: &Row<Cow<'_, str>>, text: &mut Vec<u8>) {
    // All fields are named, so that a new one cannot be forgotten.
    let Row {
        seq,
        time,
        caller,
        caller_id,
        client,
        front,
        server,
        item,
        kind,
        method,
        effect,
        verdict,
        rule,
        approval,
        arguments,
        roles,
        bound,
        outcome,
        code,
        duration_ms,
        request_bytes,
        answer_bytes,
        prev,
        hash: _,
    } = row;
    put(text, r#"{"seq":"#, seq);
    put_time(text, r#","time":"#, time);
    put(text, r#","caller":"#, caller);
    put(text, r#","caller_id":"#, caller_id);
    put_some(text, r#","client":"#, client.as_ref());
    put(text, r#","front":"#, front);
    put(text, r#","server":"#, server);
    put(text, r#","item":"#, item);
    put(text, r#","kind":"#, kind);
    put_some(text, r#","method":"#, method.as_ref());
    put(text, r#","effect":"#, effect);
    put(text, r#","verdict":"#, verdict);
    put(text, r#","rule":"#, rule);
    put(text, r#","approval":"#, approval);
    put_some(text, r#","arguments":"#, arguments.as_ref());
    put_some(text, r#","roles":"#, Some(roles).filter(|roles| !roles.is_empty()));
    put_some(text, r#","bound":"#, bound.then_some(&true));
    put(text, r#","outcome":"#, outcome);
    put(text, r#","code":"#, code);
    put(text, r#","duration_ms":"#, duration_ms);
    put(text, r#","request_bytes":"#, request_bytes);
    put(text, r#","answer_bytes":"#, answer_bytes);
    put(text, r#","prev":"#, prev);
}

fn put(text: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    text.extend_from_slice(name.as_bytes());
    // Numbers and strings always serialize, and writing to memory does not fail.
    drop(serde_json::to_writer(text, value));
}

/// Appends an optional member; `None` is left out.
fn put_some<T: Serialize>(text: &mut Vec<u8>, name: &str, value: Option<&T>) {
    if let Some(value) = value {
        put(text, name, value);
    }
}

fn put_time(text: &mut Vec<u8>, name: &str, time: &Timestamp) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'"');
    // This cannot fail either.
    drop(TIMES.print_timestamp(time, &mut *text));
    text.push(b'"');
}
