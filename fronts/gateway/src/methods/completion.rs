//! Completions, log levels and subscriptions of resources.
//!
//! These requests go to one server, which is found by the item they concern.

use std::sync::Arc;

use capstan_hub::catalog::typed;
use capstan_hub::{Asks, Call, SideOp};
use capstan_model::{CallError, Caller, ItemId, Kind, Target};
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
        let caller = caller_of(&client.caller, &params);
        let result = self.run_complete(&client, caller, kind, &name, params).await;
        let result = match result {
            // A server without completion offers no values.
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

    /// Asks a server to complete a value, under the rules for the item of that value.
    ///
    /// The audit record starts with the search for the item.
    async fn run_complete(
        self: &Arc<Self>,
        client: &Client,
        caller: Arc<Caller>,
        kind: Kind,
        name: &str,
        params: Json,
    ) -> Result<Json, CallError> {
        let op = SideOp::Complete(params.clone());
        let (hub, typed) = (self.hub(), typed(&params));
        let sought = Call::new(Arc::clone(&caller), Target::spelled(kind, name), Some(&typed));
        let attempt = hub.begin_search(&sought).by_method(op.method());
        let found = match kind {
            Kind::Prompt | Kind::Tool => self.find_prompt(client, name).await,
            Kind::Resource => self.locate(client, name).await,
        };
        let Some((server, item)) = found else {
            let unknown = CallError::Unknown { kind, name: name.to_owned(), nearest: Vec::new() };
            return Err(attempt.refuse(unknown));
        };
        let target = Target::exact(kind, ItemId { server, item });
        let call = Call::new(caller, target, Some(&typed));
        attempt.side(&client.session, call, op, Asks::Nobody).await
    }

    /// `logging/setLevel`: sets the level of the client, and makes servers at least as verbose.
    pub(crate) fn set_level(
        self: &Arc<Self>,
        client: &Client,
        params: Option<&Json>,
    ) -> Result<Json, Fault> {
        let word = params.and_then(|params| object::get_string(params, "level"));
        let level = word.as_deref().and_then(Level::parse);
        let level = level.ok_or_else(|| Fault::invalid("`level` is not a known level"))?;
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
                let done = gateway.hub().set_level(&server, level.as_str()).await;
                if let Err(error) = done {
                    tracing::debug!(%server, %error, "a server did not accept the log level");
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
                let (method, asks) = ("resources/subscribe", Asks::Elsewhere);
                let watched = self.watch_for(&client, caller, &uri, method, asks).await;
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

/// Refuses params that a server could parse differently; see [`refuse_duplicates`].
pub(crate) fn refuse_ambiguous(
    json: &Json,
    protected: &'static [&'static str],
) -> Result<(), Fault> {
    refuse_duplicates(json, protected)
        .map_err(|problem| Fault::invalid(format!("the params are ambiguous: {problem}")))
}

/// Subscribe or unsubscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Yes,
    No,
}
