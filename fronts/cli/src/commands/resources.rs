//! `capstan resources`: what servers have to read.

use capstan_app::AppError;
use capstan_hub::ports::{Item, Listing};
use capstan_model::{Caller, Front, Kind, ServerName};
use capstan_text::answer::size;
use capstan_text::table::table;
use capstan_wire::object;

use super::offers::{of_all, of_named, print_json, tell_nobody};
use super::tools::tell_missing;
use crate::args::ResourcesArgs;
use crate::context::Context;
use crate::exit::Exit;

pub(crate) async fn run(context: &Context, args: &ResourcesArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let listing = if args.templates { Listing::Templates } else { Listing::Resources };
    let gathered = match &args.server {
        Some(server) => of_named(context, &setup, hub, listing, server).await?,
        None => of_all(context, hub, listing, &args.wait).await,
    };
    let items = hub.visible_items(&gathered, Kind::Resource, &Caller::operator(Front::Cli));
    if context.print.wants_json() {
        print_json(context, &items);
    } else if !items.is_empty() {
        show(context, listing, &items);
    }
    tell_missing(context, hub, &gathered);
    tell_nobody(context, hub);
    Ok(Exit::Ok)
}

fn show(context: &Context, listing: Listing, items: &[(&ServerName, &Item)]) {
    let address = match listing {
        Listing::Templates => "TEMPLATE",
        Listing::Resources | Listing::Tools | Listing::Prompts => "URI",
    };
    let cells: Vec<Vec<String>> = items
        .iter()
        .map(|(server, item)| {
            let text = |key| object::get_string(&item.definition, key);
            let bytes = object::get(&item.definition, "size").and_then(|json| json.read().ok());
            vec![
                item.name.clone(),
                text("name").unwrap_or_default(),
                text("mimeType").unwrap_or_else(|| "-".to_owned()),
                bytes.map_or_else(|| "-".to_owned(), size),
                server.to_string(),
            ]
        })
        .collect();
    let headers = [address, "NAME", "MIME", "SIZE", "SERVER"];
    context.print.data(&table(&headers, &cells, context.print.width()));
}
