//! What requests make themselves known by: the security schemes of a document, and what the
//! configuration has for them.
//!
//! **Invariant:** what belongs to a scheme is sent to the interface alone, and only with operations
//! that want it. What gets tokens goes to where the configuration says, else to the interface's own
//! server: no document sends it elsewhere.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_backend::plain::{PlainRequest, WebAddress};
use capstan_model::{Credentials, Secret};
use serde_json::Value;

use crate::base::Base;
use crate::document::{Document, Object};
use crate::encode::percent;
use crate::parameter::{Place, is_token};
use crate::settings::OpenApiSettings;
use crate::token::{Client, Login, Token};

/// The schemes of a document.
#[derive(Default)]
pub(crate) struct Auth {
    /// Those that the configuration has something for.
    ours: Vec<(String, Arc<Scheme>)>,
    /// What to do about the others that are needed.
    hints: HashMap<String, String>,
    /// What is wrong with what the configuration says.
    problems: Vec<String>,
}

/// What the requests of an operation are sent with.
#[derive(Default)]
pub(crate) struct Means {
    schemes: Vec<Arc<Scheme>>,
    /// What to do about what is wanted and not there.
    pub(crate) lacking: Option<String>,
}

/// What one request is sent with.
#[derive(Default)]
pub(crate) struct Proofs {
    fixed: Vec<Proof>,
    /// The tokens among them.
    pub(crate) tokens: Vec<Arc<Token>>,
}

/// The schemes that an operation wants: all of one of these. `None` where the document says nothing.
pub(crate) type Wants = Option<Vec<Vec<String>>>;

/// A scheme that we have something for.
enum Scheme {
    Fixed(Proof),
    Login(Login),
}

#[derive(Clone)]
struct Proof {
    place: Place,
    name: String,
    value: Secret<String>,
}

/// How a scheme wants it.
enum Kind {
    Key(Place, String),
    Basic,
    Bearer,
    /// Tokens, and where the document says that programs get them.
    Token(Option<String>),
    Other(String),
}

// === impl Auth ===

impl Auth {
    /// Reads the schemes of a document. `home` is where that is from.
    pub(crate) fn read(
        document: &Document,
        settings: &OpenApiSettings,
        base: &Base,
        home: Option<&WebAddress>,
    ) -> Self {
        let mut auth = Self::default();
        let schemes = document.root.pointer("/components/securitySchemes");
        let schemes = schemes.or_else(|| document.root.get("securityDefinitions"));
        let schemes = schemes.and_then(Value::as_object);
        let kinds: Vec<(&String, Kind)> = schemes
            .into_iter()
            .flatten()
            .filter_map(|(name, scheme)| Some((name, Kind::read(document.object(scheme)?))))
            .collect();
        for (name, credentials) in &settings.auth {
            let Some((_, kind)) = kinds.iter().find(|(known, _)| *known == name) else {
                let known: Vec<String> =
                    kinds.iter().map(|(known, _)| format!("`{known}`")).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                auth.problems.push(format!(
                    "`openapi.auth.{name}` is no security scheme of the document, which has {known}"
                ));
                continue;
            };
            match kind.with(credentials, &Around { name, settings, base, home }) {
                Ok(scheme) => auth.ours.push((name.clone(), Arc::new(scheme))),
                Err(problem) => auth.problems.push(problem),
            }
        }
        for (name, kind) in kinds.iter().filter(|(_, kind)| !kind.is_in_headers(settings, base)) {
            auth.hints.insert((*name).clone(), kind.hint(name));
        }
        auth
    }

    /// Whether the configuration chooses this parameter.
    pub(crate) fn sets(&self, place: Place, name: &str) -> bool {
        self.ours.iter().any(|(_, scheme)| match &**scheme {
            Scheme::Fixed(proof) if place == Place::Header => {
                proof.place == place && proof.name.eq_ignore_ascii_case(name)
            }
            Scheme::Fixed(proof) => proof.place == place && proof.name == name,
            Scheme::Login(_) => false,
        })
    }

