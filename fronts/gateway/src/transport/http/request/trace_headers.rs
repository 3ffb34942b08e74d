//! Moves the trace context from headers into the params, where servers expect it.

use std::borrow::Cow;

use capstan_hub::trace::{BAGGAGE, PARENT, STATE, is_parent, with_meta};
use capstan_wire::{Json, object};
use hyper::header::{HeaderMap, HeaderName};

static PARENT_HEADER: HeaderName = HeaderName::from_static(PARENT);
static STATE_HEADER: HeaderName = HeaderName::from_static(STATE);
static BAGGAGE_HEADER: HeaderName = HeaderName::from_static(BAGGAGE);

/// Maximum length of a value, in bytes: the limit of W3C Baggage.
const MAX: usize = 8192;

/// Returns the params of a request with the trace context of its headers.
///
/// A context in the params takes precedence.
pub(crate) fn adopt(headers: &HeaderMap, params: Option<Json>) -> Option<Json> {
    let is_traced = headers.contains_key(&PARENT_HEADER) || headers.contains_key(&BAGGAGE_HEADER);
    if !is_traced {
        return params;
    }
    params.map(|params| with_headers(headers, params))
}

fn with_headers(headers: &HeaderMap, params: Json) -> Json {
    let meta = object::get(&params, "_meta");
    let [parent, baggage] = match &meta {
        Some(meta) => object::peek(meta, [PARENT, BAGGAGE]).map(|found| found.is_some()),
        None => [false, false],
    };
    let mut members = Vec::new();
    let place = value(headers, &PARENT_HEADER).filter(|place| is_parent(place));
    if !parent && place.is_some() {
        members.push((PARENT, place));
        // Without a header it is removed, as it would belong to another parent.
        members.push((STATE, value(headers, &STATE_HEADER)));
    }
    let luggage = value(headers, &BAGGAGE_HEADER);
    if !baggage && luggage.is_some() {
        members.push((BAGGAGE, luggage));
    }
    if members.is_empty() {
        return params;
    }
    let members: Vec<(&str, Option<&str>)> =
        members.iter().map(|(key, value)| (*key, value.as_deref())).collect();
    with_meta(&params, &members)
}

/// The value of a header, joined from all of its lines.
fn value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let mut lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    let mut value = Cow::Borrowed(lines.next()?);
    for line in lines {
        let whole = value.to_mut();
        whole.push(',');
        whole.push_str(line);
    }
    Some(value).filter(|value| !value.is_empty() && value.len() <= MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const TWO: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], params: &str, expected: &str) {
        let mut given = HeaderMap::new();
        for (name, value) in headers {
            given.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let params = Json::parse(params.to_owned()).unwrap();
        let adopted = adopt(&given, Some(params)).unwrap();
        assert_eq!(adopted.as_str(), expected, "{headers:?}");
    }

    #[test]
    fn headers_are_passed_on_in_the_params() {
        let one = format!(r#"{{"name":"x","_meta":{{"traceparent":"{ONE}"}}}}"#);
        check(&[(PARENT, ONE)], r#"{"name":"x"}"#, &one);
        check(
            &[(PARENT, ONE), (STATE, "a=1"), (STATE, "b=2"), (BAGGAGE, "k=v")],
            r#"{"_meta":{"progressToken":1}}"#,
            &format!(
                r#"{{"_meta":{{"progressToken":1,"traceparent":"{ONE}","tracestate":"a=1,b=2","baggage":"k=v"}}}}"#
            ),
        );
        check(&[(BAGGAGE, "k=v")], "{}", r#"{"_meta":{"baggage":"k=v"}}"#);
    }

    #[test]
    fn what_the_params_say_counts() {
        let own = format!(r#"{{"_meta":{{"traceparent":"{TWO}","baggage":"k=v"}}}}"#);
        check(&[(PARENT, ONE), (STATE, "a=1"), (BAGGAGE, "l=w")], &own, &own);
    }

    #[test]
    fn what_cannot_be_read_is_not_passed_on() {
        let long = "x".repeat(MAX + 1);
        for headers in [
            &[][..],
            &[(PARENT, "x")],
            &[(PARENT, ""), (STATE, "a=1")],
            &[(STATE, "a=1")],
            &[(BAGGAGE, long.as_str())],
        ] {
            check(headers, r#"{ "name":"x" }"#, r#"{ "name":"x" }"#);
        }
        check(&[(PARENT, ONE)], "[1]", "[1]");
        check(&[(PARENT, ONE)], r#"{"_meta":7}"#, r#"{"_meta":7}"#);
        assert!(adopt(&HeaderMap::new(), None).is_none());
    }
}
