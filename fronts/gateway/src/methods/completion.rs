//! Completions, log levels and subscriptions: what is asked of one server, found by what it is
//! about.

use std::sync::Arc;

use capstan_hub::ports::Errand;
use capstan_hub::{Asks, Call};
use capstan_model::{CallError, Caller, ItemId, Kind, ServerName, Target};
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::protocol::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose, object};

use crate::client::identity::caller_of;
use crate::client::{Client, Level};
use crate::gateway::Gateway;
use crate::protocol::era::Era;
use crate::protocol::fault::Fault;

impl Gateway {
    /// `completion/complete`.
    pub(crate) async fn complete(
        self: Arc<Self>,
        client: Arc<Client>,
        params: Option<Json>,
    ) -> Result<Json, Fault> {
        let params = params.unwrap_or_else(Json::empty_object);
        refuse_ambiguous(&params, &["ref", "argument", "context", "_meta"])?;
        let [reference, argument, context] = object::peek(&params, ["ref", "argument", "context"]);
        let reference = reference.ok_or_else(|| Fault::invalid("`ref` is missing"))?;
        refuse_ambiguous(&reference, &["type", "name", "uri"])?;
        argument.map_or(Ok(()), |argument| refuse_ambiguous(&argument, &["name", "value"]))?;
        context.map_or(Ok(()), |context| refuse_ambiguous(&context, &["arguments"]))?;
        let (kind, key) = match object::get_string(&reference, "type").as_deref() {
            Some("ref/prompt") => (Kind::Prompt, "name"),
            Some("ref/resource") => (Kind::Resource, "uri"),
            _ => return Err(Fault::invalid("`ref.type` is not known")),
        };
        let name = object::get_string(&reference, key);
        let name = name.ok_or_else(|| Fault::invalid(format!("`ref.{key}` must be a string")))?;
        let found = match kind {
            Kind::Prompt | Kind::Tool => self.find_prompt(&client, &name).await,
            Kind::Resource => self.locate(&client, &name).await,
        };
        let Some((server, own)) = found else {
            // Who tries what is not there leaves a trace too.
            let caller = caller_of(&client.caller, &params);
            let call = Call::new(caller, Target::spelled(kind, name.as_str()), None);
            let hub = self.hub();
            let unknown = CallError::Unknown { kind, name: name.clone(), nearest: Vec::new() };
            let search = hub.begin_search(&call).by_method("completion/complete");
            drop(search.end(Err(unknown.clone())).await);
            return Err(Fault::of_call(&unknown, kind, &name, client.era));
        };
        let own_json = compose::string(&own);
        let params = object::with_member(&reference, key, &own_json)
            .and_then(|reference| object::with_member(&params, "ref", &reference))
            .map_err(|_| Fault::invalid("the params are not an object"))?;
        let caller = caller_of(&client.caller, &params);
        let errand = Errand::Complete(params);
        let result = self.run_complete(&client, caller, (kind, server, own), &errand).await;
        let result = match result {
            // A server that cannot say offers nothing.
            Err(CallError::Server { code: METHOD_NOT_FOUND, .. }) => {
                let none = compose::object(&[("values", &compose::array(&[]))]);
                compose::object(&[("completion", &none)])
            }
            Ok(result) => result,
            Err(error) => return Err(Fault::of_call(&error, kind, &name, client.era)),
        };
        if client.era == Era::Legacy || object::get(&result, "resultType").is_some() {
            return Ok(result);
        }
        let complete = compose::string("complete");
        Ok(object::with_member(&result, "resultType", &complete).unwrap_or(result))
    }