    /// What the requests of an operation are sent with.
    pub(crate) fn means(&self, wants: &Wants) -> Means {
        let ours = |name: &String| {
            self.ours.iter().find(|(own, _)| own == name).map(|(_, scheme)| Arc::clone(scheme))
        };
        let Some(wants) = wants else {
            // A document that names schemes and never says where they count means everywhere.
            let schemes = self.ours.iter().map(|(_, scheme)| Arc::clone(scheme)).collect();
            return Means { schemes, lacking: None };
        };
        let mut whole = wants
            .iter()
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().map(ours).collect::<Option<Vec<_>>>());
        if let Some(schemes) = whole.find_map(|schemes| schemes) {
            return Means { schemes, lacking: None };
        }
        let is_free = wants.is_empty() || wants.iter().any(Vec::is_empty);
        let missing = wants.iter().flatten().find(|name| ours(name).is_none());
        // What the headers have, an alternative may be made of.
        let known = |all: &Vec<String>| all.iter().all(|one| !self.hints.contains_key(one));
        let lacking = missing.filter(|_| !is_free && !wants.iter().any(known));
        Means {
            schemes: Vec::new(),
            lacking: lacking.and_then(|name| self.hints.get(name)).cloned(),
        }
    }

    /// What is wrong with what the configuration says.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problems.first().cloned()
    }
}

/// Reads which schemes an operation wants, or a whole document.
pub(crate) fn wants(said: &Object, document: &Document) -> Wants {
    let said = said.get("security").or_else(|| document.root.get("security"))?.as_array()?;
    let names = |one: &Value| match one.as_object() {
        Some(all) => all.keys().cloned().collect(),
        None => Vec::new(),
    };
    Some(said.iter().map(names).collect())
}

// === impl Means ===

impl Means {
    /// What a request is sent with now. Tokens that were `refused` are not used again.
    ///
    /// # Errors
    /// Why there is no token.
    pub(crate) async fn prove(&self, refused: &[Arc<Token>]) -> Result<Proofs, String> {
        let mut proofs = Proofs::default();
        for scheme in &self.schemes {
            match &**scheme {
                Scheme::Fixed(proof) => proofs.fixed.push(proof.clone()),
                Scheme::Login(login) => {
                    let token = login.token(refused).await?;
                    proofs.fixed.push(bearer(token.value()));
                    proofs.tokens.push(token);
                }
            }
        }
        Ok(proofs)
    }
}

// === impl Proofs ===

impl Proofs {
    /// The request with all of it.
    pub(crate) fn put(&self, mut request: PlainRequest) -> PlainRequest {
        for Proof { place, name, value } in &self.fixed {
            let value = value.reveal();
            match place {
                Place::Path => {}
                Place::Header => request.headers.push((name.clone(), value.clone())),
                Place::Query => {
                    let pair = format!("{}={}", percent(name), percent(value));
                    let query = request.query.take().filter(|query| !query.is_empty());
                    request.query =
                        Some(query.map_or(pair.clone(), |query| format!("{query}&{pair}")));
                }
                Place::Cookie => {
                    let pair = format!("{name}={value}");
                    match request.headers.iter_mut().find(|(name, _)| name == "cookie") {
                        Some((_, cookies)) => *cookies = format!("{cookies}; {pair}"),
                        None => request.headers.push(("cookie".to_owned(), pair)),
                    }
                }
            }
        }
        request
    }

    /// What must not be shown of it, as it was sent.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Secret<String>> {
        self.fixed.iter().flat_map(|proof| {
            let bare = proof.value.reveal().split_once(' ').map(|(_, bare)| bare.to_owned());
            // What stood in an address may be repeated as it stood there.
            let escaped = (proof.place == Place::Query).then(|| percent(proof.value.reveal()));
            bare.into_iter().chain(escaped).map(Secret::new).chain([proof.value.clone()])
        })
    }
}

