//! `--complete`: prints the server's completions of a value.
//!
//! The server is queried only because the command requests it. If a shell did this at every press
//! of Tab, it would start the server each time, because no connection outlives a command.

use capstan_text::clean::one_line;
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;

/// Splits `NAME=BEGINNING` into the argument and the beginning of its value; `NAME` alone has none.
pub(super) fn split(typed: &str) -> (String, String) {
    let (name, value) = typed.split_once('=').unwrap_or((typed, ""));
    (name.to_owned(), value.to_owned())
}

pub(super) fn show(context: &Context, values: &[String]) -> Exit {
    if context.print.wants_json() {
        let rows: Vec<Value> = values.iter().map(|value| json!({ "value": value })).collect();
        context.print.json(&rows);
        return Exit::Ok;
    }
    for value in values {
        context.print.data(&one_line(value, usize::MAX));
    }
    Exit::Ok
}
