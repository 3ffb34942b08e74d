//! `--complete`: what a value could become, as its server says.
//!
//! The server is asked because somebody asks for it. A shell that asked at every press of Tab would
//! start the server each time, since no connection outlives a command.

use capstan_app::AppError;
use capstan_hub::Hub;
use capstan_hub::catalog::{Reference, Typing};
use capstan_model::{Caller, Front, ServerName};
use capstan_text::arguments::slots::{self, Slot, SlotError};
use capstan_text::clean::one_line;

use crate::context::Context;
use crate::exit::Exit;

/// The value that is being typed: `NAME=BEGINNING`, or `NAME` for one that is still empty.
pub(super) fn typing(
    of: Reference,
    typed: &str,
    words: &[String],
    slots: &[Slot],
) -> Result<Typing, SlotError> {
    let (name, value) = typed.split_once('=').unwrap_or((typed, ""));
    if !slots.iter().any(|slot| slot.name == name) {
        return Err(slots::unknown(name, slots));
    }
    let known = slots::assign(words, slots)?;
    Ok(Typing { of, argument: name.to_owned(), value: value.to_owned(), known })
}

pub(super) async fn suggest(
    context: &Context,
    hub: &Hub,
    server: &ServerName,
    typing: &Typing,
) -> Result<Exit, AppError> {
    let values = hub.complete(server, typing, &Caller::operator(Front::Cli)).await?;
    if context.print.wants_json() {
        context.print.json(&values);
        return Ok(Exit::Ok);
    }
    for value in values {
        context.print.data(&one_line(&value, usize::MAX));
    }
    Ok(Exit::Ok)
}
