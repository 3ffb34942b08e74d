//! JSON-RPC errors of failed requests.

use capstan_hub::ports::Unanswered;
use capstan_model::rpc_code::{
    HEADER_MISMATCH, INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND,
};
use capstan_model::{CallError, ErrorCode, Kind};
use capstan_wire::{Json, compose, object};

use crate::protocol::era::Era;

/// Error message for new requests while the gateway shuts down.
pub(crate) const SHUTTING_DOWN: &str = "the gateway is shutting down; try again later";

/// A JSON-RPC error.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    code: i64,
    message: String,
    data: Option<Json>,
    /// The complete error object, if a server composed it.
    whole: Option<Json>,
}

// === impl Fault ===

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, whole: None }
    }

    pub(crate) fn with_data(self, data: Json) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("unknown method `{method}`"))
    }

    /// The item does not exist, or the caller must not learn that it exists.
    pub(crate) fn no_such(kind: Kind, name: &str, era: Era) -> Self {
        let class = compose::string(ErrorCode::NotFound.as_str());
        match kind {
            Kind::Tool | Kind::Prompt => {
                let message = format!("Unknown {}: {name}", kind.as_str());
                Self::invalid(message).with_data(compose::object(&[("code", &class)]))
            }
            Kind::Resource => {
                let code = match era {
                    Era::Legacy => RESOURCE_NOT_FOUND,
                    Era::Modern => INVALID_PARAMS,
                };
                let uri = compose::string(name);
                let data = compose::object(&[("uri", &uri), ("code", &class)]);
                Self::new(code, "Resource not found").with_data(data)
            }
        }
    }

    pub(crate) fn code(&self) -> i64 {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn to_json(&self) -> Json {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let code = Json::from_value(&self.code).unwrap_or_else(|_| Json::empty_object());
        let message = compose::string(&self.message);
        let mut members = vec![("code", &code), ("message", &message)];
        members.extend(self.data.as_ref().map(|data| ("data", data)));
        compose::object(&members)
    }

    /// The error for a failed call; [`tool_error`] handles failures of tools first.
    ///
    /// `name` is the client's name for the item.
    pub(crate) fn of_call(error: &CallError, kind: Kind, name: &str, era: Era) -> Self {
        match error {
            // A caller without access must not learn that the item exists.
            CallError::Unknown { .. } | CallError::Denied { .. } | CallError::Hidden { .. } => {
                Self::no_such(kind, name, era)
            }
            CallError::InvalidArguments { problem, .. } => Self::invalid(problem.clone()),
            CallError::HeaderMismatch { .. } => Self::new(HEADER_MISMATCH, error.to_string()),
            CallError::Server { code, message, whole, is_modern, .. } => {
                let own = Self::of_server(*code, message, whole.as_deref());
                let theirs = if *is_modern { Era::Modern } else { Era::Legacy };
                let own = if theirs == era { own } else { own.for_era(kind, era) };
                own.about_resource(kind, name)
            }
            CallError::FlowBlocked { .. }
            | CallError::Refused { .. }
            | CallError::NotApproved { .. }
            | CallError::QuotaExceeded { .. }
            | CallError::RateExceeded { .. }
            | CallError::DefinitionChanged { .. }
            | CallError::Unrecordable { .. }
            | CallError::Unrecorded { .. }
            | CallError::Unreachable { .. }
            | CallError::AddressBlocked { .. }
            | CallError::LedElsewhere { .. }
            | CallError::OutcomeUnknown { .. }
            | CallError::Stopped
            | CallError::TimedOut { .. }
            | CallError::NeedsLogin { .. }
            | CallError::NeedsSignIn { .. }
            | CallError::Unauthorized { .. }
            | CallError::RateLimited { .. }
            | CallError::Status { .. }
            | CallError::AnswerTooLarge { .. }
            | CallError::AnswerBlocked { .. }
            | CallError::Protocol { .. } => {
                Self::new(INTERNAL, error.to_string()).with_data(details(error))
            }
        }
    }

    /// The error for a failed request about tools, which is the same in both eras.
    pub(crate) fn of_tool(error: &CallError, name: &str) -> Self {
        Self::of_call(error, Kind::Tool, name, Era::Legacy)
    }

    /// The error of a server, unchanged.
    pub(crate) fn of_server(code: i64, message: &str, whole: Option<&str>) -> Self {
        let whole = whole.and_then(|whole| Json::parse(whole.to_owned()).ok());
        Self { code, message: message.to_owned(), data: None, whole }
    }

    /// Converts "resource not found" of a server of the other era, which has another code there.
    fn for_era(self, kind: Kind, era: Era) -> Self {
        match (kind, self.code, era) {
            (Kind::Resource, RESOURCE_NOT_FOUND, Era::Modern) => self.with_code(INVALID_PARAMS),
            (Kind::Resource, INVALID_PARAMS, Era::Legacy) if self.names_a_resource() => {
                self.with_code(RESOURCE_NOT_FOUND)
            }
            _ => self,
        }
    }

    /// The error under another code. Text and data stay as the server wrote them.
    fn with_code(self, code: i64) -> Self {
        let number = Json::from_value(&code).ok();
        let whole = self.whole.as_ref().zip(number.as_ref());
        let whole = whole.and_then(|(whole, code)| object::with_member(whole, "code", code).ok());
        Self { code, whole, ..self }
    }

    /// The error of a server about a resource, with the URI that the client knows it by.
    fn about_resource(self, kind: Kind, name: &str) -> Self {
        let data = self.whole.as_ref().and_then(|whole| object::get(whole, "data"));
        let uri = data.as_ref().and_then(|data| object::get_string(data, "uri"));
        let (Kind::Resource, Some(whole), Some(data), Some(uri)) = (kind, &self.whole, data, uri)
        else {
            return self;
        };
        // The client named the resource in a form that ends with the server's own.
        if uri == name || !name.ends_with(uri.split_once("://").map_or(uri.as_str(), |(_, it)| it))
        {
            return self;
        }
        let renamed = object::with_member(&data, "uri", &compose::string(name))
            .and_then(|data| object::with_member(whole, "data", &data));
        Self { whole: renamed.ok(), ..self }
    }

    /// True if the error names a resource, as only "resource not found" of a modern server does.
    fn names_a_resource(&self) -> bool {
        let data = self.whole.as_ref().and_then(|whole| object::get(whole, "data"));
        data.is_some_and(|data| object::get(&data, "uri").is_some())
    }
}

