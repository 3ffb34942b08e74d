//! Credentials of requests: the security schemes of a document, and the configured values for them.
//!
//! [`scheme`] reads the schemes, [`token`] gets tokens for them.
//!
//! **Invariant:** the credentials of a scheme are sent only to the interface, and only with
//! operations that require them; unencrypted only if the configuration gives an unencrypted
//! address. The secrets for getting tokens go to the configured address, else to the interface's
//! own server: no document sends them elsewhere.

pub(crate) mod scheme;
pub(crate) mod token;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_http::{
    Applied, Challenge, Challenged, Credentials, HttpRequest, StatusCode, WebAddress,
};
use capstan_lazy::AttemptError;
use capstan_model::Secret;
use futures::FutureExt;
use serde_json::Value;

use crate::auth::scheme::{Around, Kind, Proof, Scheme, bearer};
use crate::auth::token::Token;
use crate::document::{Document, Object};
use crate::operation::parameter::Place;
use crate::request::base::Base;
use crate::request::encode::percent;
use crate::settings::OpenApiSettings;

/// The security schemes of a document.
#[derive(Default)]
pub(crate) struct Auth {
    /// The schemes that the configuration has credentials for.
    ours: Vec<(String, Arc<Scheme>)>,
    /// The advice for the other required schemes, by name.
    hints: HashMap<String, String>,
    /// The problems of the configured credentials.
    problems: Vec<String>,
}

/// The credentials of an operation's requests.
#[derive(Default)]
pub(crate) struct Means {
    schemes: Vec<Arc<Scheme>>,
    /// The advice if required credentials are missing.
    pub(crate) lacking: Option<String>,
}

/// The credentials of one call.
pub(crate) struct CallCredentials {
    schemes: Vec<Arc<Scheme>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The credentials of the request in flight; `None` before they are added.
    applied: Option<Vec<Proof>>,
    /// The tokens among them.
    tokens: Vec<Arc<Token>>,
    /// Tokens that the server refused.
    refused: Vec<Arc<Token>>,
}

/// The schemes that an operation requires: all schemes of one alternative. `None` if the document
/// does not specify any.
pub(crate) type Wants = Option<Vec<Vec<String>>>;

// === impl Auth ===

impl Auth {
    /// Reads the schemes of a document. `home` is the address that it was fetched from.
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
        let exposed = base.exposes().map(|origin| {
            format!(
                "the document sends requests to `{origin}`, which is not encrypted, so the credentials \
                 of `openapi.auth` are not sent: set `base_url` to the address for requests"
            )
        });
        for (name, credentials) in &settings.auth {
            if let Some(problem) = &exposed {
                auth.problems.push(problem.clone());
                continue;
            }
            let Some((_, kind)) = kinds.iter().find(|(known, _)| *known == name) else {
                let known: Vec<String> =
                    kinds.iter().map(|(known, _)| format!("`{known}`")).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                auth.problems.push(format!(
                    "`openapi.auth.{name}` is not a security scheme of the document, which has {known}"
                ));
                continue;
            };
            match kind.with(credentials, &Around { name, settings, base, home }) {
                Ok(scheme) => auth.ours.push((name.clone(), Arc::new(scheme))),
                Err(problem) => auth.problems.push(problem),
            }
        }
        for (name, kind) in kinds.iter().filter(|(_, kind)| !kind.is_in_headers(settings, base)) {
            let is_held_back = settings.auth.iter().any(|(held, _)| held == *name);
            let held_back = exposed.clone().filter(|_| is_held_back);
            auth.hints.insert((*name).clone(), held_back.unwrap_or_else(|| kind.hint(name)));
        }
        auth
    }

    /// True if the configuration sets this parameter.
    pub(crate) fn sets(&self, place: Place, name: &str) -> bool {
        self.ours.iter().any(|(_, scheme)| match &**scheme {
            Scheme::Fixed(proof) if place == Place::Header => {
                proof.place == place && proof.name.eq_ignore_ascii_case(name)
            }
            Scheme::Fixed(proof) => proof.place == place && proof.name == name,
            Scheme::Login(_) => false,
        })
    }

    /// The names of the query parameters that the configuration sets.
    pub(crate) fn in_queries(&self) -> Vec<String> {
        let names = self.ours.iter().filter_map(|(_, scheme)| match &**scheme {
            Scheme::Fixed(proof) if proof.place == Place::Query => Some(proof.name.clone()),
            Scheme::Fixed(_) | Scheme::Login(_) => None,
        });
        names.collect()
    }

    /// The credentials for the requests of an operation.
    pub(crate) fn means(&self, wants: &Wants) -> Means {
        let ours = |name: &String| {
            self.ours.iter().find(|(own, _)| own == name).map(|(_, scheme)| Arc::clone(scheme))
        };
        let Some(wants) = wants else {
            // A document that declares schemes and never requires them means all operations.
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
        // An alternative is also met if the configured headers provide its schemes.
        let known = |all: &Vec<String>| all.iter().all(|one| !self.hints.contains_key(one));
        let lacking = missing.filter(|_| !is_free && !wants.iter().any(known));
        Means {
            schemes: Vec::new(),
            lacking: lacking.and_then(|name| self.hints.get(name)).cloned(),
        }
    }

    /// The first problem of the configured credentials.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problems.first().cloned()
    }
}

/// Reads the schemes that an operation requires, or else the whole document.
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
    /// Creates the credentials of one call.
    pub(crate) fn for_call(&self) -> Arc<CallCredentials> {
        Arc::new(CallCredentials { schemes: self.schemes.clone(), state: Mutex::default() })
    }
}

// === impl CallCredentials ===

