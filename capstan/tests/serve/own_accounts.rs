//! A server that callers use with accounts of their own, and its authorization server.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fail, http, modern, with};

const CALLERS: &str = "[gateway.auth]\nproviders = [\"bearer\"]\n\
    [gateway.auth.bearer.tokens]\n\
    token-of-ann = \"ann\"\ntoken-of-bob = \"bob\"\ntoken-of-eve = \"eve\"\n\n";

/// The server: its origin, and every request that it got.
struct Peer {
    origin: String,
    seen: Arc<Mutex<Vec<String>>>,
}

/// A browser with its cookies, whose user has this account at the server.
struct Browser<'a> {
    gateway: &'a str,
    account: &'a str,
    cookies: BTreeMap<String, String>,
}

// === impl Peer ===

impl Peer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (own, log) = (origin.clone(), Arc::clone(&seen));
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !is_whole(&request) {
                    match stream.read(&mut piece) {
                        Ok(count @ 1..) => request.extend_from_slice(&piece[..count]),
                        Ok(_) | Err(_) => break,
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let (status, header, body) = answer(&own, &request);
                log.lock().unwrap().push(request);
                let length = body.len();
                // The other side may be gone.
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{header}\
                     content-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Self { origin, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

fn field<'t>(text: &'t str, name: &str) -> &'t str {
    let found =
        text.split(['?', '&', ' ']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_default()
}

/// Answers a request: status, a header, body.
fn answer(origin: &str, request: &str) -> (u16, String, String) {
    let none = String::new;
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
    let line = head.lines().next().unwrap_or_default();
    let path = line.split(' ').nth(1).unwrap_or_default();
    let of = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let plain = |value: Value| (200, none(), value.to_string());
    match path.split('?').next().unwrap_or_default() {
        "/.well-known/oauth-protected-resource/mcp" => plain(json!({
            "resource": format!("{origin}/mcp"), "authorization_servers": [origin],
        })),
        "/.well-known/oauth-authorization-server" => plain(json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        })),
        "/register" => {
            let asked: Value = serde_json::from_str(body).unwrap_or_default();
            let uris = &asked["redirect_uris"];
            (201, none(), json!({ "client_id": "app", "redirect_uris": uris }).to_string())
        }
        "/authorize" => {
            let (account, state) = (of("x-account").unwrap_or_default(), field(path, "state"));
            let back = field(path, "redirect_uri").replace("%3A", ":").replace("%2F", "/");
            (302, format!("location: {back}?code=code-{account}&state={state}\r\n"), none())
        }
        "/token" => {
            let account = field(body, "code").trim_start_matches("code-").to_owned();
            let token = format!("account-token-{account}");
            plain(json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600 }))
        }
        "/mcp" => mcp(origin, of("authorization"), body),
        _ => (404, none(), none()),
    }
}

