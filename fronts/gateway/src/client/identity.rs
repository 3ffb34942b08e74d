//! Self-declared identity: the name of a client, and the agent that makes a call.
//!
//! **Invariant:** no decision depends on it. It is cleaned, shortened, and recorded.

use std::sync::Arc;

use capstan_model::Caller;
use capstan_model::caller::label;
use capstan_wire::{Json, object};

use crate::client::ClientContext;
use crate::protocol::request_meta::RequestMeta;

/// The name of a client, as `clientInfo` has it.
pub(crate) fn client_name(info: Option<&Json>) -> Option<String> {
    label(&object::get_string(info?, "name")?)
}

/// Returns the context with the name and version that its client declares.
pub(crate) fn named(context: ClientContext, info: Option<&Json>) -> ClientContext {
    let Some(name) = client_name(info) else { return context };
    let version = info.and_then(|info| object::get_string(info, "version"));
    let client = match version.as_deref().and_then(label) {
        Some(version) => label(&format!("{name}/{version}")),
        None => Some(name),
    };
    if context.caller.client == client {
        return context;
    }
    let caller = Caller { client, ..Caller::clone(&context.caller) };
    ClientContext { caller: Arc::new(caller), ..context }
}

/// The caller of one request, with the agent that its params name.
pub(crate) fn caller_of(caller: &Arc<Caller>, params: &Json) -> Arc<Caller> {
    caller_in(caller, RequestMeta::of(params).as_ref())
}

/// The caller with the agent that this `_meta` names.
pub(crate) fn caller_in(caller: &Arc<Caller>, meta: Option<&RequestMeta>) -> Arc<Caller> {
    match meta.and_then(|meta| meta.agent.clone()) {
        None => Arc::clone(caller),
        agent @ Some(_) => Arc::new(Caller { caller_id: agent, ..Caller::clone(caller) }),
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::Front;

    use super::*;
    use crate::client::View;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn c52_a_call_says_which_agent_makes_it_and_nothing_else_changes() {
        let caller = Arc::new(Caller::named("ann", Front::Gateway));
        for (params, expected) in [
            (r#"{"_meta":{"caller_id":"planner"}}"#, Some("planner")),
            (r#"{"_meta":{"capstan/caller_id":"coder","caller_id":"planner"}}"#, Some("coder")),
            (r#"{"_meta":{"capstan/caller_id":" \u001b[1m","caller_id":"planner"}}"#, Some("[1m")),
            (r#"{"_meta":{"capstan/caller_id":7,"caller_id":"planner"}}"#, Some("planner")),
            (r#"{"_meta":{"caller_id":{"x":1}}}"#, None),
            (r#"{"_meta":{"caller_id":""}}"#, None),
            (r#"{"caller_id":"planner"}"#, None),
            (r#"{"_meta":7}"#, None),
            ("{}", None),
        ] {
            let found = caller_of(&caller, &json(params));
            assert_eq!(found.caller_id.as_deref(), expected, "{params}");
            assert_eq!(Caller { caller_id: None, ..Caller::clone(&found) }, *caller, "{params}");
        }
        let long = json(&format!(r#"{{"_meta":{{"caller_id":"{}"}}}}"#, "x".repeat(100_000)));
        assert_eq!(caller_of(&caller, &long).caller_id.as_ref().map(String::len), Some(128));
    }

    #[test]
    fn a_client_is_known_by_its_name_and_version() {
        let named_by = |info: &str| {
            let caller = Arc::new(Caller::named("ann", Front::Gateway));
            named(ClientContext::new(caller, None, View::All), Some(&json(info)))
                .caller
                .client
                .clone()
        };
        for (info, expected) in [
            (r#"{"name":"editor","version":"1.2"}"#, Some("editor/1.2")),
            (r#"{"name":"editor"}"#, Some("editor")),
            (r#"{"name":"e\nd","version":""}"#, Some("ed")),
            (r#"{"name":"","version":"1"}"#, None),
            (r#"{"name":7}"#, None),
            ("{}", None),
        ] {
            assert_eq!(named_by(info).as_deref(), expected, "{info}");
        }
    }
}
