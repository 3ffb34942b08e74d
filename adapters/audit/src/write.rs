//! How a row is written: as it serialises, but straight into the text of a batch.
//!
//! A serialiser would look at every byte of every name, for each of thousands of lines a second.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::Serialize;

use crate::row::Row;

/// Times as RFC 3339 with three digits after the second, always.
const TIMES: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// Adds the line of a row to `text`, without its end `,"hash":"…"}`.
pub(crate) fn write(row: &Row<Cow<'_, str>>, text: &mut Vec<u8>) {
    put(text, r#"{"seq":"#, &row.seq);
    put_time(text, r#","time":"#, &row.time);
    put(text, r#","caller":"#, &row.caller);
    put(text, r#","caller_id":"#, &row.caller_id);
    put_some(text, r#","client":"#, row.client.as_ref());
    put(text, r#","front":"#, &row.front);
    put(text, r#","server":"#, &row.server);
    put(text, r#","item":"#, &row.item);
    put(text, r#","kind":"#, &row.kind);
    put_some(text, r#","method":"#, row.method.as_ref());
    put(text, r#","effect":"#, &row.effect);
    put(text, r#","verdict":"#, &row.verdict);
    put(text, r#","rule":"#, &row.rule);
    put(text, r#","approval":"#, &row.approval);
    put_some(text, r#","arguments":"#, row.arguments.as_ref());
    put_some(text, r#","roles":"#, Some(&row.roles).filter(|roles| !roles.is_empty()));
    put_some(text, r#","bound":"#, row.bound.then_some(&true));
    put(text, r#","outcome":"#, &row.outcome);
    put(text, r#","code":"#, &row.code);
    put(text, r#","duration_ms":"#, &row.duration_ms);
    put(text, r#","request_bytes":"#, &row.request_bytes);
    put(text, r#","answer_bytes":"#, &row.answer_bytes);
    put(text, r#","prev":"#, &row.prev);
}

fn put(text: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    text.extend_from_slice(name.as_bytes());
    // Numbers and strings always have a JSON text, and memory always takes it.
    drop(serde_json::to_writer(text, value));
}

/// The same, for what is left out where it is not there.
fn put_some<T: Serialize>(text: &mut Vec<u8>, name: &str, value: Option<&T>) {
    if let Some(value) = value {
        put(text, name, value);
    }
}

fn put_time(text: &mut Vec<u8>, name: &str, time: &Timestamp) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'"');
    // Nor can this fail.
    drop(TIMES.print_timestamp(time, &mut *text));
    text.push(b'"');
}
