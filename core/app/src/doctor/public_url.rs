//! Checks if apps on the web, such as Claude.ai and ChatGPT, can connect to a public address.
//!
//! Requests are made as the apps make them, over the public address, and nothing is changed there.
//! The list of needs is in `docs/guide/auth-server.md`.

use core::net::IpAddr;

use capstan_hub::ports::BoxFuture;
use capstan_safety::address::AddressClass;
use serde_json::{Value, json};

use super::Check;

/// The redirect addresses that the apps register, each with its app.
const REDIRECTS: [(&str, &str); 5] = [
    ("Claude.ai", "https://claude.ai/api/mcp/auth_callback"),
    ("Claude.com", "https://claude.com/api/mcp/auth_callback"),
    ("ChatGPT", "https://chatgpt.com/connector_platform_oauth_redirect"),
    ("ChatGPT connectors", "https://chatgpt.com/connector/oauth/abc123"),
    ("ChatGPT actions", "https://chat.openai.com/aip/g-abc123/oauth/callback"),
];

/// A redirect address that no gateway allows. A registration with it fails, so that the check
/// leaves no app behind; the error names the first address that is refused.
pub(super) const REFUSED: &str = "https://doctor.invalid/refused";

/// A token that no gateway accepts.
const WRONG_TOKEN: &str = "capstan-doctor";

/// Sends requests to the public address of a gateway.
pub trait PublicProbe: Send + Sync {
    /// Sends one request and reads the answer; no redirect is followed.
    ///
    /// # Errors
    /// If there is no answer; the text has the reason.
    fn send(&self, request: ProbeRequest) -> BoxFuture<'_, Result<ProbeAnswer, String>>;
}

/// A request to a public address.
#[derive(Clone, Debug, Default)]
pub struct ProbeRequest {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The address that the operator named. Other origins must be public.
    pub near: String,
    /// The address of the request.
    pub url: String,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body; JSON if there is one.
    pub body: String,
}

/// The answer to a request.
#[derive(Clone, Debug, Default)]
pub struct ProbeAnswer {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, or its beginning.
    pub body: String,
}

/// The checks of one address.
struct PublicUrl<'a> {
    probe: &'a dyn PublicProbe,
    /// The origin, without a slash at its end.
    origin: String,
    /// The address that users enter in an app.
    mcp: String,
    checks: Vec<Check>,
}

/// Checks a public address.
pub async fn check_public_url(probe: &dyn PublicProbe, url: &str) -> Vec<Check> {
    let trimmed = url.trim().trim_end_matches('/');
    let base = trimmed.strip_suffix("/mcp").unwrap_or(trimmed);
    let mcp = format!("{base}/mcp");
    let mut public = PublicUrl { probe, origin: base.to_owned(), mcp, checks: Vec::new() };
    if public.check_address() && public.check_reachable().await {
        let metadata = public.check_challenge().await;
        public.check_token_passes().await;
        if let Some(issuer) = public.check_resource(metadata).await {
            public.check_authorization_server(&issuer).await;
        }
    }
    public.checks
}

// === impl PublicUrl ===