    /// Asks a server what a value could become, by the rules for the item that it is a value of.
    async fn run_complete(
        &self,
        client: &Client,
        caller: Arc<Caller>,
        (kind, server, item): (Kind, ServerName, String),
        errand: &Errand,
    ) -> Result<Json, CallError> {
        let id = ItemId { server, item };
        let typed = match errand {
            Errand::Complete(params) => typed(params),
            Errand::Subscribe(_)
            | Errand::Unsubscribe(_)
            | Errand::Level(_)
            | Errand::Task(..)
            | Errand::Follow(_) => Json::empty_object(),
        };
        let call = Call::new(caller, Target::exact(kind, id.clone()), Some(&typed));
        let hub = self.hub();
        let mut attempt = hub.begin_search(&call).by_method("completion/complete");
        let result = match attempt.admit(&client.session, call, &id, Asks::Nobody).await {
            Ok(admitted) => hub.errand(&admitted, errand).await,
            Err(error) => Err(error),
        };
        attempt.end_quietly(result.as_ref().map(|_| ()).map_err(Clone::clone)).await?;
        result
    }

    /// `logging/setLevel`: what the client hears, and the most that any server has to tell.
    pub(crate) fn set_level(
        self: &Arc<Self>,
        client: &Client,
        params: Option<&Json>,
    ) -> Result<Json, Fault> {
        let word = params.and_then(|params| object::get_string(params, "level"));
        let level = word.as_deref().and_then(Level::parse);
        let level = level.ok_or_else(|| Fault::invalid("`level` is not one that is known"))?;
        client.set_level(level);
        self.want_level(client, level);
        Ok(Json::empty_object())
    }

    /// Sets the log level of the servers that a client may use, in the background.
    pub(crate) fn want_level(self: &Arc<Self>, client: &Client, level: Level) {
        for server in self.shown(&client.view) {
            if !self.shows(&server, &client.caller) || !self.is_more(&server, level) {
                continue;
            }
            let gateway = Arc::clone(self);
            tokio::spawn(async move {
                let errand = Errand::Level(level.as_str().to_owned());
                let done = gateway.hub().own_errand(&server, &errand).await;
                if let Err(error) = done {
                    tracing::debug!(%server, %error, "a log level was not taken");
                }
            });
        }
    }

    /// `resources/subscribe` and `resources/unsubscribe`.
    pub(crate) async fn subscribe(
        self: Arc<Self>,
        client: Arc<Client>,
        params: Option<Json>,
        wanted: Wanted,
    ) -> Result<Json, Fault> {
        let params = params.unwrap_or_else(Json::empty_object);
        refuse_ambiguous(&params, &["uri", "_meta"])?;
        let uri = object::get_string(&params, "uri");
        let uri = uri.ok_or_else(|| Fault::invalid("`uri` must be a string"))?;
        match wanted {
            Wanted::Yes => {
                let caller = caller_of(&client.caller, &params);
                let by = ("resources/subscribe", Asks::Elsewhere);
                let watched = self.watch_for(&client, caller, &uri, by).await;
                let (server, own, watched) = watched
                    .map_err(|error| Fault::of_call(&error, Kind::Resource, &uri, client.era))?;
                let is_noted = client.subscribe(server, own, uri);
                drop(watched);
                if !is_noted {
                    return Err(Fault::invalid("too many subscriptions"));
                }
            }
            Wanted::No => {
                let found = self.locate(&client, &uri).await;
                let unknown = || Fault::no_such(Kind::Resource, &uri, client.era);
                let (server, own) = found.ok_or_else(unknown)?;
                if client.unsubscribe(&server, &own) {
                    self.stop_watching(&server, &own);
                }
            }
        }
        Ok(Json::empty_object())
    }
}

/// Refuses params that a server could read otherwise than we do; see [`refuse_duplicates`].
pub(crate) fn refuse_ambiguous(
    json: &Json,
    protected: &'static [&'static str],
) -> Result<(), Fault> {
    refuse_duplicates(json, protected)
        .map_err(|problem| Fault::invalid(format!("the params are ambiguous: {problem}")))
}

/// The arguments of a prompt or a template as far as they are typed.
fn typed(params: &Json) -> Json {
    let known = object::at_path(params, "context.arguments").unwrap_or_else(Json::empty_object);
    let argument = object::get(params, "argument");
    let typed = argument.and_then(|typed| {
        Some((object::get_string(&typed, "name")?, object::get(&typed, "value")?))
    });
    match typed {
        Some((name, value)) => object::with_member(&known, &name, &value).unwrap_or(known),
        None => known,
    }
}

/// Whether a client wants to hear of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Yes,
    No,
}
