//! Moves the agent's name from the `X-Caller-Id` header into the params of a call.

use capstan_hub::trace::with_meta;
use capstan_model::caller::label;
use capstan_wire::{Json, object};
use hyper::header::{HeaderMap, HeaderName};

use crate::protocol::request_meta::CALLER_ID;

static HEADER: HeaderName = HeaderName::from_static("x-caller-id");

/// Returns the params of a request with the agent of its headers.
///
/// An agent in the params takes precedence.
pub(crate) fn adopt(headers: &HeaderMap, params: Option<Json>) -> Option<Json> {
    let Some(value) = headers.get(&HEADER) else { return params };
    let said = value.to_str().ok().and_then(label);
    match (said, params) {
        (Some(said), Some(params)) if !says(&params) => {
            let [key, _] = CALLER_ID;
            Some(with_meta(&params, &[(key, Some(&said))]))
        }
        (_, params) => params,
    }
}

fn says(params: &Json) -> bool {
    let meta = object::get(params, "_meta");
    meta.is_some_and(|meta| object::peek(&meta, CALLER_ID).iter().any(Option::is_some))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_counts_where_the_params_say_nothing() {
        for (header, params, expected) in [
            (
                "planner",
                r#"{"name":"x"}"#,
                r#"{"name":"x","_meta":{"capstan/caller_id":"planner"}}"#,
            ),
            (
                "planner",
                r#"{"_meta":{"a":1}}"#,
                r#"{"_meta":{"a":1,"capstan/caller_id":"planner"}}"#,
            ),
            ("planner", r#"{"_meta":{"caller_id":"own"}}"#, r#"{"_meta":{"caller_id":"own"}}"#),
            ("  ", r#"{"name":"x"}"#, r#"{"name":"x"}"#),
            ("planner", "[1]", "[1]"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(&HEADER, header.parse().unwrap());
            let params = Json::parse(params.to_owned()).unwrap();
            assert_eq!(adopt(&headers, Some(params)).unwrap().as_str(), expected);
        }
        let mut headers = HeaderMap::new();
        headers.insert(&HEADER, b"\xff\xfe".as_slice().try_into().unwrap());
        let params = Json::parse("{}".to_owned()).unwrap();
        assert_eq!(adopt(&headers, Some(params)).unwrap().as_str(), "{}");
        assert!(adopt(&headers, None).is_none());
    }
}
