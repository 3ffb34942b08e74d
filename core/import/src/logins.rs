//! Logins of another program: `auth.json` of avelino's `mcp`.

use std::collections::BTreeMap;

use capstan_model::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A login of another program to one server. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct ForeignLogin {
    /// The address of the server, without a slash at its end.
    pub url: String,
    /// The client, if the program has registered one.
    pub client: Option<ForeignClient>,
    /// The access token.
    pub access: Secret<String>,
    /// The refresh token.
    pub refresh: Option<Secret<String>>,
    /// The time of expiry, in seconds since 1970.
    pub expires: Option<i64>,
}

/// A client that another program has registered.
#[derive(Clone, Debug)]
pub struct ForeignClient {
    /// Its ID.
    pub id: String,
    /// Its secret.
    pub secret: Option<Secret<String>>,
}

/// A text that is not a file of logins. It repeats nothing of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a file of logins: line {line}, column {column}")]
pub struct NotLogins {
    /// The line of the mistake.
    pub line: usize,
    /// The column of the mistake.
    pub column: usize,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    clients: BTreeMap<String, Client>,
    #[serde(default)]
    tokens: BTreeMap<String, Tokens>,
}

#[derive(Deserialize)]
struct Client {
    client_id: String,
    client_secret: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    refresh_token: Option<String>,
    expires_at: Option<i64>,
}

/// Reads `auth.json`.
///
/// # Errors
/// If it has another form.
pub fn logins(text: &str) -> Result<Vec<ForeignLogin>, NotLogins> {
    let refused =
        |error: serde_json::Error| NotLogins { line: error.line(), column: error.column() };
    // A list would be read as the fields of a `File`, in their order.
    serde_json::from_str::<Map<String, Value>>(text).map_err(refused)?;
    let mut file: File = serde_json::from_str(text).map_err(refused)?;
    let given = |text: &String| !text.is_empty();
    let logins = file.tokens.into_iter().map(|(url, tokens)| {
        let client = file.clients.remove(&url).map(|client| ForeignClient {
            id: client.client_id,
            secret: client.client_secret.filter(given).map(Secret::new),
        });
        ForeignLogin {
            url: without_slash(&url).to_owned(),
            client,
            access: Secret::new(tokens.access_token),
            refresh: tokens.refresh_token.filter(given).map(Secret::new),
            expires: tokens.expires_at,
        }
    });
    Ok(logins.collect())
}

/// An address without the slashes at its end, as `auth.json` names servers.
fn without_slash(url: &str) -> &str {
    url.trim_end_matches('/')
}

// === impl ForeignLogin ===

impl ForeignLogin {
    /// True if the login is for the server at this address, and for no other.
    pub fn is_for(&self, url: &str) -> bool {
        self.url == without_slash(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
        "clients": {
            "https://a.example/mcp": { "client_id": "c1", "client_secret": "s3cret" },
            "https://old.example": { "client_id": "c2", "client_secret": null }
        },
        "tokens": {
            "https://a.example/mcp": {
                "access_token": "t0ken", "refresh_token": "r3fresh", "expires_at": 1700000000
            },
            "https://b.example": { "access_token": "by-hand" }
        }
    }"#;

    #[test]
    fn a_login_has_its_client_and_belongs_to_one_address() {
        let [a, b] = logins(FILE).unwrap().try_into().unwrap();
        let ForeignLogin { url, client, access, refresh, expires } = &a;
        let client = client.as_ref().unwrap();
        assert_eq!((url.as_str(), client.id.as_str()), ("https://a.example/mcp", "c1"));
        assert_eq!(client.secret.as_ref().unwrap().reveal(), "s3cret");
        assert_eq!((access.reveal().as_str(), *expires), ("t0ken", Some(1_700_000_000)));
        assert_eq!(refresh.as_ref().unwrap().reveal(), "r3fresh");
        assert!(b.client.is_none() && b.refresh.is_none() && b.expires.is_none());
        for (address, expected) in [
            ("https://a.example/mcp", true),
            ("https://a.example/mcp/", true),
            ("https://a.example", false),
            ("https://a.example/mcp/x", false),
            ("http://a.example/mcp", false),
            ("https://b.example", false),
        ] {
            assert_eq!(a.is_for(address), expected, "{address}");
        }
        let shown = format!("{a:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("t0ken"), "{shown}");
    }

    #[test]
    fn an_empty_file_has_no_logins_and_another_one_is_refused_without_its_text() {
        assert!(logins("{}").unwrap().is_empty());
        for text in ["", "[]", r#"{"tokens":{"u":{"access_token":4711}}}"#, r#"{"tokens":"t0ken"}"#]
        {
            let error = logins(text).unwrap_err().to_string();
            assert!(!error.contains("4711") && !error.contains("t0ken"), "{error}");
        }
    }
}
