//! Translates error answers of providers.

use std::time::Duration;

use capstan_http::StatusCode;
use capstan_http::header::{DATE, HeaderMap, RETRY_AFTER};
use capstan_hub::ports::ChatError;
use jiff::fmt::rfc2822::DateTimeParser;
use serde_json::Value;

/// The longest message of a provider that is passed on, in bytes.
const MAX_MESSAGE: usize = 600;

/// Phrases by which providers say that a conversation is too long.
const TOO_LONG: [&str; 7] = [
    "prompt is too long",
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "exceeds the available context size",
];

/// The error for an answer with an error status.
pub(crate) fn of_status(
    model: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
) -> ChatError {
    let model = model.to_owned();
    let reason = message(body, status);
    let is_invalid_key = || {
        let text = body.to_ascii_lowercase();
        text.contains("api_key_invalid") || text.contains("api key not valid")
    };
    match status.as_u16() {
        401 | 403 => ChatError::Auth { model, reason },
        // Gemini reports a wrong key as an invalid argument.
        400 if is_invalid_key() => ChatError::Auth { model, reason },
        400 | 413 | 422 if is_too_long(body) || status == 413 => {
            ChatError::TooLong { model, reason }
        }
        404 => ChatError::NotFound { model, reason },
        429 => ChatError::RateLimited { model, reason, wait: wait(headers) },
        408 | 409 | 500.. => ChatError::Failed { model, status: status.as_u16(), reason },
        _ => ChatError::Refused { model, reason },
    }
}

/// The error that a provider reports within a stream.
pub(crate) fn of_event(model: &str, kind: &str, message: &str) -> ChatError {
    let model = model.to_owned();
    let reason = short(if message.is_empty() { kind } else { message });
    match kind {
        "overloaded_error" | "UNAVAILABLE" | "503" | "529" => {
            ChatError::Failed { model, status: 503, reason }
        }
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" | "429" => {
            ChatError::RateLimited { model, reason, wait: None }
        }
        "authentication_error" | "permission_error" | "UNAUTHENTICATED" | "PERMISSION_DENIED" => {
            ChatError::Auth { model, reason }
        }
        "api_error" | "server_error" | "INTERNAL" | "500" => {
            ChatError::Failed { model, status: 500, reason }
        }
        _ if is_too_long(kind) || is_too_long(message) => ChatError::TooLong { model, reason },
        _ => ChatError::Refused { model, reason },
    }
}

/// The wait that the provider asks for: milliseconds, seconds or a date.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let after = text(RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // Compared with the time of the answer, so that a wrong clock here does not matter.
    let date = |text: &str| DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok();
    let seconds = date(after)?.duration_since(date(text(DATE.as_str())?)?).as_secs();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn is_too_long(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    TOO_LONG.iter().any(|phrase| text.contains(phrase))
}

/// The provider's message in an error body, in any of the usual forms.
fn message(body: &str, status: StatusCode) -> String {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    // Gemini wraps the error of a stream into a list.
    let parsed = parsed.as_ref().map(|value| value.get(0).unwrap_or(value));
    let found = parsed.and_then(|value| {
        let places = ["/error/message", "/message", "/error", "/detail"];
        places.iter().find_map(|place| value.pointer(place).and_then(Value::as_str))
    });
    let text = found.unwrap_or(body).trim();
    if text.is_empty() {
        let reason = status.canonical_reason().unwrap_or("no reason given");
        return format!("status {} ({reason})", status.as_u16());
    }
    short(text)
}

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_MESSAGE);
    let cut = text.get(..end).unwrap_or_default();
    if end < text.len() { format!("{cut}…") } else { cut.to_owned() }
}

#[cfg(test)]
mod tests {
    use capstan_http::header::HeaderValue;

    use super::*;

    #[test]
    fn each_status_is_the_error_that_a_reader_can_act_on() {
        let cases: &[(u16, &str, &str)] = &[
            (401, r#"{"error":{"message":"invalid x-api-key"}}"#, "does not accept the API key"),
            (
                400,
                r#"{"error":{"status":"INVALID_ARGUMENT","message":"API key not valid."}}"#,
                "does not accept the API key",
            ),
            (400, r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#, "too long"),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#, "too long"),
            (413, "", "too long"),
            (400, r#"{"error":{"message":"bad tool"}}"#, "refuses the request: bad tool"),
            (
                404,
                r#"[{"error":{"message":"no model"}}]"#,
                "does not exist at its endpoint: no model",
            ),
            (429, "slow down", "limits the rate of requests: slow down"),
            (503, "", "failed with status 503"),
            (529, r#"{"error":{"message":"Overloaded"}}"#, "failed with status 529: Overloaded"),
        ];
        for (status, body, expected) in cases {
            let status = StatusCode::from_u16(*status).unwrap();
            let error = of_status("p/m", status, &HeaderMap::new(), body).to_string();
            assert!(error.contains(expected), "{status} {body}: {error}");
        }
    }

    #[test]
    fn the_wait_is_read_in_all_three_forms() {
        let given = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            wait(&headers)
        };
        assert_eq!(given("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(given("retry-after", "1.5"), Some(Duration::from_millis(1500)));
        let dated = |after: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, HeaderValue::from_static("Wed, 21 Oct 2015 07:28:00 GMT"));
            headers.insert(RETRY_AFTER, HeaderValue::from_static(after));
            wait(&headers)
        };
        assert_eq!(dated("Wed, 21 Oct 2015 07:28:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(dated("Wed, 21 Oct 2015 07:27:30 GMT"), Some(Duration::ZERO));
        assert_eq!(given("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), None);
        for odd in ["-1", "soon", "", "NaN", "1e99"] {
            assert_eq!(given("retry-after", odd), None, "{odd}");
        }
    }

    #[test]
    fn a_message_of_any_length_is_short() {
        let long = "ü".repeat(5000);
        let error = of_event("p/m", "odd", &long).to_string();
        assert!(error.len() < MAX_MESSAGE + 100 && error.ends_with('…'));
    }
}
