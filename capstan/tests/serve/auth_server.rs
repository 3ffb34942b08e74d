//! The gateway's own authorization server, from outside.

use std::fs;
use std::thread;

use capstan_testkit::http::{HttpRequest, exchange, message};
use capstan_testkit::{World, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, LIMIT, fixture, modern, with};

const CALLBACK: &str = "https://claude.ai/api/mcp/auth_callback";

/// The verifier of RFC 7636, appendix B, and its challenge.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// The block of row C36.
const C36: &str = r#"{"mcpServers":{},"serverAuth":{"providers":["oauth_as"],"oauthAs":{
    "issuerUrl":"https://mcp.example.com","jwtSecret":"SECRET","trustedSourceCidrs":[CIDRS],
    "redirectUriAllowlist":["https://claude.ai/api/mcp/auth_callback",
        "https://chat.openai.com/aip/*/oauth/callback"],"injectedRoles":["via-oauth"]}}}"#;

/// A server at which local users sign in.
const USERS: &str = "[gateway.auth]\nproviders = [\"oauth_as\"]\n[gateway.auth.oauth_as]\n\
    issuer_url = \"https://mcp.example.com\"\n\
    redirect_uri_allowlist = [\"https://claude.ai/api/mcp/auth_callback\"]\n\n";

/// An answer: status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// A parameter of the address that it redirects to.
    fn param(&self, name: &str) -> Option<String> {
        let (_, query) = self.header("location")?.split_once('?')?;
        let value = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        value.map(str::to_owned)
    }
}

fn send(address: &str, request: HttpRequest) -> Answer {
    let answer = exchange(address, request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

fn form(address: &str, path: &str, body: &str) -> Answer {
    let kind = "application/x-www-form-urlencoded";
    send(address, message("POST", path, body).with("Content-Type", kind))
}

fn register(address: &str, redirect: &str) -> Answer {
    let body = json!({ "client_name": "App", "redirect_uris": [redirect] }).to_string();
    send(address, message("POST", "/register", &body))
}

fn registered(address: &str) -> String {
    register(address, CALLBACK).json()["client_id"].as_str().unwrap().to_owned()
}

fn escaped(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F")
}

/// Opens the page of a client and agrees, with these further fields.
fn agree(address: &str, client: &str, fields: &str) -> Answer {
    let path = format!(
        "/authorize?response_type=code&client_id={client}&redirect_uri={}&state=s&\
         code_challenge={CHALLENGE}&code_challenge_method=S256",
        escaped(CALLBACK)
    );
    let named = |request: HttpRequest| request.with("X-Forwarded-User", "ann");
    let page = send(address, named(message("GET", &path, "")));
    assert_eq!(page.status, 200, "{}", page.body);
    let cookie = page.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let token = page.body.split("name=\"form_token\" value=\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    let body = format!("form_token={token}&decision=allow{fields}");
    let request = message("POST", &path, &body)
        .with("Content-Type", "application/x-www-form-urlencoded")
        .with("Origin", "null")
        .with("Cookie", &cookie);
    send(address, named(request))
}

fn redeem(address: &str, client: &str, code: &str) -> Answer {
    let redirect = escaped(CALLBACK);
    let body = format!(
        "grant_type=authorization_code&client_id={client}&code={code}&redirect_uri={redirect}&\
         code_verifier={VERIFIER}"
    );
    form(address, "/token", &body)
}

fn refresh(address: &str, client: &str, token: &str) -> Answer {
    let body = format!("grant_type=refresh_token&client_id={client}&refresh_token={token}");
    form(address, "/token", &body)
}

/// Signs in: the access token and the refresh token.
fn tokens(address: &str, client: &str, fields: &str) -> (String, String) {
    let sent = agree(address, client, fields);
    assert_eq!(sent.status, 303, "{}", sent.body);
    let answer = redeem(address, client, &sent.param("code").unwrap());
    assert_eq!(answer.status, 200, "{}", answer.body);
    both(&answer.json())
}

fn both(tokens: &Value) -> (String, String) {
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

/// Lists the tools with a token: the status.
fn list(address: &str, token: &str) -> u16 {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({})),
    });
    let request = message("POST", "/mcp", &call.to_string())
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/list")
        .with("Authorization", &format!("Bearer {token}"));
    send(address, request).status
}

fn c36(world: &World, secret: &str, networks: &str) {
    let text = C36.replace("SECRET", secret).replace("CIDRS", networks);
    world.write("project/auth.json", text);
}

/// A world with a user who signs in with a password.
fn with_user() -> World {
    let world = with(&format!("{ALL}{USERS}{}", fixture("f", &[])));
    let added = world.capstan(["user", "add", "ann", "--role", "dev"]).stdin("correct horse\n");
    assert_eq!(added.run().status, Some(0));
    world
}

const PASSWORD: &str = "&user=ann&password=correct+horse";

#[test]
fn c36_the_seeds_block_boots_registers_claude_and_chatgpt_and_lets_a_caller_in() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    c36(&world, "0123456789abcdef0123456789abcdef", "\"127.0.0.1/32\"");
    let state = json!({ "clients": { "mcp_old": { "client_id": "mcp_old",
        "redirect_uris": [CALLBACK], "grant_types": [], "created_at_unix": 0 } } });
    fs::create_dir_all(world.config().join("mcp")).unwrap();
    fs::write(world.config().join("mcp/auth_server.json"), state.to_string()).unwrap();
    let (mut gateway, address) = Gateway::listening(&world, "--config avelino:auth.json");
    gateway.says("a token of this gateway (https://mcp.example.com)");
    for (redirect, status) in [
        (CALLBACK, 201),
        ("https://chat.openai.com/aip/g-1/oauth/callback", 201),
        ("https://evil.test/cb", 400),
        ("https://claude.ai/api/mcp/other", 400),
        ("http://127.0.0.1:1/cb", 400),
    ] {
        assert_eq!(register(&address, redirect).status, status, "{redirect}");
    }
    // The client that avelino's program registered is known.
    let (access, _) = tokens(&address, "mcp_old", "");
    assert_eq!(list(&address, &access), 200);
    assert_eq!(list(&address, &format!("{access}x")), 401);
    gateway.signal(Signal::TERM);
    gateway.end();
    let log = fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
    assert!(log.contains("auth/grant") && log.contains("auth/register"), "{log}");
    assert!(!log.contains(&access), "the log has no token");
}

