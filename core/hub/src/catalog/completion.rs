//! What a server offers to somebody who is typing a value for one of its prompts or templates.

use capstan_model::{CallError, Caller, Effect, ItemId, Kind, ServerName};
use capstan_wire::{Json, compose, object};

use crate::hub::Hub;

/// Most values that one answer may have, as the protocol says.
const MAX_VALUES: usize = 100;

/// A value that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typing {
    /// What it is for.
    pub of: Reference,
    /// The argument or placeholder.
    pub argument: String,
    /// As far as it has come.
    pub value: String,
    /// What other arguments are already known to be.
    pub known: Vec<(String, String)>,
}

/// Something with arguments that a server can help with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A prompt, by its own name.
    Prompt(String),
    /// A resource template, as its server wrote it.
    Template(String),
}

impl Hub {
    /// The values that the server of a prompt or template offers; none when it cannot say.
    ///
    /// # Errors
    /// When a rule denies what the value is for, or the server cannot be used.
    pub async fn complete(
        &self,
        server: &ServerName,
        typing: &Typing,
        caller: &Caller,
    ) -> Result<Vec<String>, CallError> {
        let (kind, item) = match &typing.of {
            Reference::Prompt(name) => (Kind::Prompt, name),
            Reference::Template(template) => (Kind::Resource, template),
        };
        let id = ItemId { server: server.clone(), item: item.clone() };
        // Who may not use it learns nothing about it either.
        let permitted = self.could_permit(&id, kind, Effect::Read, caller);
        match self.servers.get(server).filter(|_| permitted) {
            Some(backend) => backend.complete(typing).await,
            None => Err(CallError::Unknown { kind, name: id.to_string(), nearest: Vec::new() }),
        }
    }
}

// === impl Typing ===

impl Typing {
    /// The params of `completion/complete`.
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

    /// The values in the result of `completion/complete`.
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
