//! The security schemes of a document, and the credentials of each.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_http::WebAddress;
use capstan_model::{Credentials, Secret};
use serde_json::Value;

use crate::auth::token::{ClientLogin, Login};
use crate::document::Object;
use crate::operation::parameter::{Place, is_token};
use crate::request::base::Base;
use crate::settings::OpenApiSettings;

/// A scheme that we have credentials for.
pub(crate) enum Scheme {
    Fixed(Proof),
    Login(Login),
}

/// One credential: a parameter with its value.
#[derive(Clone)]
pub(crate) struct Proof {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) value: Secret<String>,
}

/// The kind of a scheme.
pub(crate) enum Kind {
    Key(Place, String),
    Basic,
    Bearer,
    /// OAuth tokens, with the document's token address for programs.
    Token(Option<String>),
    Other(String),
}

/// The context of a scheme.
pub(crate) struct Around<'a> {
    pub(crate) name: &'a str,
    pub(crate) settings: &'a OpenApiSettings,
    pub(crate) base: &'a Base,
    pub(crate) home: Option<&'a WebAddress>,
}

// === impl Around ===

impl Around<'_> {
    /// Checks that a header can carry the value.
    /// Otherwise every call would fail, and the error would blame its caller.
    fn check(&self, value: &Secret<String>) -> Result<(), String> {
        let is_fit = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        if value.reveal().bytes().all(is_fit) {
            return Ok(());
        }
        let name = self.name;
        let words = "contains a line break or another character that cannot be sent";
        Err(format!("`openapi.auth.{name}.token` {words}: check where it comes from"))
    }
}

// === impl Kind ===

impl Kind {
    pub(crate) fn read(scheme: &Object) -> Self {
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("type");
        let place = match text("in") {
            "query" => Some(Place::Query),
            "header" if is_token(text("name")) => Some(Place::Header),
            "cookie" if is_token(text("name")) => Some(Place::Cookie),
            _ => None,
        };
        match (kind, text("scheme").to_ascii_lowercase().as_str(), place) {
            ("apiKey", _, Some(place)) => Self::Key(place, text("name").to_owned()),
            ("basic", ..) | ("http", "basic", _) => Self::Basic,
            ("http", "bearer", _) => Self::Bearer,
            ("oauth2", ..) => {
                let flow = scheme.get("flows").and_then(|flows| flows.get("clientCredentials"));
                let flow = flow.and_then(|flow| flow.get("tokenUrl")).and_then(Value::as_str);
                // Version 2.0 has one flow.
                let of_v2 = (text("flow") == "application").then(|| text("tokenUrl"));
                Self::Token(flow.or(of_v2).map(ToOwned::to_owned))
            }
            ("openIdConnect", ..) => Self::Token(None),
            ("http", other, _) => Self::Other(format!("HTTP {other}")),
            (other, ..) => Self::Other(other.to_owned()),
        }
    }

    /// Combines the scheme with the configured credentials.
    ///
    /// # Errors
    /// The reason why they are not sent.
    pub(crate) fn with(
        &self,
        credentials: &Credentials,
        around: &Around<'_>,
    ) -> Result<Scheme, String> {
        let Around { name, .. } = around;
        match (self, credentials) {
            (Self::Key(place, name), Credentials::Token(value)) => {
                if matches!(place, Place::Header | Place::Cookie) {
                    around.check(value)?;
                }
                let (place, name, value) = (*place, name.clone(), value.clone());
                Ok(Scheme::Fixed(Proof { place, name, value }))
            }
            (Self::Basic, Credentials::Password { username, password }) => {
                let pair = BASE64_STANDARD.encode(format!("{username}:{}", password.reveal()));
                Ok(Scheme::Fixed(authorization(format!("Basic {pair}"))))
            }
            (Self::Bearer | Self::Token(_), Credentials::Token(token)) => {
                around.check(token)?;
                Ok(Scheme::Fixed(bearer(token)))
            }
            (
                Self::Bearer | Self::Token(_),
                Credentials::Client { id, secret, token_url, scopes },
            ) => {
                let address = self.token_address(token_url.as_deref(), around)?;
                let client = ClientLogin { id, secret, scopes };
                Ok(Scheme::Login(Login::new(name, &address, &client, around.settings)?))
            }
            (Self::Key(..) | Self::Basic | Self::Bearer | Self::Token(_) | Self::Other(_), _) => {
                Err(format!(
                    "`openapi.auth.{name}` has the wrong kind of credentials: {}",
                    self.hint(name)
                ))
            }
        }
    }

