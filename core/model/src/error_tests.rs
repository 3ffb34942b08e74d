//! Tests of error classes, messages and retries.

use super::*;

#[test]
fn the_codes_of_json_rpc_get_their_class() {
    let classes = [
        (-32602, ErrorCode::InvalidInput),
        (-32601, ErrorCode::NotFound),
        (-32002, ErrorCode::NotFound),
        (-32603, ErrorCode::ServerError),
        (7, ErrorCode::ServerError),
    ];
    for (code, expected) in classes {
        assert_eq!(code_of_json_rpc(code), expected, "{code}");
    }
}

#[test]
fn an_http_status_gets_its_class_and_only_one_is_worth_a_retry() {
    let classes = [
        (307, ErrorCode::ServerError, false),
        (400, ErrorCode::InvalidInput, false),
        (404, ErrorCode::NotFound, false),
        (410, ErrorCode::NotFound, false),
        (500, ErrorCode::ServerError, false),
        (502, ErrorCode::Transient, false),
        (503, ErrorCode::Transient, true),
    ];
    for (status, code, retryable) in classes {
        let server: ServerName = "s".parse().unwrap();
        let error = CallError::Status { server, status, reason: String::new() };
        assert_eq!((error.code(), error.retryable()), (code, retryable), "{status}");
    }
}

#[test]
fn a_call_that_may_have_run_is_never_called_retryable() {
    let server: ServerName = "s".parse().unwrap();
    let limit = Duration::from_secs(1);
    let error = |may_have_run| CallError::TimedOut { server: server.clone(), limit, may_have_run };
    assert!(error(false).retryable());
    assert!(!error(true).retryable());
    let died = CallError::OutcomeUnknown { server: server.clone(), reason: String::new() };
    assert!(!died.retryable());
}

#[test]
fn a_rate_frees_itself_and_a_call_that_cannot_be_written_down_says_whether_it_ran() {
    let reason = || "no space left".to_owned();
    let cases = [
        (
            CallError::RateExceeded {
                rate: "2 calls in 60s for this caller".to_owned(),
                reason: Some("be kind".to_owned()),
                free_in: Duration::from_millis(2001),
            },
            "the rate of 2 calls in 60s for this caller is used up: be kind",
            (ErrorCode::QuotaBlocked, true),
        ),
        (
            CallError::Unrecordable { reason: reason() },
            "the call was refused, because the audit log cannot be written: no space left",
            (ErrorCode::Transient, true),
        ),
        (
            CallError::Unrecorded { reason: reason() },
            "the call was made but could not be written to the audit log: no space left",
            (ErrorCode::OutcomeUnknown, false),
        ),
    ];
    for (error, text, class) in cases {
        assert_eq!(error.to_string(), text);
        assert_eq!((error.code(), error.retryable()), class, "{text}");
        assert!(error.hint().is_some(), "{text}");
    }
}
