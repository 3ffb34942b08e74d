//! Reads one resource.

use std::sync::Arc;

use capstan_hub::catalog::{Placeholder, Reference, Template, Typing, names};
use capstan_hub::ports::{BoxFuture, Item, Listing};
use capstan_hub::spills::is_page;
use capstan_hub::{Attempt, Call, Freshness, Requester};
use capstan_model::rpc_code::{INVALID_PARAMS, RESOURCE_NOT_FOUND};
use capstan_model::{CallError, ItemId, Kind, ServerName, Target};
use capstan_wire::{Json, object};
use serde::{Deserialize, Serialize};

use super::call::Refusal;
use super::interact::{self, Asker, Misfit, Slot};
use super::{Interact, Local, Operation, operator};
use crate::{AppError, HubPurpose, nearest};

/// Reads a resource: a URI, the name of a resource, or a template with values.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReadResource {
    /// `server:uri`, `server:name`, `server:template`, or the address of a page of a long answer.
    pub name: String,
    /// True if values for a template are given.
    pub fills_template: bool,
    /// The number of tokens above which the front shows pages; `None` for any.
    pub max_tokens: Option<u32>,
}

/// Completes the value of a template's placeholder.
#[derive(Debug, Serialize, Deserialize)]
pub struct CompleteTemplate {
    /// The template: `server:template` or `server:name`.
    pub name: String,
    /// The placeholder.
    pub argument: String,
    /// The beginning of its value.
    pub value: String,
}

/// JSON-RPC errors with which servers of both eras report an unknown resource.
const NOT_THERE: [i64; 2] = [RESOURCE_NOT_FOUND, INVALID_PARAMS];

/// A parsed template of a server.
struct Shape {
    text: String,
    template: Template,
    slots: Vec<Slot>,
}

impl Operation for ReadResource {
    const NAME: &'static str = "resources/read";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = Json;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, AppError>> {
        Box::pin(read(self, local, front))
    }
}

async fn read(
    asked: &ReadResource,
    local: &Local,
    front: &Arc<dyn Interact>,
) -> Result<Json, AppError> {
    local.tell_problems_of_list(&**front);
    let hub = &*local.hub;
    let call = Call::new(operator(), Target::resource(&asked.name), None);
    let attempt = hub.begin(&call);
    let named = if is_page(&asked.name) { None } else { hub.id_of(&asked.name) };
    let Some(id) = named else {
        // The pipeline reads pages itself, and refuses a name that belongs to no server.
        return Ok(send(local, front, attempt, call, None).await?);
    };
    let uri = match address(asked, local, &**front, &id).await {
        Ok(uri) => uri,
        Err(refusal) => return Err(refusal.record(attempt)),
    };
    let meant = ItemId { server: id.server, item: uri };
    let call = Call::new(operator(), Target::resource(meant.to_string()), None);
    match send(local, front, attempt, call, asked.max_tokens).await {
        // If a template is filled in, the server's own message is more specific.
        Err(CallError::Server { code, message, .. })
            if NOT_THERE.contains(&code) && !asked.fills_template =>
        {
            let error = AppError::from(unknown(local, &**front, &meant).await?);
            let message = format!("{}; its server says: {message}", error.message);
            Err(AppError { message, ..error })
        }
        result => Ok(result?),
    }
}

impl Operation for CompleteTemplate {
    const NAME: &'static str = "resources/complete";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = Vec<String>;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Vec<String>, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            let Some(id) = local.hub.id_of(&self.name) else {
                let call = Call::new(operator(), Target::resource(&self.name), None);
                send(local, front, local.hub.begin(&call), call, None).await?;
                return Ok(Vec::new());
            };
            let Some(shape) = find_template(local, &**front, &id).await? else {
                return Err(unknown(local, &**front, &id).await?.into());
            };
            let known = interact::values(&**front, shape.slots.clone()).await;
            let known = known.map_err(|misfit| refuse(&id, &shape, misfit))?;
            let typing = Typing {
                of: Reference::Template(shape.text),
                argument: self.argument.clone(),
                value: self.value.clone(),
                known,
            };
            local.complete(front, &id.server, &typing).await
        })
    }
}

