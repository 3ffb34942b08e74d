//! `--complete`: what a value could become, as its server says.
//!
//! The server is asked because the command asks for it. A shell that asked at every press of Tab
//! would start the server each time, since no connection outlives a command.

use capstan_text::clean::one_line;

use crate::context::Context;
use crate::exit::Exit;

/// The argument that is being typed and its beginning: `NAME=BEGINNING`, or `NAME` for none.
pub(super) fn split(typed: &str) -> (String, String) {
    let (name, value) = typed.split_once('=').unwrap_or((typed, ""));
    (name.to_owned(), value.to_owned())
}

pub(super) fn show(context: &Context, values: &[String]) -> Exit {
    if context.print.wants_json() {
        context.print.json(&values);
        return Exit::Ok;
    }
    for value in values {
        context.print.data(&one_line(value, usize::MAX));
    }
    Exit::Ok
}
