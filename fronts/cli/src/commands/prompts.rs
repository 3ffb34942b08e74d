//! `capstan prompts`: lists the prompts of all servers, or shows one in full.

use std::fmt::Write as _;

use capstan_app::AppError;
use capstan_app::api::{ListPrompts, ListedItem, Need, Slot};
use capstan_model::ItemId;
use capstan_wire::object;

use super::offers::{print_json, seen, tell_no_servers, with_server};
use super::{tell_missing, tell_saved};
use crate::args::PromptsArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

pub(crate) async fn run(context: &Context, args: &PromptsArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "waiting for the servers");
    let reading = context.reading(&args.reading);
    let list = ListPrompts { name: args.name.clone(), reading };
    let listed = context.run(list, person).await?;
    if let (true, [prompt]) = (listed.named, listed.items.as_slice()) {
        one(context, prompt);
        tell_saved(&context.print, seen(&listed.items));
        return Ok(Exit::Ok);
    }
    if context.print.wants_json() {
        print_json(context, &listed.items);
    } else if !listed.items.is_empty() {
        show(context, &listed.items);
    }
    tell_saved(&context.print, seen(&listed.items));
    tell_missing(&context.print, &listed.missing);
    if listed.none.is_some() {
        tell_no_servers(context);
    }
    Ok(Exit::Ok)
}

fn one(context: &Context, prompt: &ListedItem) {
    if context.print.wants_json() {
        context.print.bytes(with_server(prompt).as_bytes());
        return;
    }
    let description = object::get_string(&prompt.definition, "description").unwrap_or_default();
    let mut text = format!("{}\n\n{description}\n\narguments:", id_of(prompt));
    for slot in prompt.slots() {
        let about = slot.description.as_deref().unwrap_or_default();
        let _ = write!(text, "\n  {}  {about}", written(&slot));
    }
    context.print.data(&text);
}

fn id_of(prompt: &ListedItem) -> ItemId {
    ItemId { server: prompt.server.clone(), item: prompt.name.clone() }
}

fn show(context: &Context, items: &[ListedItem]) {
    let cells: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            let arguments: Vec<String> = item.slots().iter().map(written).collect();
            let description = object::get_string(&item.definition, "description");
            let description = description.unwrap_or_default();
            let first = description.lines().next().unwrap_or_default();
            vec![id_of(item).to_string(), arguments.join(" "), first.to_owned()]
        })
        .collect();
    context.print.table(&["PROMPT", "ARGUMENTS", "DESCRIPTION"], &cells);
}

/// The name of an argument; optional ones are in brackets.
fn written(slot: &Slot) -> String {
    match slot.need {
        Need::Required => slot.name.clone(),
        Need::Optional => format!("[{}]", slot.name),
    }
}
