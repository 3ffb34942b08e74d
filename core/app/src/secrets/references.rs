//! Resolves the references of a server's settings to secrets.
//!
//! A reference is resolved when the server connects. It stays in the configuration, so a secret that
//! changes makes no other server.

use std::collections::BTreeMap;

use capstan_config::source::expand::join;
use capstan_config::{
    Config, Kind, OAuthConfig, OpenApi, Program, References, Remote, Server, ServerEntry,
};
use capstan_hub::ports::{VaultKey, VaultKind};
use capstan_model::{Credentials, Piece, Secret, SecretName, SecretReference};
use capstan_safety::command;
use serde_json::Value as Json;

use super::Secrets;

/// Longest header that a program may print, and the most of them.
const MAX_HEADER: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;

/// The values that references of a server stand for.
#[derive(Debug, Default)]
pub struct ResolvedServer {
    /// The entry, with all references that are not in headers of a remote server replaced.
    pub entry: Option<ServerEntry>,
    /// The secrets, in the order of their references.
    pub secrets: Vec<Secret<String>>,
}

/// Headers whose values were resolved.
pub type ResolvedHeaders = Vec<(String, Secret<String>)>;

/// The references that a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permitted {
    All,
    Keyring,
}

/// Resolves the references of one entry.
struct Resolver<'a> {
    secrets: &'a Secrets,
    config: &'a Config,
    entry: &'a ServerEntry,
    found: Vec<Secret<String>>,
}

/// True if the server can be made only after its references were resolved. Headers of a remote
/// server do not count; they are resolved by [`Secrets::headers`].
pub fn must_be_resolved(server: &Server) -> bool {
    if server.references == References::Literal {
        return false;
    }
    let has = |text: &str| !SecretReference::all(text).is_empty();
    let in_program = |program: &Program| {
        let env = program.env.values().any(|value| has(value.reveal()));
        env || program.args.iter().chain(&program.cwd).any(|text| has(text))
    };
    let mut oauth = server.oauth_config.iter().flat_map(OAuthConfig::secrets);
    if oauth.any(|secret| has(secret.reveal())) {
        return true;
    }
    match &server.kind {
        Kind::Stdio(program) => in_program(program),
        Kind::Cli(cli) => in_program(&cli.program),
        Kind::Http(remote) | Kind::Sse(remote) => has(&remote.url),
        Kind::OpenApi(openapi) => {
            let urls = openapi.base_url.iter().chain([&openapi.document]);
            let headers = openapi.headers.values().map(Secret::reveal);
            let auth = openapi.auth.values().flat_map(texts_of);
            urls.chain(headers).chain(auth).any(|text| has(text))
        }
    }
}

/// True if a header of a remote server must be resolved, or a program prints some.
pub fn must_fetch_headers(server: &Server, remote: &Remote) -> bool {
    remote.headers_helper.is_some() || remote.headers.values().any(|value| refers(server, value))
}

