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
use capstan_text::form::Elicit;

use crate::context::Context;
use crate::exit::Exit;
use crate::operator::{Confirm, Manner, Person};
use crate::waiting::Waiting;

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
    let waiting = Waiting::new(&context.print, &format!("asking `{server}`"));
    // Who types `--complete` has decided already, for this one question.
    let manner = Manner { elicit: Elicit::Decline, confirm: Confirm::Believed };
    let person = Person::new(context.print.clone(), manner, waiting);
    let caller = Caller::operator(Front::Cli);
    let values = hub.complete(&hub.session(), &caller, (server, typing), &person).await?;
    drop(person);
    if context.print.wants_json() {
        context.print.json(&values);
        return Ok(Exit::Ok);
    }
    for value in values {
        context.print.data(&one_line(&value, usize::MAX));
    }
    Ok(Exit::Ok)
}
