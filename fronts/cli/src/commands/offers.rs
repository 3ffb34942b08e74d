//! What `resources`, `read`, `prompts` and `prompt` share: the lists of servers, and refusals.

use std::sync::Arc;

use capstan_app::{AppError, Setup};
use capstan_hub::catalog::{Gathered, names};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Attempt, Freshness, Hub};
use capstan_model::{CallError, ItemId, Kind, ServerName};
use capstan_text::arguments::slots::{Need, Slot, SlotError};
use capstan_wire::{Json, compose, object};

use crate::args::WaitArgs;
use crate::complete::is_plain;
use crate::context::Context;
use crate::waiting::Waiting;

/// A call that was not sent: what is written down about it, and what is shown.
pub(super) struct Refusal {
    error: CallError,
    hint: Option<String>,
}

/// A list of all servers.
pub(super) async fn of_all(
    context: &Context,
    hub: &Hub,
    listing: Listing,
    wait: &WaitArgs,
) -> Gathered {
    let waiting = Waiting::new(&context.print, "waiting for the servers");
    let total = hub.servers().len();
    let mut answered = 0;
    hub.gather(listing, Context::patience(wait), &mut |_| {
        answered += 1;
        waiting.say(&format!("waiting for the servers ({answered} of {total} have answered)"));
    })
    .await
}

/// A list of the server that was named.
pub(super) async fn of_named(
    context: &Context,
    setup: &Setup,
    hub: &Hub,
    listing: Listing,
    name: &str,
) -> Result<Gathered, AppError> {
    let entry = setup.server(name)?;
    let items = of_server(context, hub, listing, &entry.name).await?;
    let mut gathered = Gathered::default();
    gathered.lists.insert(entry.name.clone(), items);
    Ok(gathered)
}

/// A list of one server; starts it, and no other.
pub(super) async fn of_server(
    context: &Context,
    hub: &Hub,
    listing: Listing,
    server: &ServerName,
) -> Result<Arc<[Item]>, CallError> {
    let _waiting = Waiting::new(&context.print, &format!("starting `{server}`"));
    hub.list(server, listing, Freshness::Known).await
}

/// Keeps the names for completions, as far as a shell may be given them.
pub(super) fn remember(context: &Context, kind: Kind, gathered: &Gathered) {
    if context.selection.demo {
        return;
    }
    for (server, items) in &gathered.lists {
        let plain = names(items).filter(|name| is_plain(name));
        context.host.remember(kind, server, plain.map(ToOwned::to_owned).collect());
    }
}

/// An item as its server wrote it, with the name of the server.
pub(super) fn with_server(server: &ServerName, item: &Item) -> Json {
    let whole = object::with_member(&item.definition, "server", &compose::string(server.as_str()));
    whole.unwrap_or_else(|_| item.definition.clone())
}

/// Prints items as their servers wrote them, each with the name of its server.
pub(super) fn print_json(context: &Context, items: &[(&ServerName, &Item)]) {
    let items: Vec<Json> = items.iter().map(|(server, item)| with_server(server, item)).collect();
    context.print.bytes(compose::array(&items).as_bytes());
}

/// Says so when there is nothing to show because there is nobody to ask.
pub(super) fn tell_nobody(context: &Context, hub: &Hub) {
    if hub.servers().len() == 0 {
        context.print.note("no servers are configured");
        context.print.hint("`capstan add NAME COMMAND…` adds one; `--demo` shows some");
    }
}

/// An address as one types it.
pub(super) fn spelled(id: &ItemId) -> String {
    format!("@{}:{}", id.server, id.item)
}

/// The arguments that a prompt declares, in its order.
pub(super) fn arguments_of(prompt: &Json) -> Vec<Slot> {
    let declared = object::get(prompt, "arguments").and_then(|list| object::items(&list).ok());
    let slot = |argument: &Json| {
        let required = object::get(argument, "required").is_some_and(|r| r.as_bytes() == b"true");
        Some(Slot {
            name: object::get_string(argument, "name")?,
            need: if required { Need::Required } else { Need::Optional },
            description: object::get_string(argument, "description"),
        })
    };
    declared.unwrap_or_default().iter().filter_map(slot).collect()
}

// === impl Refusal ===

impl Refusal {
    /// Values that do not fit; `usual` is the hint where the error has none of its own.
    pub(super) fn misfit(item: String, error: &SlotError, usual: impl Into<String>) -> Self {
        let hint = Some(error.hint().unwrap_or_else(|| usual.into()));
        let problem = error.to_string();
        Self { error: CallError::InvalidArguments { item, problem }, hint }
    }

    /// The same with another hint.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What is shown of a refusal that nobody needs to know of later.
    pub(super) fn show(self) -> AppError {
        let failure = AppError::from(self.error);
        match self.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Writes the refusal down; what is shown of it.
    pub(super) fn record(self, attempt: Attempt<'_>) -> AppError {
        drop(attempt.refuse(self.error.clone()));
        self.show()
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        Self { error, hint: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_prompt_are_read_as_far_as_they_make_sense() {
        let prompt = r#"{"arguments":[{"name":"a","required":true},{"name":"b","description":"B"},
                         7,{"required":true},{"name":"c","required":"true"}]}"#;
        let slots = arguments_of(&Json::parse(prompt.to_owned()).unwrap());
        let read: Vec<(&str, Need)> =
            slots.iter().map(|slot| (slot.name.as_str(), slot.need)).collect();
        let expected = [("a", Need::Required), ("b", Need::Optional), ("c", Need::Optional)];
        assert_eq!(read, expected);
        for odd in ["{}", r#"{"arguments":{}}"#, "[]"] {
            assert_eq!(arguments_of(&Json::parse(odd.to_owned()).unwrap()), []);
        }
    }
}
