//! The keys of `[gateway.auth]`: the providers that authenticate callers, and their settings.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde_json::Value as Json;

use super::bearer::{self, BearerToken};
use super::forwarded::{self, Forwarded};
use super::jwt::{self, JwtAuth};
use super::oauth_as::{self, OauthAs};
use crate::fields::{Fields, Words, nearest};
use crate::settings::define::keys;
use crate::settings::form::{Form, OneOf, Table, WordSchema};
use crate::show::{self, Shown};
use crate::source::problem::Problem;
use crate::source::{FilePosition, Scope};

/// Subjects that authenticated callers cannot have: the audit log uses them for others.
pub const RESERVED_SUBJECTS: [&str; 2] = ["operator", "anonymous"];

/// Authentication of callers at `capstan serve --http`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Auth {
    /// The providers, in the order in which they are asked.
    pub providers: Vec<AuthProvider>,
    /// The tokens of the provider `bearer`.
    pub bearer: Vec<BearerToken>,
    /// The settings of the provider `forwarded`.
    pub forwarded: Forwarded,
    /// The settings of the provider `jwt`.
    pub jwt: Option<JwtAuth>,
    /// The settings of the provider `oauth_as`.
    pub oauth_as: Option<OauthAs>,
}

/// A provider of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthProvider {
    /// Accepts every request, as the caller `anonymous`.
    None,
    /// Static tokens of the configuration.
    Bearer,
    /// Tokens that `capstan auth token create` made.
    Tokens,
    /// Headers of a trusted reverse proxy.
    Forwarded,
    /// Tokens of an OpenID Connect issuer.
    Jwt,
    /// Tokens of the gateway's own authorization server.
    OauthAs,
}

keys! {
    /// Authentication of callers. Exactly one file may have this table, and a project file may not.
    pub(crate) table AuthKeys
    keys {
        /// The providers, in the order in which they are asked. The first that accepts a request decides who the caller is. `bearer`: the tokens below; `tokens`: those of `capstan auth token create`; `forwarded`: headers of a reverse proxy; `jwt`: tokens of an OpenID Connect issuer; `oauth_as`: the gateway's own authorization server; `none`: everyone is `anonymous`.
        providers: Vec<AuthProvider> as Providers = Vec::new();
    }
    by_hand {
        /// Settings of `bearer`.
        bearer: BearerSchema;
        /// Settings of `forwarded`.
        forwarded: <Forwarded as Table>::Keys;
        /// Settings of `jwt`.
        jwt: <JwtAuth as Table>::Keys;
        /// Settings of `oauth_as`.
        oauth_as: <OauthAs as Table>::Keys;
    }
}

/// The form of the list of providers.
struct Providers;

/// Static tokens.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct BearerSchema {
    /// Tokens, each with its subject, or with a subject and roles: `"${TOKEN}" = { subject = "bob", roles = ["dev"] }`.
    #[schemars(title = "table of subjects")]
    tokens: IndexMap<String, bearer::IdentitySchema>,
}

/// The `[gateway.auth]` table of one file.
#[derive(Debug, Default)]
pub(crate) struct AuthPart {
    /// The table; always `None` for a project file, which may not have one.
    pub(crate) table: Option<(Auth, FilePosition)>,
    /// Reasons why `capstan serve --http` must not start.
    pub(crate) refused: Vec<Problem>,
    pub(crate) shown: Vec<Shown>,
}

// === impl Auth ===

impl Auth {
    /// True if everyone may connect.
    pub fn is_open(&self) -> bool {
        self.providers.iter().all(|provider| *provider == AuthProvider::None)
            || self.has(AuthProvider::None)
    }

    /// True if the provider is in the chain.
    pub fn has(&self, provider: AuthProvider) -> bool {
        self.providers.contains(&provider)
    }
}

// === impl AuthPart ===

