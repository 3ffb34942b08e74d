//! `capstan read`: reads one resource.

use std::path::Path;
use std::sync::Arc;

use capstan_app::{AppError, nearest};
use capstan_hub::catalog::{Placeholder, Reference, Template, names};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Attempt, Call, Hub, Screened};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, Target};
use capstan_text::answer::{self, sole_part};
use capstan_text::arguments::slots::{self, Slot, SlotError};
use capstan_wire::object;

use super::call::manner;
use super::offers::{Refusal, of_server, spelled};
use super::suggest::{suggest, typing};
use crate::args::ReadArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::operator::{Manner, Person};
use crate::waiting::Waiting;

/// JSON-RPC errors by which servers of both eras say that they have no such resource.
const NOT_THERE: [i64; 2] = [-32002, -32602];

/// A template of a server, taken apart.
struct Shape {
    text: String,
    template: Template,
    slots: Vec<Slot>,
}

pub(crate) async fn run(context: &Context, args: &ReadArgs) -> Result<Exit, AppError> {
    let manner = manner(&context.print, args.elicit.as_deref(), args.ask)?;
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let output = args.output.as_ref().map(|file| context.print.file(file));
    let typed = args.resource.strip_prefix('@').unwrap_or(&args.resource);
    let asked = Call::new(Caller::operator(Front::Cli), Target::resource(typed), None);
    let Some(id) = hub.id_of(typed) else {
        // The road knows what to say about a name that is nobody's.
        let screened = ask(context, hub, hub.begin(&asked), asked, manner).await?;
        return deliver(context, output.as_deref(), &screened);
    };
    if let Some(beginning) = &args.complete {
        return complete(context, hub, &id, beginning, &args.words).await;
    }
    let attempt = hub.begin(&asked);
    let uri = match address(context, hub, &id, &args.words).await {
        Ok(uri) => uri,
        Err(refusal) => return Err(refusal.record(attempt)),
    };
    let meant = ItemId { server: id.server, item: uri };
    let target = Target::resource(meant.to_string());
    let call = Call::new(Caller::operator(Front::Cli), target, None);
    let screened = match ask(context, hub, attempt, call, manner).await {
        // Whoever has filled in a template knows what they want; the server's own words say more.
        Err(CallError::Server { code, message, .. })
            if NOT_THERE.contains(&code) && args.words.is_empty() =>
        {
            let failure = unknown(context, hub, &meant).await?.show();
            let message = format!("{}; its server says: {message}", failure.message);
            return Err(AppError { message, ..failure });
        }
        result => result?,
    };
    deliver(context, output.as_deref(), &screened)
}

async fn ask(
    context: &Context,
    hub: &Hub,
    attempt: Attempt<'_>,
    call: Call,
    manner: Manner,
) -> Result<Screened, CallError> {
    let waiting = Waiting::new(&context.print, &format!("reading `{}`", call.target.name));
    let person = Arc::new(Person::new(context.print.clone(), manner, waiting));
    attempt.call(&hub.session(), call, person).await
}

/// Prints what the value of a placeholder could become.
async fn complete(
    context: &Context,
    hub: &Hub,
    id: &ItemId,
    beginning: &str,
    words: &[String],
) -> Result<Exit, AppError> {
    let Some(shape) = find_template(context, hub, id).await? else {
        return Err(unknown(context, hub, id).await?.show());
    };
    let typing = typing(Reference::Template(shape.text.clone()), beginning, words, &shape.slots);
    let typing = typing.map_err(|error| misfit(id, &shape, &error).show())?;
    suggest(context, hub, &id.server, &typing).await
}

/// The address that is meant: an address, the name of a resource, or a template with its values.
async fn address(
    context: &Context,
    hub: &Hub,
    id: &ItemId,
    words: &[String],
) -> Result<String, Refusal> {
    // A server knows addresses that it does not list, so one is taken at its word.
    if words.is_empty() && is_address(&id.item) {
        return Ok(id.item.clone());
    }
    if words.is_empty()
        && let Some(uri) = find_resource(context, hub, id).await?
    {
        return Ok(uri);
    }
    match find_template(context, hub, id).await? {
        Some(shape) => {
            let values = slots::fill(words, &shape.slots);
            let values = values.map_err(|error| misfit(id, &shape, &error))?;
            let value = |wanted: &str| {
                values.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
            };
            Ok(shape.template.expand(value))
        }
        None if is_address(&id.item) || find_resource(context, hub, id).await?.is_some() => {
            let problem = "it is no template and takes no values".to_owned();
            let error = CallError::InvalidArguments { item: spelled(id), problem };
            let hint = format!("`capstan resources {} --templates` lists templates", id.server);
            Err(Refusal::from(error).hint(hint))
        }
        None => Err(unknown(context, hub, id).await?),
    }
}