#[test]
fn c36_a_short_secret_or_no_network_stops_the_boot() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    for (secret, networks, piece) in [
        ("0123456789abcdef0123456789abcde", "\"127.0.0.1/32\"", "32 bytes"),
        ("0123456789abcdef0123456789abcdef", "", "trustedSourceCidrs"),
    ] {
        c36(&world, secret, networks);
        let ended = world.capstan("serve --http :0 --config avelino:auth.json".split(' ')).run();
        assert_eq!(ended.status, Some(3), "{piece}: {}", ended.stderr);
        assert!(ended.stderr.contains(piece), "{piece}: {}", ended.stderr);
    }
}

#[test]
fn a_killed_gateway_keeps_its_clients_and_refresh_tokens() {
    let world = with_user();
    let (mut gateway, address) = Gateway::listening(&world, "");
    let client = registered(&address);
    let (access, token) = tokens(&address, &client, PASSWORD);
    gateway.signal(Signal::KILL);
    gateway.child.wait().unwrap();
    let (_gateway, address) = Gateway::listening(&world, "");
    assert_eq!(list(&address, &access), 200, "the keys are the same");
    let answer = refresh(&address, &client, &token);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(list(&address, &both(&answer.json()).0), 200);
    assert_eq!(refresh(&address, &client, &token).status, 400, "it was replaced");
}

#[test]
fn two_gateways_on_one_file_never_redeem_one_code_twice() {
    let world = with_user();
    let (_first, one) = Gateway::listening(&world, "");
    let (_second, two) = Gateway::listening(&world, "");
    let client = registered(&one);
    for _ in 0..5 {
        let code = agree(&one, &client, PASSWORD).param("code").unwrap();
        let redeemed = thread::scope(|scope| {
            let both = [&one, &two, &one, &two].map(|address| {
                let (client, code) = (&client, &code);
                scope.spawn(move || redeem(address, client, code).status)
            });
            both.map(|thread| thread.join().unwrap())
        });
        assert_eq!(redeemed.iter().filter(|status| **status == 200).count(), 1, "{redeemed:?}");
    }
}

