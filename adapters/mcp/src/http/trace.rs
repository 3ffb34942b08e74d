//! Repeats the trace context of the params in headers, for intermediaries that do not read bodies.

use capstan_http::header::{HeaderMap, HeaderName, HeaderValue};
use capstan_hub::trace::{BAGGAGE, PARENT, STATE, is_parent};
use capstan_wire::{Json, object};

/// The longest value that is repeated, in bytes.
const MAX: usize = 8192;

/// Adds the trace headers.
pub(super) fn add(headers: &mut HeaderMap, params: &Json) {
    let Some(meta) = object::get(params, "_meta") else { return };
    let [parent, state, baggage] = object::peek(&meta, [PARENT, STATE, BAGGAGE]);
    let parent = parent.and_then(|parent| parent.read::<String>().ok());
    if let Some(parent) = parent.filter(|parent| is_parent(parent)) {
        put(headers, PARENT, &parent);
        if let Some(state) = state.and_then(|state| state.read::<String>().ok()) {
            put(headers, STATE, &state);
        }
    }
    if let Some(baggage) = baggage.and_then(|baggage| baggage.read::<String>().ok()) {
        put(headers, BAGGAGE, &baggage);
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if plain
        && !value.is_empty()
        && value.len() <= MAX
        && let Ok(value) = HeaderValue::from_str(value)
    {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[track_caller]
    fn check(params: &str, expected: &[(&str, &str)]) {
        let mut headers = HeaderMap::new();
        add(&mut headers, &Json::parse(params.to_owned()).unwrap());
        let found: Vec<(&str, &str)> =
            headers.iter().map(|(k, v)| (k.as_str(), v.to_str().unwrap())).collect();
        assert_eq!(found, expected, "{params}");
    }

    #[test]
    fn what_the_params_say_of_a_trace_is_repeated_in_headers() {
        let all = format!(
            r#"{{"_meta":{{"traceparent":"{PLACE}","tracestate":"a=b","baggage":"k=v"}}}}"#
        );
        check(&all, &[(PARENT, PLACE), (STATE, "a=b"), (BAGGAGE, "k=v")]);
        check(r#"{"_meta":{"baggage":"k=v"}}"#, &[(BAGGAGE, "k=v")]);
    }

    #[test]
    fn nothing_that_could_become_another_header_is_repeated() {
        let line = format!(r#"{{"_meta":{{"traceparent":"{PLACE}","tracestate":"a\r\nb: c"}}}}"#);
        check(&line, &[(PARENT, PLACE)]);
        check(r#"{"_meta":{"traceparent":"x","tracestate":"a=b"}}"#, &[]);
        check(r#"{"_meta":{"baggage":"\u00fc"}}"#, &[]);
        check(r#"{"_meta":{"baggage":7}}"#, &[]);
        check(r#"{"arguments":{"traceparent":"x"}}"#, &[]);
        let long = format!(r#"{{"_meta":{{"baggage":"{}"}}}}"#, "x".repeat(MAX + 1));
        check(&long, &[]);
    }
}