async fn send(
    local: &Local,
    front: &Arc<dyn Interact>,
    attempt: Attempt<'_>,
    call: Call,
    max_tokens: Option<u32>,
) -> Result<Json, CallError> {
    front.status(&format!("reading `{}`", call.target.name));
    answered(local, front, attempt, call, max_tokens).await
}

/// Sends a call of the operator, who is asked where a rule requires it.
pub(super) async fn answered(
    local: &Local,
    front: &Arc<dyn Interact>,
    attempt: Attempt<'_>,
    call: Call,
    max_tokens: Option<u32>,
) -> Result<Json, CallError> {
    let person = Asker::new(front);
    let requester = Requester { max_tokens, ..person.requester() };
    let screened = attempt.call(&local.session(), call, requester).await?;
    Ok(screened.result().clone())
}

/// Lists the items of one server; starts that server and no other.
pub(super) async fn of_server(
    local: &Local,
    front: &dyn Interact,
    listing: Listing,
    server: &ServerName,
) -> Result<Arc<[Item]>, CallError> {
    front.status(&format!("starting `{server}`"));
    local.hub.list(server, listing, Freshness::Known).await
}

/// Resolves a URI, the name of a resource, or a template with values to a URI.
async fn address(
    asked: &ReadResource,
    local: &Local,
    front: &dyn Interact,
    id: &ItemId,
) -> Result<String, Refusal> {
    // Servers can serve URIs that they do not list, so every URI is tried.
    if !asked.fills_template && is_address(&id.item) {
        return Ok(id.item.clone());
    }
    if !asked.fills_template
        && let Some(uri) = find_resource(local, front, id).await?
    {
        return Ok(uri);
    }
    match find_template(local, front, id).await? {
        Some(shape) => {
            let values = interact::values(front, shape.slots.clone()).await;
            let values = values.map_err(|misfit| refuse(id, &shape, misfit))?;
            let value = |wanted: &str| {
                values.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
            };
            Ok(shape.template.expand(value))
        }
        None if is_address(&id.item) || find_resource(local, front, id).await?.is_some() => {
            let problem = "it is not a template and takes no values".to_owned();
            let error = CallError::InvalidArguments { item: spelled(id), problem };
            let hint = format!("`capstan resources {} --templates` lists templates", id.server);
            Err(Refusal::from(error).hint(hint))
        }
        None => Err(unknown(local, front, id).await?),
    }
}

/// True if a text has a scheme and none of the braces that only templates have.
fn is_address(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(rest)
        && !text.contains(['{', '}'])
}

/// The URI of the listed resource with that name.
async fn find_resource(
    local: &Local,
    front: &dyn Interact,
    id: &ItemId,
) -> Result<Option<String>, CallError> {
    let items = of_server(local, front, Listing::Resources, &id.server).await?;
    let found = items.iter().find(|item| is_called(item, &id.item));
    Ok(found.map(|item| item.name.clone()))
}

/// Finds the template with that name or that text.
async fn find_template(
    local: &Local,
    front: &dyn Interact,
    id: &ItemId,
) -> Result<Option<Shape>, CallError> {
    let items = of_server(local, front, Listing::Templates, &id.server).await?;
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

/// The refusal for an unknown URI or name; suggests the most similar known one.
async fn unknown(local: &Local, front: &dyn Interact, id: &ItemId) -> Result<Refusal, CallError> {
    let resources = of_server(local, front, Listing::Resources, &id.server).await?;
    let templates = of_server(local, front, Listing::Templates, &id.server).await?;
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
    Ok(Refusal::from(error).hint(format!("`capstan resources {}` lists its resources", id.server)))
}

fn refuse(id: &ItemId, shape: &Shape, misfit: Misfit) -> Refusal {
    Refusal::misfit(spelled(id), misfit, format!("its template is `{}`", shape.text))
}

/// A URI as it is typed on the command line: `@server:uri`.
fn spelled(id: &ItemId) -> String {
    format!("@{}:{}", id.server, id.item)
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