impl PublicUrl<'_> {
    fn ok(&mut self, check: &str, detail: impl Into<String>) {
        self.checks.push(Check::ok(check, detail));
    }

    fn error(&mut self, check: &str, detail: impl Into<String>, fix: impl Into<String>) {
        self.checks.push(Check::error(check, detail, fix));
    }

    async fn get(&self, url: &str) -> Result<ProbeAnswer, String> {
        self.send("GET", url, Vec::new(), String::new()).await
    }

    async fn send(
        &self,
        method: &'static str,
        url: &str,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Result<ProbeAnswer, String> {
        let (near, url) = (self.origin.clone(), url.to_owned());
        self.probe.send(ProbeRequest { method, near, url, headers, body }).await
    }

    /// Checks the form of the address; false if nothing can be sent to it.
    fn check_address(&mut self) -> bool {
        let name = "address";
        let Some(rest) = self.origin.strip_prefix("https://") else {
            let detail = format!("{} does not begin with https://", self.origin);
            self.error(name, detail, "serve it over TLS; apps on the web accept nothing else");
            return false;
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.is_empty() || host != rest || host.contains('@') {
            let detail = format!("{} is not the address of a host", self.origin);
            self.error(name, detail, "use the form https://mcp.example.com");
            return false;
        }
        let bare = match host.strip_prefix('[') {
            Some(six) => six.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let is_inner = bare == "localhost"
            || bare
                .parse::<IpAddr>()
                .is_ok_and(|address| AddressClass::of(address) != AddressClass::Public);
        if is_inner {
            let detail = format!("{bare} is not reachable from the web");
            let fix = "give the gateway a public name; local apps connect without one";
            self.checks.push(Check::warning(name, detail, fix));
        } else {
            self.ok(name, format!("apps connect to {}", self.mcp));
        }
        true
    }

    /// Checks TLS and that something answers; false if nothing does.
    async fn check_reachable(&mut self) -> bool {
        match self.get(&format!("{}/health", self.origin)).await {
            Ok(_) => {
                self.ok("tls", "the certificate is valid for the name");
                true
            }
            Err(reason) => {
                let fix = "check DNS, the firewall and the certificate, with its intermediate ones";
                self.error("tls", reason, fix);
                false
            }
        }
    }

    fn initialize() -> String {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "capstan doctor", "version": env!("CARGO_PKG_VERSION") },
        });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
    }

    async fn post_mcp(&self, token: Option<&str>) -> Result<ProbeAnswer, String> {
        let mut headers = vec![("accept", "application/json, text/event-stream".to_owned())];
        headers.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
        self.send("POST", &self.mcp, headers, Self::initialize()).await
    }

    /// Checks the refusal of a request without a token. Returns the address of the metadata.
    async fn check_challenge(&mut self) -> Option<String> {
        let name = "refusal without a token";
        let answer = match self.post_mcp(None).await {
            Ok(answer) => answer,
            Err(reason) => {
                self.error(name, reason, "let the proxy pass POST requests to /mcp");
                return None;
            }
        };
        let challenge = answer.header("www-authenticate").unwrap_or_default().to_owned();
        let metadata = parameter(&challenge, "resource_metadata");
        match (answer.status, metadata) {
            (401, Some(metadata)) if is_below(metadata, &self.origin) => {
                self.ok(name, format!("status 401, with the metadata at {metadata}"));
                Some(metadata.to_owned())
            }
            (401, Some(metadata)) => {
                let detail = format!("it names the metadata at {metadata}, which is elsewhere");
                let fix = format!("set `public_url = \"{}\"` under `[gateway]`", self.origin);
                self.error(name, detail, fix);
                None
            }
            (401, None) => {
                let fix = "list `oauth_as` or `jwt` in `gateway.auth.providers`, and let the proxy \
                           pass the header WWW-Authenticate";
                self.error(name, "status 401 without the address of the metadata", fix);
                None
            }
            (200, _) => {
                let fix = "list `oauth_as` or `jwt` in `gateway.auth.providers`";
                self.error(name, "everyone on the web may connect", fix);
                None
            }
            (status, _) => {
                let fix = "let the proxy pass /mcp without a sign-in of its own, and check \
                           `allowed_hosts` under `[gateway]`";
                self.error(name, format!("status {status}, and 401 is expected"), fix);
                None
            }
        }
    }

    /// Checks that the header with the token reaches the gateway.
    async fn check_token_passes(&mut self) {
        let name = "header Authorization";
        let fix = "let the proxy pass the header Authorization to the gateway";
        match self.post_mcp(Some(WRONG_TOKEN)).await {
            Ok(answer) if answer.status == 401 => {
                let challenge = answer.header("www-authenticate").unwrap_or_default();
                if parameter(challenge, "error") == Some("invalid_token") {
                    self.ok(name, "it reaches the gateway");
                } else {
                    self.error(name, "the gateway did not see the token that was sent", fix);
                }
            }
            Ok(answer) => {
                self.error(name, format!("status {} for a wrong token", answer.status), fix);
            }
            Err(reason) => self.error(name, reason, fix),
        }
    }

    /// Checks the metadata of the resource. Returns the authorization server.
    async fn check_resource(&mut self, named: Option<String>) -> Option<String> {
        let well_known = format!("{}/.well-known/oauth-protected-resource", self.origin);
        let places = [Some(format!("{well_known}/mcp")), Some(well_known), named];
        let mut issuer = None;
        for (place, url) in ["metadata of /mcp", "metadata at the root", "metadata that is named"]
            .into_iter()
            .zip(places)
        {
            let Some(url) = url else { continue };
            let fix = "let the proxy pass the addresses below /.well-known/";
            let document = match self.document(&url).await {
                Ok(document) => document,
                Err(reason) => {
                    self.error(place, format!("{url}: {reason}"), fix);
                    continue;
                }
            };
            let resource = text(&document, "resource").unwrap_or_default();
            let servers = list(&document, "authorization_servers");
            let server = servers.and_then(|all| all.first()?.as_str());
            if !is_below(resource, &self.origin) {
                let detail = format!("it is for {resource}, and apps connect to {}", self.mcp);
                let fix = format!("set `public_url = \"{}\"` under `[gateway]`", self.origin);
                self.error(place, detail, fix);
            } else if let Some(server) = server {
                self.ok(place, format!("{resource}, with the authorization server {server}"));
                issuer = issuer.or_else(|| Some(server.to_owned()));
            } else {
                let fix = "list `oauth_as` or `jwt` in `gateway.auth.providers`";
                self.error(place, "it names no authorization server", fix);
            }
        }
        issuer
    }

    async fn document(&self, url: &str) -> Result<Value, String> {
        let answer = self.get(url).await?;
        if answer.status != 200 {
            return Err(format!("status {}", answer.status));
        }
        serde_json::from_str(&answer.body).map_err(|_| "the answer is not JSON".to_owned())
    }

    async fn check_authorization_server(&mut self, issuer: &str) {
        let name = "authorization server";
        let bare = issuer.trim_end_matches('/');
        let mut found = Err("no metadata".to_owned());
        for kind in ["oauth-authorization-server", "openid-configuration"] {
            let (origin, path) = split(bare);
            found = match (kind, path) {
                ("openid-configuration", path) if !path.is_empty() => {
                    self.document(&format!("{bare}/.well-known/{kind}")).await
                }
                (kind, path) => self.document(&format!("{origin}/.well-known/{kind}{path}")).await,
            };
            if found.is_ok() {
                break;
            }
        }
        let document = match found {
            Ok(document) => document,
            Err(reason) => {
                let fix = "let the proxy pass /.well-known/oauth-authorization-server";
                self.error(name, format!("the metadata of {issuer}: {reason}"), fix);
                return;
            }
        };
        let missing = missing(&document, issuer);
        if missing.is_empty() {
            self.ok(name, format!("{issuer} offers all that apps need"));
        } else {
            let fix = "use an authorization server with these, or `oauth_as`";
            self.error(name, format!("{issuer} has no {}", missing.join(", ")), fix);
        }
        // The rest is about the gateway's own server.
        if bare != self.origin {
            return;
        }
        if let Some(registration) = text(&document, "registration_endpoint") {
            self.check_redirects(registration).await;
        }
        if let Some(page) = text(&document, "authorization_endpoint") {
            self.check_page(page).await;
        }
    }

    /// Checks which apps may register.
    async fn check_redirects(&mut self, registration: &str) {
        for (app, redirect) in REDIRECTS {
            let check = format!("redirect address of {app}");
            let body = json!({
                "client_name": "capstan doctor", "redirect_uris": [redirect, REFUSED],
                "token_endpoint_auth_method": "none",
            });
            let sent = self.send("POST", registration, Vec::new(), body.to_string()).await;
            let (status, text) = match sent {
                Ok(answer) => (answer.status, answer.body),
                Err(reason) => (0, reason),
            };
            if status == 400 && text.contains(REFUSED) {
                self.ok(&check, format!("{redirect} may register"));
            } else if status == 400 && text.contains("invalid_redirect_uri") {
                let fix = format!("add \"{redirect}\" to `redirect_uri_allowlist`");
                self.checks.push(Check::warning(check, format!("{redirect} is refused"), fix));
            } else {
                let fix = "let the proxy pass POST requests to /register; an hour has 60 attempts";
                self.error(&check, format!("registration does not work: status {status}"), fix);
            }
        }
    }

    /// Checks the page on which users agree.
    async fn check_page(&mut self, page: &str) {
        let name = "sign-in page";
        let answer = match self.get(page).await {
            Ok(answer) => answer,
            Err(reason) => {
                self.error(name, reason, "let the proxy pass /authorize");
                return;
            }
        };
        let policy = answer.header("content-security-policy").unwrap_or_default();
        match answer.status {
            403 => {
                let fix = "add the address of the proxy to `trusted_source_cidrs`";
                self.error(name, "the gateway does not trust the proxy (status 403)", fix);
            }
            404 | 405 | 500.. => {
                let detail = format!("status {}", answer.status);
                self.error(name, detail, "let the proxy pass /authorize");
            }
            // The request has no parameters, so that the gateway shows an error page.
            400 if !policy.contains("frame-ancestors 'none'") => {
                let fix = "let the proxy pass Content-Security-Policy and X-Frame-Options";
                self.error(name, "its protection against framing does not arrive", fix);
            }
            status => self.ok(name, format!("it is shown (status {status} without an app)")),
        }
    }
}

