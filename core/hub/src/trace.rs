//! Distributed tracing: the port for tracers, and the trace context in requests.

use capstan_model::{CallError, Caller, ErrorCode, Kind, ServerName};
use capstan_wire::{Json, compose, object};

/// The member of `_meta` that names the trace and the parent span (W3C Trace Context).
pub const PARENT: &str = "traceparent";

/// The member of `_meta` for vendor-specific trace data (W3C Trace Context).
pub const STATE: &str = "tracestate";

/// The member of `_meta` for application-defined properties (W3C Baggage).
pub const BAGGAGE: &str = "baggage";

/// The length of a `traceparent` of version 00.
const PARENT_LENGTH: usize = 55;

/// Receives the steps of calls.
pub trait Tracer: Send + Sync {
    /// Begins a span for a step of a call. Dropping the span without ending it means that the step
    /// was abandoned.
    fn begin(&self, step: Step<'_>) -> Box<dyn Span>;
}

/// A step that is being traced.
pub trait Span: Send {
    /// Sets the server, once it is found.
    fn found(&mut self, server: &ServerName);

    /// Returns the context for the next program; `None` to forward the received one unchanged.
    fn context(&self) -> Option<TraceContext>;

    /// Ends the step.
    fn end(self: Box<Self>, ending: Ending);
}

/// A step of a call as a tracer sees it, without arguments and results.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The side of the call that this step is on.
    pub side: Side,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The item, by its name on this side.
    pub item: &'a str,
    /// The server, if it is known already.
    pub server: Option<&'a ServerName>,
    /// The caller, if a client asks.
    pub caller: Option<&'a Caller>,
    /// The protocol revision in use, if it is known.
    pub protocol: Option<&'a str>,
    /// The context that was received.
    pub context: Option<&'a TraceContext>,
}

/// The side of a call that a step is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A client sends a request to the hub.
    Asked,
    /// The hub sends a request to a server.
    Asking,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a result.
    Answered,
    /// With a result in which the tool reports a failure.
    ToolError,
    /// With an error.
    Failed {
        /// The error code.
        code: ErrorCode,
        /// The server's JSON-RPC code, if it sent one.
        json_rpc: Option<i64>,
    },
}

/// A position in a trace, as programs exchange it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`: the trace, the span, and whether it is sampled.
    pub parent: String,
    /// `tracestate`; empty if there is none.
    pub state: String,
}

/// True if this is a valid `traceparent`.
pub fn is_parent(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut hex = |length: usize| {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        parts.next().filter(|part| part.len() == length && part.bytes().all(digit))
    };
    let (version, trace, step, flags) = (hex(2), hex(32), hex(16), hex(2));
    let names = |part: Option<&str>| part.is_some_and(|part| part.bytes().any(|b| b != b'0'));
    let version_fits = match version {
        Some("00") => text.len() == PARENT_LENGTH,
        // Later versions may append more fields.
        Some(later) => later != "ff",
        None => false,
    };
    version_fits && names(trace) && names(step) && flags.is_some()
}

/// Sets these members in `_meta` of the params, and removes those without a value.
///
/// Returns the params unchanged if they or their `_meta` are not an object.
pub fn with_meta(params: &Json, members: &[(&str, Option<&str>)]) -> Json {
    let meta = object::get(params, "_meta").unwrap_or_else(Json::empty_object);
    let set = |meta: Json, (key, value): &(&str, Option<&str>)| match value {
        Some(value) => object::with_member(&meta, key, &compose::string(value)),
        None => object::without_member(&meta, key),
    };
    let meta = members.iter().try_fold(meta, set);
    let params_with = meta.and_then(|meta| object::with_member(params, "_meta", &meta));
    params_with.unwrap_or_else(|_| params.clone())
}

// === impl Ending ===

impl Ending {
    /// Returns the ending of a call that failed with this error.
    pub fn failed(error: &CallError) -> Self {
        let json_rpc = if let CallError::Server { code, .. } = error { Some(*code) } else { None };
        Self::Failed { code: error.code(), json_rpc }
    }
}

// === impl TraceContext ===

impl TraceContext {
    /// Reads the context from the params of a request; `None` if there is no valid one.
    pub fn of(params: &Json) -> Option<Self> {
        let meta = object::get(params, "_meta")?;
        let parent = object::get_string(&meta, PARENT).filter(|parent| is_parent(parent))?;
        let state = object::get_string(&meta, STATE).unwrap_or_default();
        Some(Self { parent, state })
    }

    /// Returns the params with this context.
    pub fn put(&self, params: &Json) -> Json {
        let state = Some(self.state.as_str()).filter(|state| !state.is_empty());
        with_meta(params, &[(PARENT, Some(&self.parent)), (STATE, state)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn only_what_other_programs_can_read_is_a_place_in_a_trace() {
        let later = PLACE.replacen("00", "cc", 1);
        let more = format!("{later}-more");
        for good in [PLACE, &later, &more] {
            assert!(is_parent(good), "{good}");
        }
        let bad = [
            String::new(),
            PLACE.to_uppercase(),
            format!("{PLACE}-more"),
            PLACE.replacen("00", "ff", 1),
            PLACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            PLACE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            PLACE.replace("00f067aa0ba902b7", "00f067aa0ba902b"),
            PLACE.replace('-', "_"),
            PLACE.replace("01", "0ü"),
        ];
        for bad in bad {
            assert!(!is_parent(&bad), "{bad}");
        }
    }

    #[test]
    fn a_place_in_a_trace_travels_in_the_params_beside_all_else() {
        let params = json(r#"{"name":"x","arguments":{"a":1.00}}"#);
        assert_eq!(TraceContext::of(&params), None);
        let context = TraceContext { parent: PLACE.to_owned(), state: "a=b".to_owned() };
        let told = context.put(&params);
        assert_eq!(
            told.as_str(),
            format!(
                r#"{{"name":"x","arguments":{{"a":1.00}},"_meta":{{"traceparent":"{PLACE}","tracestate":"a=b"}}}}"#
            )
        );
        assert_eq!(TraceContext::of(&told), Some(context.clone()));
        let next = TraceContext { state: String::new(), ..context };
        assert_eq!(TraceContext::of(&next.put(&told)), Some(next));
    }

    #[test]
    fn what_is_no_place_in_a_trace_is_not_read_and_odd_params_are_left_alone() {
        for odd in [
            r#"{"_meta":{"traceparent":"x"}}"#,
            r#"{"_meta":{"traceparent":7}}"#,
            r#"{"_meta":"traceparent"}"#,
            r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#,
            r#"["traceparent"]"#,
        ] {
            assert_eq!(TraceContext::of(&json(odd)), None, "{odd}");
        }
        let context = TraceContext { parent: PLACE.to_owned(), state: String::new() };
        for odd in [r#"{"_meta":7}"#, "[1]"] {
            assert_eq!(context.put(&json(odd)).as_str(), odd);
        }
    }
}
