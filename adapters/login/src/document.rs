//! Our metadata document (CIMD): a client ID that is an address, where authorization servers read
//! who we are instead of registering us.
//!
//! A gateway with a public address publishes it; [`serves`] checks that before a login relies on it.

use capstan_http::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::debug;

use crate::callback::PATH;
use crate::web::Web;

const OUR_DOCUMENT: &str = "our metadata document";

#[derive(Deserialize)]
struct Published {
    client_id: String,
    #[serde(default)]
    redirect_uris: Vec<String>,
}

/// The document for this address. `callbacks` are redirect addresses with fixed ports; those with
/// other ports are covered by one without a port (RFC 8252, 7.3).
pub fn client_document(address: &str, callbacks: &[String]) -> Value {
    let mut redirects = vec![format!("http://127.0.0.1{PATH}")];
    for callback in callbacks {
        if !redirects.contains(callback) {
            redirects.push(callback.clone());
        }
    }
    json!({
        "client_id": address,
        "client_name": "Capstan",
        "application_type": "native",
        "redirect_uris": redirects,
        "response_types": ["code"],
        // Some authorization servers refuse a document with a grant that they do not know.
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    })
}

/// The redirect address for a fixed port.
pub fn callback_at(port: u16) -> String {
    format!("http://127.0.0.1:{port}{PATH}")
}

/// True if the document is published at this address and lists the redirect address, so that an
/// authorization server can use it.
pub(crate) async fn serves(web: &Web, address: &str, redirect_uri: &str) -> bool {
    let fetched = match Web::configured(OUR_DOCUMENT, address) {
        Ok(from) => web.fetch::<Published>(&from).await,
        Err(error) => Err(error),
    };
    match fetched {
        Ok(Some(document)) => {
            document.client_id == address && lists(&document.redirect_uris, redirect_uri)
        }
        Ok(None) => false,
        Err(error) => {
            debug!(%error, "the metadata document is not used");
            false
        }
    }
}

/// True if the redirect address is listed, or, on this machine, would be without its port.
fn lists(listed: &[String], uri: &str) -> bool {
    let without_port = |uri: &str| {
        let mut uri = Url::parse(uri).ok()?;
        uri.set_port(None).ok()?;
        (uri.host_str() == Some("127.0.0.1")).then(|| uri.to_string())
    };
    listed.iter().any(|one| one == uri)
        || without_port(uri).is_some_and(|uri| listed.contains(&uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_of_this_machine_is_covered_and_no_other_address() {
        let own = callback_at(4321);
        let document = client_document("https://h.example/oauth/client.json", &[own.clone(), own]);
        let document: Published = serde_json::from_value(document).unwrap();
        assert_eq!(document.redirect_uris.len(), 2, "each is listed once");
        for (uri, expected) in [
            ("http://127.0.0.1:4321/callback", true),
            ("http://127.0.0.1:50000/callback", true),
            ("http://127.0.0.1:50000/other", false),
            ("http://localhost:50000/callback", false),
            ("http://evil.example/callback", false),
            ("https://127.0.0.1:50000/callback", false),
            ("nothing", false),
        ] {
            assert_eq!(lists(&document.redirect_uris, uri), expected, "{uri}");
        }
    }
}
