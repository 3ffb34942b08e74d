//! Shared output of `resources` and `prompts`: items as JSON, and the note that there are no
//! servers.

use capstan_app::api::{ListedItem, Provenance};
use capstan_model::ServerName;
use capstan_wire::{Json, compose, object};
use jiff::Timestamp;

use crate::context::Context;

/// An item's definition, with the name of the server and the item's provenance added.
pub(super) fn with_server(item: &ListedItem) -> Json {
    let Provenance { stale, seen, incomplete } = item.provenance;
    let members = [
        ("server", Some(compose::string(item.server.as_str()))),
        ("stale", stale.then(compose::truth)),
        ("seen", seen.map(|time| compose::string(&time.to_string()))),
        ("incomplete", incomplete.then(compose::truth)),
    ];
    let members = members.into_iter().filter_map(|(key, value)| Some((key, value?)));
    members.fold(item.definition.clone(), |whole, (key, value)| {
        object::with_member(&whole, key, &value).unwrap_or(whole)
    })
}

/// The times at which the servers of saved items were last seen.
pub(super) fn seen(items: &[ListedItem]) -> impl Iterator<Item = Timestamp> {
    let mut times: Vec<(&ServerName, Timestamp)> =
        items.iter().filter_map(|item| Some((&item.server, item.provenance.seen?))).collect();
    times.dedup_by_key(|(server, _)| *server);
    times.into_iter().map(|(_, time)| time)
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