impl From<Unanswered> for Fault {
    fn from(unanswered: Unanswered) -> Self {
        Self::new(unanswered.code, unanswered.message)
    }
}

/// The failure of a tool as a result, so that a model can read it.
///
/// `None` for failures that have an error in the protocol.
pub(crate) fn tool_error(error: &CallError) -> Option<Json> {
    let is_protocols_own = matches!(
        error,
        CallError::Unknown { .. }
            | CallError::Denied { .. }
            | CallError::InvalidArguments { .. }
            | CallError::HeaderMismatch { .. }
            | CallError::Server { .. }
    );
    if is_protocols_own {
        return None;
    }
    let mut text = error.to_string();
    if let Some(hint) = error.hint() {
        text = format!("{text}; {hint}");
    }
    let text =
        compose::object(&[("type", &compose::string("text")), ("text", &compose::string(&text))]);
    let meta = compose::object(&[("capstan/error", &details(error))]);
    let truth = Json::from_value(&true).ok()?;
    let content = compose::array(&[text]);
    Some(compose::object(&[("content", &content), ("isError", &truth), ("_meta", &meta)]))
}

/// Machine-readable details of a failure.
pub(crate) fn details(error: &CallError) -> Json {
    let code = Json::from_value(&error.code()).unwrap_or_else(|_| Json::empty_object());
    let retryable = Json::from_value(&error.retryable()).unwrap_or_else(|_| Json::empty_object());
    let hint = compose::string(&error.hint().unwrap_or_default());
    compose::object(&[("code", &code), ("retryable", &retryable), ("hint", &hint)])
}