/// Whether a text has a scheme, and no braces as only templates have.
fn is_address(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(rest)
        && !text.contains(['{', '}'])
}

/// The address of the listed resource of that name.
async fn find_resource(
    context: &Context,
    hub: &Hub,
    id: &ItemId,
) -> Result<Option<String>, CallError> {
    let items = of_server(context, hub, Listing::Resources, &id.server).await?;
    let found = items.iter().find(|item| is_called(item, &id.item));
    Ok(found.map(|item| item.name.clone()))
}

/// The template of that name, or with that text.
async fn find_template(
    context: &Context,
    hub: &Hub,
    id: &ItemId,
) -> Result<Option<Shape>, CallError> {
    let items = of_server(context, hub, Listing::Templates, &id.server).await?;
    let Some(item) = items.iter().find(|item| is_called(item, &id.item)) else { return Ok(None) };
    let template = Template::parse(&item.name).map_err(|problem| CallError::Protocol {
        server: id.server.clone(),
        problem: format!("its template `{}` cannot be read: {problem}", item.name),
    })?;
    let slot = |place: Placeholder<'_>| Slot {
        name: place.name.to_owned(),
        need: place.need,
        description: None,
    };
    let slots = template.placeholders().into_iter().map(slot).collect();
    Ok(Some(Shape { text: item.name.clone(), template, slots }))
}

fn is_called(item: &Item, name: &str) -> bool {
    item.name == name || object::get_string(&item.definition, "name").as_deref() == Some(name)
}

/// The server has nothing of that address or name; what it has that is most like it.
async fn unknown(context: &Context, hub: &Hub, id: &ItemId) -> Result<Refusal, CallError> {
    let resources = of_server(context, hub, Listing::Resources, &id.server).await?;
    let templates = of_server(context, hub, Listing::Templates, &id.server).await?;
    let own = |item: &Item| object::get_string(&item.definition, "name");
    let own: Vec<String> = resources.iter().chain(templates.iter()).filter_map(own).collect();
    let all = names(&resources).chain(own.iter().map(String::as_str));
    let near = nearest(&id.item, all).map(|near| format!("@{}:{near}", id.server));
    let nearest: Vec<String> = near.into_iter().collect();
    let is_near = !nearest.is_empty();
    let error = CallError::Unknown { kind: Kind::Resource, name: spelled(id), nearest };
    if is_near {
        return Ok(error.into());
    }
    Ok(Refusal::from(error).hint(format!("`capstan resources {}` lists what it has", id.server)))
}

fn misfit(id: &ItemId, shape: &Shape, error: &SlotError) -> Refusal {
    Refusal::misfit(spelled(id), error, format!("its template is `{}`", shape.text))
}

/// Prints the content, or writes it to a file.
fn deliver(context: &Context, file: Option<&Path>, screened: &Screened) -> Result<Exit, AppError> {
    let result = screened.result();
    let sole = sole_part(result);
    match (file, sole) {
        (Some(file), _) if context.print.wants_json() => write(file, result.as_bytes())?,
        (Some(file), Some(part)) => write(file, part.as_bytes())?,
        (Some(_), None) => {
            let failure = AppError::usage("the resource does not consist of one content");
            return Err(failure.hint("`--json --output FILE` writes everything"));
        }
        (None, _) if context.print.wants_json() => context.print.bytes(result.as_bytes()),
        // What reads a pipe wants what is there, byte for byte; only a person needs it cleaned.
        (None, Some(part)) if !context.print.is_terminal() => context.print.raw(part.as_bytes()),
        (None, Some(_) | None) => context.print.data(&answer::text(Kind::Resource, result)),
    }
    Ok(Exit::Ok)
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), AppError> {
    std::fs::write(file, bytes)
        .map_err(|error| AppError::usage(format!("cannot write to {}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_no_placeholder() {
        for address in ["file:///a", "fixture://x", "urn:x", "a+b.c-d:"] {
            assert!(is_address(address), "{address}");
        }
        for name in ["issue", "", ":x", "1a:b", "a b:c", "x://{y}", "x://}", "ü:x"] {
            assert!(!is_address(name), "{name}");
        }
    }
}
