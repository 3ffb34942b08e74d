//! Input that a modern server requires before it continues a call.
//! It is passed on to the client, or answered here.

use capstan_hub::BackChannel;
use capstan_hub::ports::{Asking, Reply as Answer, Unanswered};
use capstan_model::CallError;
use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose, object};
use futures::future::try_join_all;

use crate::session::Session;

impl Session {
    /// True if the server's requests for input can be passed on to the client unchanged.
    /// The client must want that, and must have declared the capabilities for all of them.
    /// Otherwise they are answered here.
    pub(crate) fn hands_out(&self, required: &Json, back: &BackChannel) -> bool {
        let (Some(able), true) = (back.capabilities(), back.wishes().input_required) else {
            return false;
        };
        let requests = object::get(required, "inputRequests").unwrap_or_else(Json::empty_object);
        let can = |request: &Json| {
            let method = object::get_string(request, "method").unwrap_or_default();
            let Some(asking) = Asking::of_method(&method) else { return false };
            let Some(ways) = object::get(&able, asking.capability()) else { return false };
            let has = |way| object::get(&ways, way).is_some();
            let mode = object::at_path(request, "params.mode");
            let mode = mode.and_then(|mode| mode.read::<String>().ok());
            let can = match (asking, mode.as_deref()) {
                (Asking::Elicit, Some("url")) => has("url"),
                // A client that declares no mode supports this one.
                (Asking::Elicit, _) => has("form") || !has("url"),
                (Asking::Sample | Asking::Roots, _) => true,
            };
            can && self.questions.may_ask(asking)
        };
        let asked = object::members(&requests).unwrap_or_default();
        asked.iter().all(|(_, request)| can(request))
    }

    /// Composes the call again, with the answers to the server's requests.
    /// The server's own state is returned unchanged.
    pub(crate) async fn with_input(
        &self,
        params: &Json,
        required: &Json,
        back: &BackChannel,
    ) -> Result<Json, CallError> {
        let broken = |_| self.broken("its request for input is malformed".to_owned());
        let requests = object::get(required, "inputRequests").unwrap_or_else(Json::empty_object);
        let asked = object::members(&requests).map_err(broken)?;
        // All at once: the client may want to see them together.
        let answering = asked.into_iter().map(|(key, request)| async move {
            Ok::<_, CallError>((key, self.answer_input(&request, back).await?))
        });
        let answers = try_join_all(answering).await?;
        let answers: Vec<(&str, &Json)> = answers.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let mut params = params.clone();
        if !answers.is_empty() {
            let answers = compose::object(&answers);
            params = object::with_member(&params, "inputResponses", &answers).map_err(broken)?;
        }
        if let Some(state) = object::get(required, "requestState") {
            params = object::with_member(&params, "requestState", &state).map_err(broken)?;
        }
        Ok(params)
    }

    async fn answer_input(&self, request: &Json, back: &BackChannel) -> Result<Json, CallError> {
        let method = object::get_string(request, "method").unwrap_or_default();
        let asking = Asking::of_method(&method).filter(|asking| self.questions.may_ask(*asking));
        let Some(asking) = asking else {
            return Err(self.broken(format!("it asks for `{method}`, which was not offered")));
        };
        let params = object::get(request, "params").unwrap_or_else(Json::empty_object);
        match self.questions.answer(asking, params, Some(back)).await {
            Ok(answer) => Ok(answer),
            Err(Unanswered { code: METHOD_NOT_FOUND, message }) => {
                Err(self.broken(format!("it asks for `{method}`, which got no answer: {message}")))
            }
            // If the client did not answer the form, the form counts as cancelled.
            Err(_) if asking == Asking::Elicit => Ok(Answer::Cancel.to_json()),
            Err(Unanswered { code, message }) => {
                let message = format!("`{method}` got no answer: {message}");
                let server = self.settings.name.clone();
                Err(CallError::Server { server, code, message, whole: None, is_modern: true })
            }
        }
    }
}