    /// The address that tokens are requested from.
    fn token_address(
        &self,
        given: Option<&str>,
        around: &Around<'_>,
    ) -> Result<WebAddress, String> {
        let key = format!("openapi.auth.{}.token_url", around.name);
        let parsed = |address: Result<WebAddress, String>| {
            address.map_err(|error| format!("`{key}`: {error}"))
        };
        let base = around.base.address();
        let address = match (given, self) {
            (Some(given), _) => parsed(WebAddress::parse(given))?,
            (None, Self::Token(Some(said))) => {
                let address = parsed(around.home.unwrap_or(base).join(said))?;
                if !address.same_origin(base) {
                    let origin = address.origin();
                    return Err(format!(
                        "the document gets tokens from `{origin}`, which is not the host of its API: if the address is right, set `{key}` \
                         to it"
                    ));
                }
                address
            }
            (
                None,
                Self::Key(..) | Self::Basic | Self::Bearer | Self::Token(None) | Self::Other(_),
            ) => {
                return Err(format!("the document does not name a token endpoint: set `{key}`"));
            }
        };
        if !address.is_sheltered() {
            return Err(format!(
                "`{key}` must begin with `https://`, because secrets are sent to it"
            ));
        }
        Ok(address)
    }

    /// True if `headers` or the query of `base_url` provide what the scheme requires.
    pub(crate) fn is_in_headers(&self, settings: &OpenApiSettings, base: &Base) -> bool {
        let has = |wanted: &str| {
            settings.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        match self {
            Self::Key(Place::Query, name) => base.sends(name),
            Self::Key(Place::Cookie, _) => has("cookie"),
            Self::Key(Place::Header | Place::Path, name) => has(name),
            Self::Basic | Self::Bearer | Self::Token(_) | Self::Other(_) => has("authorization"),
        }
    }

    /// The advice for configuring the scheme.
    pub(crate) fn hint(&self, name: &str) -> String {
        let key = format!("openapi.auth.{name}");
        match self {
            Self::Key(place, wanted) => {
                let place = match place {
                    Place::Query => "query parameter",
                    Place::Header | Place::Path => "header",
                    Place::Cookie => "cookie",
                };
                format!("it requires a key in the {place} `{wanted}`: set `{key}.token`")
            }
            Self::Basic => {
                format!(
                    "it requires a name and a password: set `{key}.username` and `{key}.password`"
                )
            }
            Self::Bearer => format!("it requires a token: set `{key}.token`"),
            Self::Token(Some(_)) => {
                format!("it requires a login: set `{key}.client_id` and `{key}.client_secret`")
            }
            Self::Token(None) => format!(
                "it requires a login: set `{key}.token`, or `{key}.client_id`, `{key}.client_secret` and \
                 `{key}.token_url`"
            ),
            Self::Other(what) => format!(
                "it requires `{what}` for its scheme `{name}`, which Capstan does not \
                 support: set the needed headers under `headers`"
            ),
        }
    }
}

pub(crate) fn bearer(token: &Secret<String>) -> Proof {
    authorization(format!("Bearer {}", token.reveal()))
}

fn authorization(value: String) -> Proof {
    Proof { place: Place::Header, name: "authorization".to_owned(), value: Secret::new(value) }
}
