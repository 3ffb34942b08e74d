//! The metadata of the server, RFC 8414.

use capstan_http::StatusCode;
use capstan_http::header::{CACHE_CONTROL, HeaderValue};
use serde_json::{Value, json};

use crate::http::{Endpoint, Response};
use crate::settings::Checked;

/// The document. Its addresses come from the configuration and never from a request.
pub(crate) fn response(settings: &Checked) -> Response {
    public(&document(settings))
}

/// A JSON document that may be cached for a short time.
pub(crate) fn public(document: &Value) -> Response {
    Response::json(StatusCode::OK, document)
        .with(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"))
}

fn document(settings: &Checked) -> Value {
    let at = |endpoint: Endpoint| format!("{}{}", settings.issuer, endpoint.path());
    json!({
        "issuer": settings.issuer,
        "authorization_endpoint": at(Endpoint::Authorize),
        "token_endpoint": at(Endpoint::Token),
        "registration_endpoint": at(Endpoint::Register),
        "revocation_endpoint": at(Endpoint::Revoke),
        "introspection_endpoint": at(Endpoint::Introspect),
        "jwks_uri": at(Endpoint::Keys),
        "scopes_supported": settings.scopes,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "introspection_endpoint_auth_methods_supported": ["bearer"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
    })
}