impl AuthPart {
    /// Reads the table under `auth`, if there is one.
    pub(crate) fn read(gateway: &mut Fields<'_, '_>) -> Self {
        // `auth = "none"` is short for an empty chain.
        if gateway.peek("auth").is_some_and(|entry| entry.node.as_text() == Some("none")) {
            gateway.entry("auth");
            return Self::default();
        }
        let Some(mut fields) = gateway.nested("auth") else { return Self::default() };
        let mut part = Self::default();
        let AuthKeys { providers } = AuthKeys::read(&mut fields);
        legacy(&mut fields);
        let bearer = bearer::read(&mut fields);
        let forwarded = forwarded::read(&mut fields);
        let jwt = fields.nested("jwt").map(jwt::read);
        let oauth_as = fields.nested("oauth_as").map(oauth_as::read);
        blocks(&mut fields, &providers);
        let auth = Auth { providers, bearer, forwarded, jwt, oauth_as };
        if fields.report().file.scope == Scope::Project {
            part.refused.push(refuse(&mut fields));
        } else {
            part.shown = shown(&mut fields, &auth);
            let span = fields.span();
            part.table = Some((auth, fields.report().file.place(&span)));
        }
        fields.finish();
        part
    }
}

/// Refuses the table of a project file, which must not decide who reaches the gateway.
///
/// It is not silently ignored either: its author relies on it.
fn refuse(fields: &mut Fields<'_, '_>) -> Problem {
    let path = fields.path().to_owned();
    let message = format!("`{path}` is in a project file, which cannot decide who may connect");
    let help = "`capstan serve --http` does not start with it; move it to your own configuration";
    let span = fields.span();
    fields.table_problem(Problem::warning(message.clone()).help(help));
    let place = Some(fields.report().file.place(&span));
    Problem { place, key: Some(path), ..Problem::error(message).help(help) }
}

/// Refuses the older key `provider`.
fn legacy(fields: &mut Fields<'_, '_>) {
    let Some(entry) = fields.peek("provider") else { return };
    fields.entry("provider");
    let path = fields.key("provider");
    let word = entry.node.as_text().unwrap_or("bearer");
    let line = fields.report().line("providers", &format!("[\"{word}\"]"));
    let problem =
        Problem::error(format!("`{path}` is an older key that would leave the gateway open"))
            .help(format!("write `{line}`"));
    fields.report().add(problem, path, &entry.key);
}

/// Reports providers without their settings, and settings whose provider is not in the chain.
fn blocks(fields: &mut Fields<'_, '_>, providers: &[AuthProvider]) {
    for (provider, key, is_required) in [
        (AuthProvider::Bearer, "bearer", true),
        (AuthProvider::Jwt, "jwt", true),
        (AuthProvider::OauthAs, "oauth_as", true),
        (AuthProvider::Forwarded, "forwarded", false),
    ] {
        let word = provider.word();
        let (is_listed, is_there) = (providers.contains(&provider), fields.has(key));
        let block = block_name(fields, key);
        if is_listed && is_required && !is_there {
            let message = format!("`{word}` needs `{block}`, which is missing");
            let help = format!("add `{block}`, or remove `{word}` from `providers`");
            fields.problem("providers", Problem::error(message).help(help));
        } else if is_there && !is_listed && !fields.has("provider") {
            let path = fields.key("providers");
            let (message, help) = (
                format!("`{block}` is not used: `{path}` does not name `{word}`"),
                format!("add `{word}` to `providers`, or remove `{block}`"),
            );
            // Without any provider the gateway would be open, against the intention of the block.
            let problem = match providers {
                [] if !fields.has("providers") => Problem::error(message),
                _ => Problem::warning(message),
            };
            fields.problem(key, problem.help(help));
        }
    }
}

/// The path of a block, as its file spells it.
fn block_name(fields: &Fields<'_, '_>, key: &str) -> String {
    let path = fields.key(key);
    match path.strip_suffix("serverAuth.oauth_as") {
        Some(before) => format!("{before}serverAuth.oauthAs"),
        None => path,
    }
}