/// Answers a message to the MCP server.
fn mcp(origin: &str, authorization: Option<String>, body: &str) -> (u16, String, String) {
    let none = String::new;
    let plain = |value: Value| (200, none(), value.to_string());
    let Some(account) =
        authorization.and_then(|all| all.strip_prefix("Bearer account-token-").map(str::to_owned))
    else {
        let at = format!("{origin}/.well-known/oauth-protected-resource/mcp");
        let header = format!("www-authenticate: Bearer resource_metadata=\"{at}\"\r\n");
        return (401, header, json!({ "error": "invalid_token" }).to_string());
    };
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let id = &message["id"];
    let result = match message["method"].as_str().unwrap_or_default() {
        _ if id.is_null() => return (202, none(), none()),
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "accounts", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [
            { "name": "whoami", "inputSchema": { "type": "object" } },
            { "name": format!("tool_of_{account}"), "inputSchema": { "type": "object" } },
        ] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": account }] }),
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return plain(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    plain(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

// === impl Browser ===

impl<'a> Browser<'a> {
    fn of(gateway: &'a str, account: &'a str) -> Self {
        Self { gateway, account, cookies: BTreeMap::new() }
    }

    /// Requests a page: the head in its own spelling, and the body.
    fn open(&mut self, method: &str, url: &str, body: &str) -> (String, String) {
        let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let is_gateway = address == self.gateway;
        let request = capstan_testkit::http::request(method, &format!("/{path}"));
        let request = request.with("connection", "close").with("host", address);
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = if is_gateway && !cookies.is_empty() {
            request.and("Cookie", &cookies.join("; "))
        } else {
            request
        };
        let request = request.and("X-Account", self.account).body(body);
        let answer = capstan_testkit::http::exchange(address, request);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        for line in head.lines() {
            if let Some(cookie) = line.strip_prefix("set-cookie: ") {
                let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        (head.to_owned(), body.to_owned())
    }

    /// Agrees on the page of the gateway and signs in: the address that the browser is sent to.
    fn agree(&mut self, url: &str) -> String {
        let (_, page) = self.open("GET", url, "");
        let browser = page.split_once("name=\"browser\" value=\"").unwrap().1;
        let form = format!("browser={}", browser.split('"').next().unwrap());
        let (head, _) = self.open("POST", url, &form);
        let (head, _) = self.open("GET", &location(&head), "");
        location(&head)
    }

    fn sign_in(&mut self, url: &str) -> String {
        let back = self.agree(url);
        self.open("GET", &back, "").0
    }
}

fn location(head: &str) -> String {
    let found = head.lines().find_map(|line| line.strip_prefix("location: "));
    found.unwrap_or_else(|| fail(&format!("no redirect: {head}"))).to_owned()
}

/// Sends a modern request as the caller with this token.
fn ask(address: &str, token: &str, can: &Value, method: &str, params: &Value) -> Value {
    let mut params = modern(params.clone());
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can.clone();
    let named = params["name"].as_str().map(|name| format!("\r\nMcp-Name: {name}"));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nAuthorization: Bearer {token}\r\nMCP-Protocol-Version: 2026-07-28\
         \r\nMcp-Method: {method}{}",
        named.unwrap_or_default()
    );
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let (status, body) = http(address, &head, &call.to_string());
    serde_json::from_str(&body).unwrap_or_else(|_| fail(&format!("{status} {body}")))
}

fn whoami() -> Value {
    json!({ "name": "accounts__whoami", "arguments": {} })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| fail(&answer.to_string()))
}

/// The address in an answer that names one.
fn address_in(answer: &Value) -> String {
    let text = answer.to_string();
    let rest = text.split_once("http://").unwrap_or_else(|| fail(&text)).1;
    format!("http://{}", rest.split(['"', ' ', '\\']).next().unwrap())
}

fn tools(address: &str, token: &str) -> Vec<String> {
    let listed = ask(address, token, &json!({}), "tools/list", &json!({}));
    crate::stage::tool_names(&listed)
}

fn world(peer: &Peer) -> World {
    with(&format!(
        "{ALL}{CALLERS}[servers.accounts]\ntype = \"http\"\nurl = \"{}/mcp\"\n\
         login = \"per-caller\"\n",
        peer.origin
    ))
}

const NOTHING: fn() -> Value = || json!({});

#[test]
fn each_caller_signs_in_and_sees_its_own_account() {
    let peer = Peer::start();
    let world = world(&peer);
    let (_gateway, address) = Gateway::listening_with(&world, &[("CAPSTAN_KEYRING", "off")]);
    let address = address.as_str();

    // A client that can ask its user to visit a page: the call continues after the sign-in.
    let can = json!({ "elicitation": { "url": {} } });
    let asked = ask(address, "token-of-ann", &can, "tools/call", &whoami());
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create", "{asked}");
    assert_eq!(request["params"]["mode"], "url", "{asked}");
    let url = request["params"]["url"].as_str().unwrap();
    assert!(Browser::of(address, "ada").sign_in(url).starts_with("HTTP/1.1 200"), "{url}");
    let mut again = whoami();
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({ key: { "action": "accept" } });
    assert_eq!(text(&ask(address, "token-of-ann", &can, "tools/call", &again)), "ada");

    // An older client: an error with the address, then the same call.
    let refused = ask(address, "token-of-bob", &NOTHING(), "tools/call", &whoami());
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let url = address_in(&refused);
    assert!(Browser::of(address, "bea").sign_in(&url).starts_with("HTTP/1.1 200"));
    assert_eq!(text(&ask(address, "token-of-bob", &NOTHING(), "tools/call", &whoami())), "bea");

    // Neither sees the other's account, now and in lists.
    assert_eq!(text(&ask(address, "token-of-ann", &NOTHING(), "tools/call", &whoami())), "ada");
    assert_eq!(tools(address, "token-of-ann"), ["accounts__whoami", "accounts__tool_of_ada"]);
    assert_eq!(tools(address, "token-of-bob"), ["accounts__whoami", "accounts__tool_of_bea"]);
    let other = json!({ "name": "accounts__tool_of_ada", "arguments": {} });
    let refused = ask(address, "token-of-bob", &NOTHING(), "tools/call", &other);
    assert!(refused["error"].is_object(), "{refused}");

    // A caller who has not signed in uses no account of others.
    assert_eq!(tools(address, "token-of-eve"), [""; 0]);
    let refused = ask(address, "token-of-eve", &NOTHING(), "tools/call", &whoami());
    assert_eq!(refused["result"]["isError"], true, "{refused}");

    for request in peer.seen() {
        for token in ["token-of-ann", "token-of-bob", "token-of-eve"] {
            assert!(!request.contains(&format!("Bearer {token}")), "{request}");
            assert!(!request.contains(token) || request.contains("account-token-"), "{request}");
        }
    }
}

#[test]
fn the_sign_in_of_a_caller_counts_only_in_the_browser_that_agreed() {
    let peer = Peer::start();
    let world = world(&peer);
    let (_gateway, address) = Gateway::listening_with(&world, &[("CAPSTAN_KEYRING", "off")]);
    let address = address.as_str();
    let call = |token| ask(address, token, &NOTHING(), "tools/call", &whoami());
    let url = address_in(&call("token-of-ann"));

    // The page cannot be framed, and names caller, server and the place of the sign-in.
    let (head, page) = Browser::of(address, "ada").open("GET", &url, "");
    assert!(head.contains("x-frame-options: DENY") && head.contains("frame-ancestors 'none'"));
    assert!(page.contains("<b>ann</b>") && page.contains("accounts"), "{page}");

    // A form without the cookie of its page, from another site, or a made-up sign-in.
    let status = |head: &str| head.split(' ').nth(1).unwrap().to_owned();
    let forged = Browser::of(address, "ada").open("POST", &url, "browser=x").0;
    assert_eq!(status(&forged), "403");
    let made_up = format!("http://{address}/login/{}", "x".repeat(43));
    assert_eq!(status(&Browser::of(address, "ada").open("GET", &made_up, "").0), "404");

    // The answer of the authorization server, brought by another browser.
    let mut ann = Browser::of(address, "ada");
    let back = ann.agree(&url);
    let (head, _) = Browser::of(address, "mallory").open("GET", &back, "");
    assert_eq!(status(&head), "400");
    let mut other = Browser::of(address, "mallory");
    other.open("GET", &url, "");
    assert_eq!(status(&other.open("GET", &back, "").0), "400");
    assert!(peer.seen().iter().all(|request| !request.starts_with("POST /token")));
    assert_eq!(status(&ann.open("GET", &back, "").0), "200");
    assert_eq!(text(&call("token-of-ann")), "ada");
    // It counts once.
    assert_eq!(status(&ann.open("GET", &back, "").0), "400");
}

#[test]
fn a_caller_without_a_name_has_no_account_and_settings_that_share_one_are_refused() {
    let peer = Peer::start();
    let server = format!(
        "[servers.accounts]\ntype = \"http\"\nurl = \"{}/mcp\"\nlogin = \"per-caller\"\n",
        peer.origin
    );
    let world = with(&format!("{ALL}{server}"));
    let (_gateway, address) = Gateway::listening_with(&world, &[("CAPSTAN_KEYRING", "off")]);
    let refused = ask(&address, "none", &NOTHING(), "tools/call", &whoami());
    assert!(refused.to_string().contains("this caller has not authenticated"), "{refused}");
    for shared in [
        "oauth = \"off\"\n",
        "headers = { Authorization = \"Bearer x\" }\n",
        "oauth_config = { grant = \"device\" }\n",
    ] {
        let world = with(&format!("{ALL}{server}{shared}"));
        let ended = world.capstan(["config", "check"]).run();
        assert_ne!(ended.status, Some(0), "{shared}");
        assert!(ended.stderr.contains("would let all"), "{}", ended.stderr);
    }
}
