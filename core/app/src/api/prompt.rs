//! Gets the messages of one prompt.

use std::sync::Arc;

use capstan_hub::Call;
use capstan_hub::catalog::{Patience, Reference, Typing};
use capstan_hub::ports::{BoxFuture, Item, Listing};
use capstan_model::{CallError, ItemId, Kind, ServerName, Target};
use capstan_wire::{Json, compose};
use serde::{Deserialize, Serialize};

use super::call::Refusal;
use super::interact::{self, Misfit};
use super::items::{Missing, slots};
use super::read::answered;
use super::{Event, Interact, Local, Operation, Reading, Source, operator};
use crate::{AppError, HubPurpose, nearest};

/// Gets a prompt; the front is asked for the argument values once the arguments are known.
#[derive(Debug, Serialize, Deserialize)]
pub struct GetPrompt {
    /// The prompt, by its id or its bare name.
    pub name: String,
    /// How long to wait for servers when a bare name is searched for.
    pub wait: Patience,
    /// The number of tokens above which the front shows pages; `None` for any.
    pub max_tokens: Option<u32>,
}

/// Completes the value of a prompt's argument.
#[derive(Debug, Serialize, Deserialize)]
pub struct CompletePrompt {
    /// The prompt, by its id or its bare name.
    pub name: String,
    /// The argument.
    pub argument: String,
    /// The beginning of its value.
    pub value: String,
    /// How long to wait for servers when a bare name is searched for.
    pub wait: Patience,
}

impl Operation for GetPrompt {
    const NAME: &'static str = "prompts/get";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = Json;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            let (hub, name) = (&*local.hub, &*self.name);
            let attempt = hub.begin(&Call::new(operator(), Target::prompt(name), None));
            let (id, prompt) = match find(local, &**front, name, self.wait).await {
                Ok(found) => found,
                Err(refusal) => return Err(refusal.record(attempt)),
            };
            let values = match interact::values(&**front, slots(&prompt.definition)).await {
                Ok(values) => values,
                Err(misfit) => return Err(refuse(&id, misfit).record(attempt)),
            };
            let target = Target::prompt(id.to_string());
            let call = Call::new(operator(), target, Some(&object_of(&values)));
            front.status(&format!("getting `{id}`"));
            Ok(answered(local, front, attempt, call, self.max_tokens).await?)
        })
    }
}

impl Operation for CompletePrompt {
    const NAME: &'static str = "prompts/complete";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = Vec<String>;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Vec<String>, AppError>> {
        Box::pin(async move {
            local.tell_problems_of_list(&**front);
            let (id, prompt) = find(local, &**front, &self.name, self.wait).await?;
            let known = interact::values(&**front, slots(&prompt.definition)).await;
            let known = known.map_err(|misfit| refuse(&id, misfit))?;
            let typing = Typing {
                of: Reference::Prompt(id.item.clone()),
                argument: self.argument.clone(),
                value: self.value.clone(),
                known,
            };
            local.complete(front, &id.server, &typing).await
        })
    }
}

/// Finds a prompt by its id or its bare name.
async fn find(
    local: &Local,
    front: &dyn Interact,
    typed: &str,
    wait: Patience,
) -> Result<(ItemId, Item), Refusal> {
    let hub = &*local.hub;
    // A name with an unknown server is an error; no server has to be started to report it.
    let names_server = typed.contains(':') || typed.contains("__");
    let is_bare = hub.id_of(typed).is_none() && !names_server;
    if is_bare && !hub.may_be_public(typed) {
        return find_bare(local, front, typed, wait).await;
    }
    front.status(&format!("looking for `{typed}`"));
    match hub.find_prompt(&operator(), typed).await {
        Err(CallError::Unknown { .. }) if is_bare => find_bare(local, front, typed, wait).await,
        found => Ok(found?),
    }
}

/// Finds the only prompt of that name on any server.
async fn find_bare(
    local: &Local,
    front: &dyn Interact,
    name: &str,
    wait: Patience,
) -> Result<(ItemId, Item), Refusal> {
    let reading = Reading { source: Source::Saved, wait };
    let read = local.gather(front, Listing::Prompts, reading).await;
    local.remember(Kind::Prompt, &read);
    let gathered = read.gathered;
    let visible = local.hub.visible_items(&gathered, Kind::Prompt, &operator());
    let id = |server: &ServerName| ItemId { server: server.clone(), item: name.to_owned() };
    let found: Vec<_> = visible.iter().filter(|(_, item)| item.name == name).collect();
    match found.as_slice() {
        [(server, item)] => Ok((id(server), (*item).clone())),
        [] => {
            front.event(Event::Missing { missing: Missing::of(&local.hub, &gathered) });
            let names = visible.iter().map(|(_, item)| item.name.as_str());
            let nearest = nearest(name, names).map(ToOwned::to_owned).into_iter().collect();
            Err(CallError::Unknown { kind: Kind::Prompt, name: name.to_owned(), nearest }.into())
        }
        several => {
            let ids: Vec<String> =
                several.iter().map(|(server, _)| format!("`{}`", id(server))).collect();
            let problem = "several servers have a prompt with that name".to_owned();
            let error = CallError::InvalidArguments { item: name.to_owned(), problem };
            Err(Refusal::from(error).hint(format!("name one of {}", ids.join(", "))))
        }
    }
}

fn refuse(id: &ItemId, misfit: Misfit) -> Refusal {
    Refusal::misfit(id.to_string(), misfit, format!("`capstan prompts {id}` shows its arguments"))
}

fn object_of(values: &[(String, String)]) -> Json {
    let texts: Vec<Json> = values.iter().map(|(_, value)| compose::string(value)).collect();
    let members: Vec<(&str, &Json)> =
        values.iter().zip(&texts).map(|((name, _), text)| (name.as_str(), text)).collect();
    compose::object(&members)
}
