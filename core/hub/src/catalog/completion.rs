//! Completes a partly typed argument of a prompt or template with values from its server.

use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_model::{CallError, Caller, Effect, ItemId, Kind, ServerName, Target};
use capstan_wire::{Json, compose, object};

use crate::hub::Hub;
use crate::ports::Approver;
use crate::{ApprovalFrom, Call, Session, SideOp};

/// Most values in one answer, as the protocol limits it.
const MAX_VALUES: usize = 100;

/// An argument value that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typing {
    /// The prompt or template whose argument it is.
    pub of: Reference,
    /// The name of the argument or placeholder.
    pub argument: String,
    /// The part of the value that was typed so far.
    pub value: String,
    /// The values of other arguments that are already known.
    pub known: Vec<(String, String)>,
}

/// A prompt or resource template whose arguments a server can complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A prompt, by its own name.
    Prompt(String),
    /// A resource template, as its server wrote it.
    Template(String),
}

impl Hub {
    /// Returns the values that the server of a prompt or template suggests.
    ///
    /// The result is empty if the server does not support completion. The request is decided and
    /// recorded like a call.
    ///
    /// # Errors
    /// Fails if a rule denies the prompt or template, or if the server cannot be used.
    pub async fn complete(
        &self,
        session: &Session,
        caller: &Caller,
        (server, typing): (&ServerName, &Typing),
        approver: &dyn Approver,
    ) -> Result<Vec<String>, CallError> {
        let (kind, item) = match &typing.of {
            Reference::Prompt(name) => (Kind::Prompt, name),
            Reference::Template(template) => (Kind::Resource, template),
        };
        let about = self.about(server);
        let capabilities = about.as_ref().and_then(|about| about.capabilities.as_ref());
        if capabilities.is_some_and(|all| object::get(all, "completions").is_none()) {
            return Ok(Vec::new());
        }
        let id = ItemId { server: server.clone(), item: item.clone() };
        let params = typing.params();
        // A caller who may not use the item gets no information about it either.
        let is_shown = self.has(server) && self.could_permit(&id, kind, Effect::Read, caller);
        let name = id.to_string();
        let call = Call::new(caller.clone(), Target::exact(kind, id), Some(&typed(&params)));
        let op = SideOp::Complete(params);
        let attempt = self.begin(&call).by_method(SideOp::COMPLETE);
        if !is_shown {
            return Err(attempt.refuse(CallError::Unknown { kind, name, nearest: Vec::new() }));
        }
        match attempt.side(session, call, op, ApprovalFrom::Front(approver), None).await {
            // A server without completion suggests nothing.
            Err(CallError::Server { code: METHOD_NOT_FOUND, .. }) => Ok(Vec::new()),
            result => Ok(Typing::values(&result?)),
        }
    }
}

/// Returns the arguments, as far as they are typed, from the params of `completion/complete`.
pub fn typed(params: &Json) -> Json {
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

// === impl Typing ===

impl Typing {
    /// Returns the params of `completion/complete`.
    pub fn params(&self) -> Json {
        let (word, key, item) = match &self.of {
            Reference::Prompt(name) => ("ref/prompt", "name", name),
            Reference::Template(template) => ("ref/resource", "uri", template),
        };
        let text = |text: &str| compose::string(text);
        let reference = compose::object(&[("type", &text(word)), (key, &text(item))]);
        let argument =
            compose::object(&[("name", &text(&self.argument)), ("value", &text(&self.value))]);
        let known: Vec<(&str, Json)> =
            self.known.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        let known: Vec<(&str, &Json)> = known.iter().map(|(name, value)| (*name, value)).collect();
        let context = compose::object(&[("arguments", &compose::object(&known))]);
        let mut members = vec![("ref", &reference), ("argument", &argument)];
        if !known.is_empty() {
            members.push(("context", &context));
        }
        compose::object(&members)
    }

    /// Returns the values in the result of `completion/complete`.
    pub fn values(result: &Json) -> Vec<String> {
        let values = object::at_path(result, "completion.values");
        let values = values.and_then(|values| object::items(&values).ok()).unwrap_or_default();
        values.iter().filter_map(|value| value.read().ok()).take(MAX_VALUES).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_as_the_protocol_has_it() {
        let mut typing = Typing {
            of: Reference::Prompt("poem".to_owned()),
            argument: "mood".to_owned(),
            value: "re".to_owned(),
            known: Vec::new(),
        };
        let expected = r#"{"ref":{"type":"ref/prompt","name":"poem"},"argument":{"name":"mood","value":"re"}}"#;
        assert_eq!(typing.params().as_str(), expected);
        typing.of = Reference::Template("x://{a}".to_owned());
        typing.known.push(("title".to_owned(), "T".to_owned()));
        let expected = r#"{"ref":{"type":"ref/resource","uri":"x://{a}"},"argument":{"name":"mood","value":"re"},"context":{"arguments":{"title":"T"}}}"#;
        assert_eq!(typing.params().as_str(), expected);
    }

    #[test]
    fn only_so_many_texts_are_taken_from_an_answer() {
        let values = |text: &str| Typing::values(&Json::parse(text.to_owned()).unwrap());
        assert_eq!(values(r#"{"completion":{"values":["a",1,"b"],"hasMore":true}}"#), ["a", "b"]);
        let many = vec!["\"x\""; MAX_VALUES + 1].join(",");
        let many = values(&format!(r#"{{"completion":{{"values":[{many}]}}}}"#));
        assert_eq!(many.len(), MAX_VALUES);
        for odd in ["{}", "[]", r#"{"completion":[]}"#, r#"{"completion":{"values":1}}"#] {
            assert_eq!(values(odd), [""; 0], "{odd}");
        }
    }
}