#[test]
fn a_wrong_password_gets_no_code_and_a_removed_user_no_call() {
    let world = with_user();
    let (_gateway, address) = Gateway::listening(&world, "");
    let client = registered(&address);
    for wrong in ["&user=ann&password=wrong+horse", "&user=bob&password=correct+horse", ""] {
        let refused = agree(&address, &client, wrong);
        assert_eq!((refused.status, refused.param("code")), (403, None), "{wrong}");
    }
    let (access, _) = tokens(&address, &client, PASSWORD);
    assert_eq!(list(&address, &access), 200);
    let removed = world.capstan(["user", "remove", "ann"]).run();
    assert!(removed.stderr.contains("ended 1 login"), "{}", removed.stderr);
    assert!(wait_until(|| list(&address, &access) == 401, LIMIT), "the token is refused");
    assert_eq!(agree(&address, &client, PASSWORD).status, 403);
}

#[test]
fn a_revoked_app_is_gone_with_its_logins() {
    let world = with_user();
    let (_gateway, address) = Gateway::listening(&world, "");
    let client = registered(&address);
    let (access, token) = tokens(&address, &client, PASSWORD);
    let listed = world.capstan(["auth", "clients", "list", "--json"]).run().ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["name"]), (&json!(client), &json!("App")));
    assert_eq!(world.capstan(["auth", "clients", "revoke", "madeup"]).run().status, Some(4));
    world.capstan(["auth", "clients", "revoke", &client]).run().ok();
    assert_eq!(refresh(&address, &client, &token).status, 400);
    assert!(wait_until(|| list(&address, &access) == 401, LIMIT), "the token is refused");
}

#[test]
fn the_state_of_avelinos_server_is_imported() {
    let world = with_user();
    let state = json!({
        "clients": { "mcp_old": { "client_id": "mcp_old", "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code"], "created_at_unix": 1_700_000_000 } },
        "refresh_tokens": { "old-token": { "token": "old-token", "client_id": "mcp_old",
            "subject": "ann", "roles": ["dev"], "expires_at_unix": 32_000_000_000_i64 } },
    });
    let path = world.write("old/auth_server.json", state.to_string());
    let variables = [("MCP_AUTH_SERVER_PATH", path.to_str().unwrap())];
    let (_gateway, address) = Gateway::listening_with(&world, &variables);
    let answer = refresh(&address, "mcp_old", "old-token");
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(list(&address, &both(&answer.json()).0), 200);
    let inline = [("MCP_AUTH_SERVER_CONFIG", "not the state of a server")];
    let mut refused = world.capstan(["serve", "--http", ":0"]);
    for (name, value) in inline {
        refused = refused.env(name, value);
    }
    let refused = refused.run();
    assert_eq!(refused.status, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("MCP_AUTH_SERVER_CONFIG"), "{}", refused.stderr);
}

#[test]
fn bodies_and_hosts_that_do_not_fit_are_refused() {
    let world = with_user();
    let (_gateway, address) = Gateway::listening(&world, "");
    let huge = json!({ "redirect_uris": vec![CALLBACK; 10_000] }).to_string();
    assert_eq!(send(&address, message("POST", "/register", &huge)).status, 413);
    let metadata = "/.well-known/oauth-authorization-server";
    let own = send(&address, message("GET", metadata, ""));
    assert_eq!(own.json()["issuer"], "https://mcp.example.com");
    // Clients in a browser may come from any origin; the pages for people may not.
    let cross = message("GET", metadata, "").with("Origin", "https://app.test");
    assert_eq!(send(&address, cross).status, 200);
    let cross = message("POST", "/mcp", "{}").with("Origin", "https://app.test");
    assert_eq!(send(&address, cross).status, 403);
}
