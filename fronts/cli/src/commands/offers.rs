//! Shared output of `resources` and `prompts`: items as JSON, and the note that there are no
//! servers.

use capstan_app::api::ListedItem;
use capstan_wire::{Json, compose, object};

use crate::context::Context;

/// An item's definition, with the name of the server added.
pub(super) fn with_server(item: &ListedItem) -> Json {
    let server = compose::string(item.server.as_str());
    let whole = object::with_member(&item.definition, "server", &server);
    whole.unwrap_or_else(|_| item.definition.clone())
}

/// Prints the items' definitions, each with the name of its server.
pub(super) fn print_json(context: &Context, items: &[ListedItem]) {
    let items: Vec<Json> = items.iter().map(with_server).collect();
    context.print.bytes(compose::array(&items).as_bytes());
}

/// Reports that no server is configured.
pub(super) fn tell_no_servers(context: &Context) {
    context.print.note("no servers are configured");
    context.print.hint("`capstan add NAME COMMAND…` adds one; `--demo` uses examples");
}