/// Reports a text that is no name of a header.
pub(super) fn check_header(fields: &mut Fields<'_, '_>, key: &'static str, name: &str) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        let message = format!("`{}` is not the name of a header", fields.key(key));
        let help = "write a name such as \"x-forwarded-user\"";
        fields.problem(key, Problem::error(message).help(help));
    }
}

/// Reports an empty list of networks: nothing could be trusted.
pub(super) fn check_networks(fields: &mut Fields<'_, '_>, key: &'static str) {
    let is_empty = |list: &[_]| list.is_empty();
    if fields.peek(key).and_then(|entry| entry.node.as_list()).is_some_and(is_empty) {
        let message = format!("`{}` is empty, so no proxy is trusted", fields.key(key));
        let help = "write the networks of the proxy: [\"127.0.0.1/32\"]";
        fields.problem(key, Problem::error(message).help(help));
    }
}

/// The values of the table for `config show`.
fn shown(fields: &mut Fields<'_, '_>, auth: &Auth) -> Vec<Shown> {
    let mut shown = Vec::new();
    let file = fields.report().file;
    if let Some(entry) = fields.peek("providers") {
        let words: Vec<&str> = auth.providers.iter().map(|one| one.word()).collect();
        let value = show::json(&Json::from(words));
        let origin = file.origin(&entry.key).to_string();
        shown.push(Shown { key: "gateway.auth.providers".to_owned(), value, origin });
    }
    if let Some(entry) = fields.peek("bearer") {
        let subjects: Vec<&str> = auth.bearer.iter().map(|one| one.subject.as_str()).collect();
        let value = show::text(&format!("*** for {}", subjects.join(", ")));
        let origin = file.origin(&entry.key).to_string();
        shown.push(Shown { key: "gateway.auth.bearer.tokens".to_owned(), value, origin });
    }
    for block in ["forwarded", "jwt", "oauth_as"] {
        let Some(table) = fields.peek(block).and_then(|entry| entry.node.as_table()) else {
            continue;
        };
        for (name, entry) in &table.entries {
            let key = format!("gateway.auth.{block}.{name}");
            let (value, origin) = (show::leaf(name, &entry.node), file.origin(&entry.key));
            shown.push(Shown { key, value, origin: origin.to_string() });
        }
    }
    shown
}

// === impl AuthProvider ===

impl OneOf for AuthProvider {
    const WORDS: Words<Self> = &[
        ("none", Self::None),
        ("bearer", Self::Bearer),
        ("tokens", Self::Tokens),
        ("forwarded", Self::Forwarded),
        ("jwt", Self::Jwt),
        ("oauth_as", Self::OauthAs),
    ];
}

impl AuthProvider {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        self.word()
    }
}

// === impl Providers ===

impl Form for Providers {
    type Value = Vec<AuthProvider>;
    type Schema = Vec<WordSchema<AuthProvider>>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<AuthProvider>> {
        let texts = fields.texts(key)?;
        let path = fields.key(key);
        let words = || AuthProvider::WORDS.iter().map(|(word, _)| *word);
        let mut providers = Vec::new();
        for text in texts {
            let word = text.value.value.as_str();
            let known = AuthProvider::WORDS.iter().find(|(known, _)| *known == word);
            let problem = match known {
                Some((_, provider)) if providers.contains(provider) => {
                    Problem::error(format!("`{path}` names `{word}` twice")).help("keep one")
                }
                Some((_, provider)) => {
                    providers.push(*provider);
                    continue;
                }
                None => {
                    let help = match nearest(word, words()) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("use {}", words().collect::<Vec<_>>().join(", ")),
                    };
                    let shown = text.value.shown();
                    Problem::error(format!("`{path}` names the unknown provider \"{shown}\""))
                        .help(help)
                }
            };
            fields.report().add(problem, path.clone(), &text.span);
        }
        Some(providers)
    }

    fn write(value: &Vec<AuthProvider>) -> Json {
        value.iter().map(|provider| provider.word()).collect()
    }
}