/// What stands around a scheme.
struct Around<'a> {
    name: &'a str,
    settings: &'a OpenApiSettings,
    base: &'a Base,
    home: Option<&'a WebAddress>,
}

// === impl Kind ===

impl Kind {
    fn read(scheme: &Object) -> Self {
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

    /// The scheme with what the configuration has for it.
    fn with(&self, credentials: &Credentials, around: &Around<'_>) -> Result<Scheme, String> {
        let Around { name, .. } = around;
        match (self, credentials) {
            (Self::Key(place, name), Credentials::Token(value)) => {
                let (place, name, value) = (*place, name.clone(), value.clone());
                Ok(Scheme::Fixed(Proof { place, name, value }))
            }
            (Self::Basic, Credentials::Password { username, password }) => {
                let pair = BASE64_STANDARD.encode(format!("{username}:{}", password.reveal()));
                Ok(Scheme::Fixed(authorization(format!("Basic {pair}"))))
            }
            (Self::Bearer | Self::Token(_), Credentials::Token(token)) => {
                Ok(Scheme::Fixed(bearer(token)))
            }
            (
                Self::Bearer | Self::Token(_),
                Credentials::Client { id, secret, token_url, scopes },
            ) => {
                let address = self.token_address(token_url.as_deref(), around)?;
                let client = Client { id, secret, scopes };
                Ok(Scheme::Login(Login::new(name, &address, &client, around.settings)?))
            }
            (Self::Key(..) | Self::Basic | Self::Bearer | Self::Token(_) | Self::Other(_), _) => {
                Err(format!(
                    "`openapi.auth.{name}` has something else than it takes: {}",
                    self.hint(name)
                ))
            }
        }
    }

    /// Where tokens are.
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
                        "the document gets tokens from `{origin}`, which is not where its interface \
                         is: if it is right, set `{key}` to the address there"
                    ));
                }
                address
            }
            (
                None,
                Self::Key(..) | Self::Basic | Self::Bearer | Self::Token(None) | Self::Other(_),
            ) => {
                return Err(format!("the document does not say where tokens are: set `{key}`"));
            }
        };
        if !address.is_sheltered() {
            return Err(format!("`{key}` must begin with `https://`: a secret goes there"));
        }
        Ok(address)
    }

    /// Whether `headers` or the query of `base_url` have what it wants.
    fn is_in_headers(&self, settings: &OpenApiSettings, base: &Base) -> bool {
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

    /// What to do so that it gets what it wants.
    fn hint(&self, name: &str) -> String {
        let key = format!("openapi.auth.{name}");
        match self {
            Self::Key(place, wanted) => {
                let place = match place {
                    Place::Query => "query parameter",
                    Place::Header | Place::Path => "header",
                    Place::Cookie => "cookie",
                };
                format!("it wants a key in the {place} `{wanted}`: set `{key}.token`")
            }
            Self::Basic => {
                format!("it wants a name and a password: set `{key}.username` and `{key}.password`")
            }
            Self::Bearer => format!("it wants a token: set `{key}.token`"),
            Self::Token(Some(_)) => {
                format!("it wants a login: set `{key}.client_id` and `{key}.client_secret`")
            }
            Self::Token(None) => format!(
                "it wants a login: set `{key}.token`, or `{key}.client_id`, `{key}.client_secret` and \
                 `{key}.token_url`"
            ),
            Self::Other(what) => format!(
                "it wants `{what}` for its scheme `{name}`, which is not known here: set what it needs \
                 under `headers`"
            ),
        }
    }
}

fn bearer(token: &Secret<String>) -> Proof {
    authorization(format!("Bearer {}", token.reveal()))
}

fn authorization(value: String) -> Proof {
    Proof { place: Place::Header, name: "authorization".to_owned(), value: Secret::new(value) }
}
