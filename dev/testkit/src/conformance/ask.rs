//! The questions that tools and prompts put to the client.

use serde_json::{Map, Value, json};

use super::call::Call;
use super::message::{Fault, INVALID_PARAMS, Reply, Revision, content, set};

/// A question to the client, whichever way it is put.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Its name where several are put at a time.
    pub(super) key: String,
    pub(super) method: &'static str,
    needs: Need,
    params: Value,
    /// The visit that a URL stands for.
    visit: Option<String>,
}

/// What the client must be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Form,
    Url,
    Sampling,
    Roots,
}

// === impl Question ===

impl Question {
    /// Asks a person to fill in a form with these properties.
    pub(super) fn form(key: &str, message: &str, properties: &Value) -> Self {
        let required: Vec<&String> =
            properties.as_object().into_iter().flat_map(Map::keys).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Self::optional_form(key, message, &schema)
    }

    /// Asks a person to fill in a form of this schema.
    pub(super) fn optional_form(key: &str, message: &str, schema: &Value) -> Self {
        let params = json!({ "message": message, "requestedSchema": schema });
        Self::new(key, "elicitation/create", Need::Form, params)
    }

    /// Asks a person to go to a URL.
    pub(super) fn url(key: &str, visit: &str, url: &str) -> Self {
        let params = json!({ "mode": "url", "message": "Please visit this page", "url": url });
        let visit = Some(visit.to_owned());
        Self { visit, ..Self::new(key, "elicitation/create", Need::Url, params) }
    }

    /// Asks the client's language model.
    pub(super) fn sample(key: &str, prompt: &str, tokens: u64) -> Self {
        let message = json!({ "role": "user", "content": content(prompt) });
        let params = json!({ "messages": [message], "maxTokens": tokens });
        Self::new(key, "sampling/createMessage", Need::Sampling, params)
    }

    /// Asks for the client's roots.
    pub(super) fn roots(key: &str) -> Self {
        Self::new(key, "roots/list", Need::Roots, json!({}))
    }

    fn new(key: &str, method: &'static str, needs: Need, params: Value) -> Self {
        Self { key: key.to_owned(), method, needs, params, visit: None }
    }

    /// Whether the client said that it can be asked this.
    pub(super) fn declared(&self, call: &Call) -> bool {
        let has = |path: &str| call.capabilities.pointer(path).is_some();
        let bare = call.capabilities.get("elicitation") == Some(&json!({}));
        match self.needs {
            Need::Form if call.revision.since("2025-11-25") => bare || has("/elicitation/form"),
            Need::Form => has("/elicitation"),
            Need::Url => has("/elicitation/url"),
            Need::Sampling => has("/sampling"),
            Need::Roots => has("/roots"),
        }
    }

    /// Refuses a question that the client did not say it can be asked.
    pub(super) fn possible(&self, call: &Call) -> Result<(), Reply> {
        if self.declared(call) {
            return Ok(());
        }
        let needed = match self.needs {
            Need::Form => json!({ "elicitation": { "form": {} } }),
            Need::Url => json!({ "elicitation": { "url": {} } }),
            Need::Sampling => json!({ "sampling": {} }),
            Need::Roots => json!({ "roots": {} }),
        };
        if call.revision.is_modern() {
            return Err(Fault::needs(&needed).into());
        }
        Err(Reply::failed(format!("the client must declare {needed}")))
    }

    /// Its params as that revision has them.
    pub(super) fn params(&self, revision: Revision) -> Value {
        let mut params = self.params.clone();
        if let (Some(visit), false) = (&self.visit, revision.is_modern()) {
            set(&mut params, "elicitationId", json!(visit));
        }
        if self.needs == Need::Form && revision.is_modern() {
            set(&mut params, "mode", json!("form"));
        }
        params
    }

    /// The question as a member of `inputRequests`.
    pub(super) fn value(&self, revision: Revision) -> Value {
        json!({ "method": self.method, "params": self.params(revision) })
    }

    /// An answer that has the shape such answers have.
    pub(super) fn valid(&self, answer: Value) -> Result<Value, Reply> {
        let fits = match self.needs {
            Need::Form | Need::Url => answer.get("action").is_some_and(Value::is_string),
            Need::Sampling => answer.get("content").is_some(),
            Need::Roots => answer.get("roots").is_some_and(Value::is_array),
        };
        if fits {
            return Ok(answer);
        }
        let message = format!("the answer `{}` does not fit its question", self.key);
        Err(Fault::new(INVALID_PARAMS, message).into())
    }
}

/// What a person filled in, or what they did instead.
pub(super) fn filled(answer: &Value, field: &str) -> String {
    match answer.pointer(&format!("/content/{field}")) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => said(answer),
    }
}

/// Action and content of an answer to an elicitation.
pub(super) fn said(answer: &Value) -> String {
    let action = answer.get("action").and_then(Value::as_str).unwrap_or_default();
    let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
    format!("action={action}, content={content}")
}

/// What a language model said.
pub(super) fn sampled(answer: &Value) -> String {
    let text = answer.pointer("/content/text").and_then(Value::as_str);
    text.map_or_else(|| answer.to_string(), ToOwned::to_owned)
}
