//! `capstan prompts`: the prompts of all servers, or one of them in full.

use std::fmt::Write as _;

use capstan_app::AppError;
use capstan_hub::Hub;
use capstan_hub::ports::{Item, Listing};
use capstan_model::{Caller, Front, ItemId, Kind, ServerName};
use capstan_text::arguments::slots::{Need, Slot};
use capstan_text::table::table;
use capstan_wire::object;

use super::offers::{
    arguments_of, of_all, of_named, print_json, remember, tell_nobody, with_server,
};
use super::tools::{names_item, tell_missing};
use crate::args::PromptsArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::waiting::Waiting;

pub(crate) async fn run(context: &Context, args: &PromptsArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    if let Some(name) = args.name.as_deref().filter(|name| names_item(&setup, hub, name)) {
        return one(context, hub, name).await;
    }
    let gathered = match &args.name {
        Some(server) => of_named(context, &setup, hub, Listing::Prompts, server).await?,
        None => of_all(context, hub, Listing::Prompts, &args.wait).await,
    };
    remember(context, Kind::Prompt, &gathered);
    let items = hub.visible_items(&gathered, Kind::Prompt, &Caller::operator(Front::Cli));
    if context.print.wants_json() {
        print_json(context, &items);
    } else if !items.is_empty() {
        show(context, &items);
    }
    tell_missing(context, hub, &gathered);
    tell_nobody(context, hub);
    Ok(Exit::Ok)
}

async fn one(context: &Context, hub: &Hub, name: &str) -> Result<Exit, AppError> {
    let waiting = Waiting::new(&context.print, &format!("looking for `{name}`"));
    let (id, prompt) = hub.find_prompt(&Caller::operator(Front::Cli), name).await?;
    drop(waiting);
    if context.print.wants_json() {
        context.print.bytes(with_server(&id.server, &prompt).as_bytes());
        return Ok(Exit::Ok);
    }
    let description = object::get_string(&prompt.definition, "description").unwrap_or_default();
    let mut text = format!("{id}\n\n{description}\n\narguments:");
    for slot in arguments_of(&prompt.definition) {
        let about = slot.description.as_deref().unwrap_or_default();
        let _ = write!(text, "\n  {}  {about}", written(&slot));
    }
    context.print.data(&text);
    Ok(Exit::Ok)
}

fn show(context: &Context, items: &[(&ServerName, &Item)]) {
    let cells: Vec<Vec<String>> = items
        .iter()
        .map(|(server, item)| {
            let id = ItemId { server: (*server).clone(), item: item.name.clone() };
            let arguments: Vec<String> =
                arguments_of(&item.definition).iter().map(written).collect();
            let description = object::get_string(&item.definition, "description");
            let description = description.unwrap_or_default();
            let first = description.lines().next().unwrap_or_default();
            vec![id.to_string(), arguments.join(" "), first.to_owned()]
        })
        .collect();
    context.print.data(&table(
        &["PROMPT", "ARGUMENTS", "DESCRIPTION"],
        &cells,
        context.print.width(),
    ));
}

/// An argument; one that can be left out stands in brackets.
fn written(slot: &Slot) -> String {
    match slot.need {
        Need::Required => slot.name.clone(),
        Need::Optional => format!("[{}]", slot.name),
    }
}
