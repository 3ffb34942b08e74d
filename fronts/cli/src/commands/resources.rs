//! `capstan resources`: lists the resources and templates of servers.

use capstan_app::AppError;
use capstan_app::api::{ListResources, ListedItem};
use capstan_text::answer::size;
use capstan_wire::object;

use super::offers::{print_json, seen, tell_no_servers};
use super::{tell_missing, tell_saved};
use crate::args::ResourcesArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

pub(crate) async fn run(context: &Context, args: &ResourcesArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "waiting for the servers");
    let reading = context.reading(&args.reading);
    let list = ListResources { server: args.server.clone(), templates: args.templates, reading };
    let listed = context.run(list, person).await?;
    if context.print.wants_json() {
        print_json(context, &listed.items);
    } else if !listed.items.is_empty() {
        show(context, if args.templates { "TEMPLATE" } else { "URI" }, &listed.items);
    }
    tell_saved(&context.print, seen(&listed.items));
    tell_missing(&context.print, &listed.missing);
    if listed.none.is_some() {
        tell_no_servers(context);
    }
    Ok(Exit::Ok)
}

fn show(context: &Context, address: &str, items: &[ListedItem]) {
    let cells: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            let text = |key| object::get_string(&item.definition, key);
            let bytes = object::get(&item.definition, "size").and_then(|json| json.read().ok());
            vec![
                item.name.clone(),
                text("name").unwrap_or_default(),
                text("mimeType").unwrap_or_else(|| "-".to_owned()),
                bytes.map_or_else(|| "-".to_owned(), size),
                item.server.to_string(),
            ]
        })
        .collect();
    let headers = [address, "NAME", "MIME", "SIZE", "SERVER"];
    context.print.table(&headers, &cells);
}