impl CallCredentials {
    /// True if the credentials were added to a request, so that it may have been sent.
    pub(crate) fn are_applied(&self) -> bool {
        self.state().applied.is_some()
    }

    /// The secret values of the last request, in all forms in which they were sent.
    pub(crate) fn secrets(&self) -> Vec<Secret<String>> {
        let proofs = self.state().applied.clone().unwrap_or_default();
        let secrets = proofs.into_iter().flat_map(|proof| {
            let bare = proof.value.reveal().split_once(' ').map(|(_, bare)| bare.to_owned());
            // A server may repeat a query value in its escaped form.
            let escaped = (proof.place == Place::Query).then(|| percent(proof.value.reveal()));
            bare.into_iter().chain(escaped).map(Secret::new).chain([proof.value])
        });
        secrets.collect()
    }

    /// Collects the credentials of all schemes. Tokens that the server refused are not used again.
    async fn prove(&self) -> Result<Vec<Proof>, AttemptError> {
        let refused = self.state().refused.clone();
        let (mut proofs, mut tokens) = (Vec::new(), Vec::new());
        for scheme in &self.schemes {
            match &**scheme {
                Scheme::Fixed(proof) => proofs.push(proof.clone()),
                Scheme::Login(login) => {
                    let token = login.token(&refused).await?;
                    proofs.push(bearer(token.value()));
                    tokens.push(token);
                }
            }
        }
        self.state().tokens = tokens;
        Ok(proofs)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Credentials for CallCredentials {
    fn apply<'a>(&'a self, request: &'a mut HttpRequest) -> Applied<'a> {
        let applied = async {
            let proofs = self.prove().await?;
            for Proof { place, name, value } in &proofs {
                let value = value.reveal();
                match place {
                    Place::Path => {}
                    Place::Header => request.add_header(name, value)?,
                    Place::Query => {
                        request.add_query(&format!("{}={}", percent(name), percent(value)));
                    }
                    Place::Cookie => request.add_cookie(name, value)?,
                }
            }
            self.state().applied = Some(proofs);
            Ok(0)
        };
        Applied::Wait(applied.boxed())
    }

    /// A server that refuses a token has not run the request, so another token may be tried.
    fn challenged<'a>(&'a self, challenge: Challenge<'a>) -> Challenged<'a> {
        let mut state = self.state();
        let is_refused = challenge.status == StatusCode::UNAUTHORIZED;
        if !is_refused || !state.refused.is_empty() || state.tokens.is_empty() {
            return Challenged::Final;
        }
        state.refused = std::mem::take(&mut state.tokens);
        state.applied = None;
        Challenged::Retry
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::Credentials;
    use serde_json::json;

    use super::*;
    use crate::settings::Source;

    fn settings(auth: Vec<(&str, Credentials)>) -> OpenApiSettings {
        OpenApiSettings {
            name: "s".parse().unwrap(),
            source: Source::File("api.json".into()),
            base_url: None,
            headers: Vec::new(),
            auth: auth.into_iter().map(|(name, one)| (name.to_owned(), one)).collect(),
            secrets: Vec::new(),
            tags: None,
            only: None,
            except: Vec::new(),
            addresses: capstan_safety::address::AddressPolicy::default(),
            startup_timeout: std::time::Duration::ZERO,
            timeout: std::time::Duration::ZERO,
            answer: 0,
            cache: None,
        }
    }

    fn secret(text: &str) -> Secret<String> {
        Secret::new(text.to_owned())
    }

    fn document() -> Document {
        let schemes = json!({
            "key": { "type": "apiKey", "in": "query", "name": "k" },
            "name": { "type": "http", "scheme": "basic" },
            "bearer": { "type": "http", "scheme": "bearer" },
            "login": { "type": "oauth2" },
        });
        let root = json!({ "openapi": "3.0.0", "components": { "securitySchemes": schemes } });
        Document::parse(&root.to_string()).unwrap()
    }

    #[test]
    fn nothing_is_sent_in_clear_text_because_a_document_says_so() {
        let token = || Credentials::Token(secret("t"));
        let client = Credentials::Client {
            id: "me".to_owned(),
            secret: secret("s"),
            token_url: Some("https://h.example/token".to_owned()),
            scopes: Vec::new(),
        };
        let password = Credentials::Password { username: "me".to_owned(), password: secret("p") };
        let all = [("key", token()), ("name", password), ("bearer", token()), ("login", client)];
        for (name, credentials) in all {
            let settings = settings(vec![(name, credentials)]);
            let kept = |given: Option<&str>, home: &str| {
                let (document, home) = (document(), WebAddress::parse(home).unwrap());
                let base =
                    Base::choose(&document, given, Some(&home), &settings.addresses).unwrap();
                let auth = Auth::read(&document, &settings, &base, Some(&home));
                let wanted = auth.means(&Some(vec![vec![name.to_owned()]]));
                (
                    auth.means(&None).schemes.len() + wanted.schemes.len(),
                    auth.problem(),
                    wanted.lacking,
                )
            };
            let (schemes, problem, lacking) = kept(None, "http://h.example/api.json");
            assert_eq!(schemes, 0, "{name}");
            assert!(
                problem.unwrap().contains("`http://h.example`, which is not encrypted"),
                "{name}"
            );
            assert!(lacking.unwrap().contains("set `base_url`"), "{name}");
            for (given, home) in [
                (None, "https://h.example/api.json"),
                (None, "http://127.0.0.1:8/api.json"),
                (None, "http://localhost/api.json"),
                (Some("http://h.example/"), "http://h.example/api.json"),
            ] {
                assert_eq!(kept(given, home), (2, None, None), "{name} {home}");
            }
        }
    }
}