/// The headers of a remote server that are known without resolving anything.
pub fn known_headers(server: &Server, remote: &Remote) -> ResolvedHeaders {
    let known = remote.headers.iter().filter(|(_, value)| !refers(server, value));
    known.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn refers(server: &Server, value: &Secret<String>) -> bool {
    server.references == References::Resolved && !SecretReference::all(value.reveal()).is_empty()
}

/// The texts of credentials.
fn texts_of(credentials: &Credentials) -> Vec<&String> {
    match credentials {
        Credentials::Token(token) => vec![token.reveal()],
        Credentials::Password { username, password } => vec![username, password.reveal()],
        Credentials::Client { id, secret, token_url, scopes: _ } => {
            [id, secret.reveal()].into_iter().chain(token_url).collect()
        }
    }
}

// === impl Secrets ===

impl Secrets {
    /// Resolves the references of an entry, except those in headers of a remote server.
    ///
    /// # Errors
    /// The reason, with the key, the file and the secret.
    pub async fn resolve(
        &self,
        config: &Config,
        entry: &ServerEntry,
    ) -> Result<ResolvedServer, String> {
        let Ok(server) = &entry.status else { return Ok(ResolvedServer::default()) };
        let mut server = server.clone();
        let mut resolver = Resolver { secrets: self, config, entry, found: Vec::new() };
        if let Some(oauth) = &mut server.oauth_config {
            resolver.oauth(oauth).await?;
        }
        match &mut server.kind {
            Kind::Stdio(program) => resolver.program(program).await?,
            Kind::Cli(cli) => resolver.program(&mut cli.program).await?,
            Kind::Http(remote) | Kind::Sse(remote) => {
                resolver.text("url", &mut remote.url).await?;
            }
            Kind::OpenApi(openapi) => resolver.openapi(openapi).await?,
        }
        let secrets = resolver.found;
        let mut entry = ServerEntry { status: Ok(server), ..entry.clone() };
        entry.secrets.extend(secrets.iter().cloned());
        Ok(ResolvedServer { entry: Some(entry), secrets })
    }

    /// Resolves the headers of a remote server and runs its helper; returns only these headers.
    ///
    /// # Errors
    /// The reason, with the key, the file and the secret.
    pub async fn headers(
        &self,
        config: &Config,
        entry: &ServerEntry,
    ) -> Result<ResolvedHeaders, String> {
        let Ok(server) = &entry.status else { return Ok(Vec::new()) };
        let (Kind::Http(remote) | Kind::Sse(remote)) = &server.kind else { return Ok(Vec::new()) };
        let mut resolver = Resolver { secrets: self, config, entry, found: Vec::new() };
        let mut headers = Vec::new();
        for (name, value) in &remote.headers {
            if refers(server, value) {
                let key = join("headers", name);
                headers.push((name.clone(), resolver.secret(&key, value, Permitted::All).await?));
            }
        }
        if let Some(words) = &remote.headers_helper {
            let printed = resolver.helper(words, &remote.url).await?;
            headers
                .retain(|(name, _)| !printed.iter().any(|(new, _)| new.eq_ignore_ascii_case(name)));
            headers.extend(printed);
        }
        Ok(headers)
    }
}

// === impl Resolver ===

impl Resolver<'_> {
    async fn program(&mut self, program: &mut Program) -> Result<(), String> {
        for argument in &mut program.args {
            self.text("args", argument).await?;
        }
        if let Some(cwd) = &mut program.cwd {
            self.text("cwd", cwd).await?;
        }
        for (name, value) in &mut program.env {
            *value = self.secret(&join("env", name), value, Permitted::All).await?;
        }
        Ok(())
    }

    async fn oauth(&mut self, oauth: &mut OAuthConfig) -> Result<(), String> {
        let OAuthConfig { client_secret, private_key, idp_client_secret, id_token, .. } = oauth;
        for (key, secret) in [
            ("client_secret", client_secret),
            ("private_key", private_key),
            ("idp_client_secret", idp_client_secret),
            ("id_token", id_token),
        ] {
            if let Some(secret) = secret {
                *secret = self.secret(&join("oauth_config", key), secret, Permitted::All).await?;
            }
        }
        Ok(())
    }

    async fn openapi(&mut self, openapi: &mut OpenApi) -> Result<(), String> {
        self.text("openapi.document", &mut openapi.document).await?;
        if let Some(url) = &mut openapi.base_url {
            self.text("openapi.base_url", url).await?;
        }
        for (name, value) in &mut openapi.headers {
            *value = self.secret(&join("headers", name), value, Permitted::All).await?;
        }
        for (scheme, credentials) in &mut openapi.auth {
            let key = join("openapi.auth", scheme);
            self.credentials(&key, credentials).await?;
        }
        Ok(())
    }

    async fn credentials(
        &mut self,
        key: &str,
        credentials: &mut Credentials,
    ) -> Result<(), String> {
        match credentials {
            Credentials::Token(token) => {
                *token = self.secret(&join(key, "token"), token, Permitted::All).await?;
            }
            Credentials::Password { username, password } => {
                self.text(&join(key, "username"), username).await?;
                *password = self.secret(&join(key, "password"), password, Permitted::All).await?;
            }
            Credentials::Client { id, secret, token_url, scopes: _ } => {
                self.text(&join(key, "client_id"), id).await?;
                *secret = self.secret(&join(key, "client_secret"), secret, Permitted::All).await?;
                if let Some(url) = token_url {
                    self.text(&join(key, "token_url"), url).await?;
                }
            }
        }
        Ok(())
    }

    /// Resolves a text that may refer to stored secrets only.
    async fn text(&mut self, key: &str, text: &mut String) -> Result<(), String> {
        let resolved = self.secret(key, &Secret::new(text.clone()), Permitted::Keyring).await?;
        resolved.reveal().clone_into(text);
        Ok(())
    }

    async fn secret(
        &mut self,
        key: &str,
        text: &Secret<String>,
        permitted: Permitted,
    ) -> Result<Secret<String>, String> {
        let place = self.place(key);
        let pieces =
            SecretReference::pieces(text.reveal()).map_err(|bad| format!("{place}: {bad}"))?;
        let mut whole = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => whole.push_str(text),
                Piece::Reference(SecretReference::Keyring(name)) => {
                    let secret = self.stored(&place, &name).await?;
                    whole.push_str(secret.reveal());
                    self.found.push(secret);
                }
                Piece::Reference(SecretReference::Command(line)) if permitted == Permitted::All => {
                    let secret = self.output(&place, &line).await?;
                    whole.push_str(secret.reveal());
                    self.found.push(secret);
                }
                // An ordinary text; the configuration refuses the form in braces.
                Piece::Reference(SecretReference::Command(_)) => whole.push_str(text.reveal()),
            }
        }
        Ok(Secret::new(whole))
    }

    async fn stored(&self, place: &str, name: &SecretName) -> Result<Secret<String>, String> {
        let key = VaultKey { kind: VaultKind::Secret, name: name.as_str().to_owned() };
        match self.secrets.vault.read(&key).await {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => Err(format!(
                "{place} needs the secret `{name}`, which is not stored; run `capstan secret set {name}`"
            )),
            Err(error) => Err(format!("{place} needs the secret `{name}`: {error}")),
        }
    }

    async fn output(&self, place: &str, line: &str) -> Result<Secret<String>, String> {
        let Some(words) = command::words(line) else {
            return Err(format!("{place} has a command that cannot be split into words: `{line}`"));
        };
        self.run(place, words, BTreeMap::new()).await
    }

    /// Runs a program for a key and returns its output, without the last line break.
    async fn run(
        &self,
        place: &str,
        words: Vec<String>,
        variables: BTreeMap<String, String>,
    ) -> Result<Secret<String>, String> {
        let program = words.first().cloned().unwrap_or_default();
        if !command::is_fixed(&program) {
            return Err(format!(
                "{place} has the relative path `{program}`, which is another program in each \
                 folder; write its whole path"
            ));
        }
        let allowed = self.config.allowed_commands(&self.entry.origin.file);
        if !command::is_allowed(&program, allowed.as_deref()) {
            return Err(format!(
                "{place} may not run `{program}`; add it to `mcp.allowed_commands`"
            ));
        }
        let output = self.secrets.commands.run(words, variables).await;
        let output = output.map_err(|reason| format!("{place}: `{program}` {reason}"))?;
        let text = output.reveal();
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            return Err(format!("{place}: `{program}` printed nothing"));
        }
        Ok(Secret::new(text.to_owned()))
    }

    /// Runs the helper of a server and reads the headers that it prints.
    async fn helper(&mut self, words: &[String], url: &str) -> Result<ResolvedHeaders, String> {
        let place = self.place("headers_helper");
        let name = self.entry.display.clone();
        let variables = [
            ("CAPSTAN_SERVER_NAME", name.clone()),
            ("CAPSTAN_SERVER_URL", url.to_owned()),
            // Helpers that were written for Claude Code read these.
            ("CLAUDE_CODE_MCP_SERVER_NAME", name),
            ("CLAUDE_CODE_MCP_SERVER_URL", url.to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let output = self.run(&place, words.to_vec(), variables.into_iter().collect()).await?;
        let malformed = || {
            format!(
                "{place}: the program did not print a JSON object of headers, such as {{\"X-Key\": \"…\"}}"
            )
        };
        let Ok(Json::Object(printed)) = serde_json::from_str(output.reveal()) else {
            return Err(malformed());
        };
        if printed.len() > MAX_HEADERS {
            return Err(format!("{place}: the program printed more than {MAX_HEADERS} headers"));
        }
        let mut headers = Vec::new();
        for (name, value) in printed {
            let value = value.as_str().ok_or_else(malformed)?;
            let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            let fits = !name.is_empty()
                && name.chars().all(is_token)
                && value.len() <= MAX_HEADER
                && !value.contains(|c: char| c.is_control() && c != '\t');
            if !fits {
                return Err(format!("{place}: the program printed a header that cannot be sent"));
            }
            headers.push((name, Secret::new(value.to_owned())));
        }
        Ok(headers)
    }

    /// The key and its file, for errors.
    fn place(&self, key: &str) -> String {
        let server = join("servers", &self.entry.display);
        format!("`{server}.{key}` in {}", self.entry.origin.file)
    }
}