/// The needs of apps that the metadata of an authorization server does not meet.
fn missing(document: &Value, issuer: &str) -> Vec<String> {
    let has = |key: &str, word: &str| {
        list(document, key).is_some_and(|all| all.iter().any(|one| one == word))
    };
    let is_secure =
        |key: &str| text(document, key).is_some_and(|address| address.starts_with("https://"));
    let mut missing = Vec::new();
    let mut need = |is_met: bool, what: &str| {
        if !is_met {
            missing.push(what.to_owned());
        }
    };
    need(text(document, "issuer") == Some(issuer), "`issuer` with exactly this address");
    need(is_secure("authorization_endpoint"), "`authorization_endpoint` over https");
    need(is_secure("token_endpoint"), "`token_endpoint` over https");
    need(has("code_challenge_methods_supported", "S256"), "PKCE with S256");
    need(has("response_types_supported", "code"), "response type `code`");
    let grants = "grant_types_supported";
    // RFC 8414: without the member, the authorization code is offered.
    need(
        document.get(grants).is_none() || has(grants, "authorization_code"),
        "authorization codes",
    );
    need(has(grants, "refresh_token"), "refresh tokens");
    let can_register = is_secure("registration_endpoint")
        || document.get("client_id_metadata_document_supported").is_some_and(|it| it == true);
    need(can_register, "registration of apps");
    let methods = "token_endpoint_auth_methods_supported";
    need(has(methods, "none"), "clients without a secret");
    missing
}

fn text<'v>(document: &'v Value, key: &str) -> Option<&'v str> {
    document.get(key)?.as_str()
}

fn list<'v>(document: &'v Value, key: &str) -> Option<&'v Vec<Value>> {
    document.get(key)?.as_array()
}

/// Splits an address into its origin and its path.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url.get(host..).and_then(|rest| rest.find('/')).map_or(url.len(), |at| host + at);
    url.split_at(path)
}

/// True if an address belongs to this origin.
fn is_below(url: &str, origin: &str) -> bool {
    url.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A quoted parameter of a challenge.
fn parameter<'t>(challenge: &'t str, name: &str) -> Option<&'t str> {
    let mark = format!("{name}=\"");
    let at = challenge.find(&mark)?;
    challenge.get(at + mark.len()..)?.split('"').next()
}

// === impl ProbeAnswer ===

impl ProbeAnswer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
