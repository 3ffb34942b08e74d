//! The base address of requests.
//!
//! **Invariant:** no document can redirect configured secrets: a fetched document may only name its
//! own origin, a document in a file no address that secrets are sent to, and none an address that
//! is not public, because a document does not have the authority of the configuration.

use capstan_http::WebAddress;
use capstan_lazy::AttemptError;
use capstan_safety::address::{AddressPolicy, Loopback};
use serde_json::Value;

use crate::document::{Document, Version};
use crate::request::encode::percent;
use crate::settings::OpenApiSettings;

/// The advice if a document's address is not trusted.
const SAY: &str = "set `openapi.base_url` of the server to the address for requests";

/// The base address of requests.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    address: WebAddress,
    /// True if the configuration sets the address, and not the document.
    is_given: bool,
}

// === impl Base ===

impl Base {
    /// Chooses the configured address, else the document's. `home` is the address that the document
    /// was fetched from.
    ///
    /// # Errors
    /// The reason why there is none, with advice.
    pub(crate) fn choose(
        document: &Document,
        given: Option<&str>,
        home: Option<&WebAddress>,
        policy: &AddressPolicy,
    ) -> Result<Self, AttemptError> {
        if let Some(given) = given {
            let address =
                WebAddress::parse(given).map_err(|error| format!("`base_url`: {error}"))?;
            return Ok(Self { address, is_given: true });
        }
        let named = match document.version {
            Version::V2 => named_by_v2(document, home),
            Version::V3 => named_by_v3(document),
        };
        let address = match home {
            Some(home) => home.join(named.as_deref().unwrap_or("/")),
            None => match named {
                Some(named) if named.contains("://") => WebAddress::discover(&named),
                Some(_) | None => {
                    Err("the document does not name the address of its API".to_owned())
                }
            },
        };
        let address = address.map_err(|error| format!("{error}; {SAY}"))?;
        let origin = address.origin();
        match home {
            Some(home) if !home.same_origin(&address) => {
                let words = "which is not the host of the document";
                let message = format!("the document sends requests to `{origin}`, {words}; {SAY}");
                Err(AttemptError::Elsewhere(message))
            }
            None if is_refused(policy, &address) => {
                let words = "which is not a public address";
                let message = format!("the document sends requests to `{origin}`, {words}; {SAY}");
                Err(AttemptError::Blocked(message))
            }
            Some(_) | None => Ok(Self { address, is_given: false }),
        }
    }

    /// Refuses to send secrets to an address from a document in a file.
    /// Anyone who can change the file could redirect them. `home` is the address that the document
    /// was fetched from.
    ///
    /// # Errors
    /// If secrets would be sent; contains advice.
    pub(crate) fn entrusted(
        self,
        settings: &OpenApiSettings,
        home: Option<&WebAddress>,
    ) -> Result<Self, String> {
        if self.is_given || home.is_some() || !settings.sends_secrets() {
            return Ok(self);
        }
        let origin = self.address.origin();
        let words =
            "and secrets in `auth` and `headers` are not sent to an address that only a file names";
        Err(format!("the document sends requests to `{origin}`, {words}; {SAY}"))
    }

    /// The origin, if the document sends requests to it unencrypted.
    pub(crate) fn exposes(&self) -> Option<String> {
        (!self.is_given && !self.address.is_sheltered()).then(|| self.address.origin())
    }

    pub(crate) fn address(&self) -> &WebAddress {
        &self.address
    }

    /// The prefix of every operation's path.
    pub(crate) fn path(&self) -> &str {
        self.address.path().trim_end_matches('/')
    }

    /// The query that is part of every request.
    pub(crate) fn query(&self) -> Option<&str> {
        self.address.query().filter(|query| !query.is_empty())
    }

    /// True if every query has a parameter of this name.
    pub(crate) fn sends(&self, name: &str) -> bool {
        let written = percent(name);
        let names = self.query().into_iter().flat_map(|query| query.split('&'));
        let mut names = names.map(|pair| pair.split('=').next().unwrap_or_default());
        names.any(|one| one == name || one.eq_ignore_ascii_case(&written))
    }
}

/// The first server of version 3, with its variables replaced by their defaults.
fn named_by_v3(document: &Document) -> Option<String> {
    let server = document.root.get("servers")?.as_array()?.first()?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let usual = variable.get("default").and_then(Value::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), usual);
    }
    Some(url)
}

