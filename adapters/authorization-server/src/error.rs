//! Errors of the endpoints, in the form of RFC 6749.

use capstan_http::StatusCode;
use capstan_http::header::{HeaderValue, RETRY_AFTER};
use capstan_hub::ports::StoreError;
use serde_json::json;

use crate::http::Response;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OauthError {
    pub(crate) status: StatusCode,
    /// The error code of the protocol.
    pub(crate) code: &'static str,
    /// The description, for developers of clients.
    pub(crate) description: String,
}

// === impl OauthError ===

impl OauthError {
    pub(crate) fn new(code: &'static str, description: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, description: description.into() }
    }

    pub(crate) fn invalid_request(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }

    /// One error for codes and tokens that are unknown, used, expired or revoked, so that the
    /// answer reveals nothing about them.
    pub(crate) fn invalid_grant() -> Self {
        Self::new("invalid_grant", "the code or token is not valid; authorize again")
    }

    pub(crate) fn invalid_client() -> Self {
        Self::new("invalid_client", "the client is not known here; register it again")
    }

    pub(crate) fn too_many() -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: "temporarily_unavailable",
            description: "too many attempts; try again in a minute".to_owned(),
        }
    }

    pub(crate) fn response(&self) -> Response {
        let body = json!({ "error": self.code, "error_description": self.description });
        let response = Response::json(self.status, &body);
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            return response.with(RETRY_AFTER, HeaderValue::from_static("60"));
        }
        response
    }
}

impl From<StoreError> for OauthError {
    fn from(error: StoreError) -> Self {
        let cause = error.cause.as_ref().map(ToString::to_string).unwrap_or_default();
        tracing::error!(error = %error, cause, "the authorization server cannot use its store");
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "temporarily_unavailable",
            description: "the server cannot use its store; see the gateway's log".to_owned(),
        }
    }
}