/// The address of version 2.0, from `schemes`, `host` and `basePath`.
fn named_by_v2(document: &Document, home: Option<&WebAddress>) -> Option<String> {
    let text = |key: &str| document.root.get(key).and_then(Value::as_str);
    let path = text("basePath").unwrap_or("/");
    let Some(host) = text("host") else { return home.map(|_| path.to_owned()) };
    let schemes = document.root.get("schemes").and_then(Value::as_array);
    let mut schemes = schemes.into_iter().flatten().filter_map(Value::as_str);
    let first = schemes.clone().next();
    // Encrypted if there is a choice.
    let scheme = schemes.find(|scheme| *scheme == "https").or(first);
    let of_home = home.and_then(|home| home.origin().split_once("://").map(|(s, _)| s.to_owned()));
    let scheme = scheme.map(ToOwned::to_owned).or(of_home).unwrap_or_else(|| "https".to_owned());
    Some(format!("{scheme}://{host}{path}"))
}

/// True if the policy refuses the literal address that a document in a file names.
fn is_refused(policy: &AddressPolicy, address: &WebAddress) -> bool {
    address.ip().is_some_and(|ip| policy.check(ip, Loopback::Refused).is_err())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(document: &Value, given: Option<&str>, home: Option<&str>) -> Result<String, String> {
        chosen_by(document, given, home, &AddressPolicy::default())
    }

    fn chosen_by(
        document: &Value,
        given: Option<&str>,
        home: Option<&str>,
        policy: &AddressPolicy,
    ) -> Result<String, String> {
        let document = Document::parse(&document.to_string()).unwrap();
        let home = home.map(|home| WebAddress::parse(home).unwrap());
        let base = Base::choose(&document, given, home.as_ref(), policy);
        let base = base.map_err(|error| error.to_string())?;
        Ok(format!("{}{}", base.address().origin(), base.path()))
    }

    fn v3(url: &str) -> Value {
        json!({"openapi": "3.1.0", "servers": [{"url": url, "variables":
            {"region": {"default": "eu"}}}]})
    }

    #[test]
    fn the_configuration_goes_before_the_document() {
        let web = Some("https://h/docs/api.json");
        for (document, given, home, expected) in [
            (v3("https://api.h/v1/"), None, None, "https://api.h/v1"),
            (v3("https://{region}.h/"), None, None, "https://eu.h"),
            (v3("/v2"), None, web, "https://h/v2"),
            (v3("v2"), None, web, "https://h/docs/v2"),
            (json!({"openapi": "3.0.0"}), None, web, "https://h"),
            (v3("https://other/"), Some("https://mine/x"), web, "https://mine/x"),
            (v3("https://other/"), Some("http://127.0.0.1:8/v"), None, "http://127.0.0.1:8/v"),
            (
                json!({"swagger": "2.0", "host": "h:1", "basePath": "/b", "schemes": ["http", "https"]}),
                None,
                None,
                "https://h:1/b",
            ),
            (json!({"swagger": "2.0", "basePath": "/b"}), None, web, "https://h/b"),
            (json!({"swagger": "2.0", "host": "h"}), None, web, "https://h"),
        ] {
            assert_eq!(chosen(&document, given, home).unwrap(), expected, "{document}");
        }
    }

    #[test]
    fn no_document_takes_requests_elsewhere() {
        let web = Some("https://h/docs/api.json");
        for (document, given, home) in [
            (v3("https://evil/"), None, web),
            (v3("//evil/"), None, web),
            (v3("http://h/"), None, web),
            (v3("https://h:444/"), None, web),
            (v3("file:///etc"), None, web),
            (v3("/v1"), None, None),
            (v3("http://169.254.169.254/"), None, None),
            (v3("http://[::ffff:169.254.169.254]/"), None, None),
            (v3("http://10.1.2.3/"), None, None),
            (v3("http://[fd00::1]/"), None, None),
            (v3("http://0x0a000001/"), None, None),
            (v3("http://127.0.0.1:8/v"), None, None),
            (v3("http://[::1]/"), None, None),
            (v3("https://me:pw@h/"), None, None),
            (v3("unix:///var/run/docker.sock"), None, None),
            (json!({"openapi": "3.0.0"}), None, None),
            (json!({"swagger": "2.0", "host": "evil"}), None, web),
            (v3("https://h/"), Some("ftp://h"), web),
        ] {
            let error = chosen(&document, given, home).unwrap_err();
            assert!(error.contains("base_url"), "{document}: {error}");
        }
    }

    #[test]
    fn a_document_in_a_file_may_name_an_address_that_the_entry_lists() {
        let networks = vec!["10.0.0.0/8".parse().unwrap()];
        let listed = AddressPolicy { networks, ..AddressPolicy::default() };
        let chosen = |url| chosen_by(&v3(url), None, None, &listed);
        assert_eq!(chosen("http://10.1.2.3/v1").unwrap(), "http://10.1.2.3/v1");
        assert!(chosen("http://192.168.1.1/v1").is_err());
        assert!(chosen("http://127.0.0.1/v1").is_err());
    }
}
