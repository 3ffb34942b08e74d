//! Accounts at npm oidc-provider: of callers at a server, and of users of the authorization server.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use capstan_testkit::World;
use capstan_testkit::http::{exchange, message, request};
use capstan_testkit::process::command;
use serde_json::{Value, json};

use crate::installed;
use crate::remote::Remote;

const CLIENT: &str = "http://127.0.0.1:9/cb";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/oidc-provider").join(name)
}

/// The authorization server with the MCP server behind it: its origin.
#[track_caller]
fn provider(world: &World) -> (Remote, String) {
    let mut node = command(installed("node"));
    node.arg(script("server.mjs")).arg("3600");
    node.env("CAPSTAN_DEV_DIR", std::env::var_os("CAPSTAN_DEV_DIR").unwrap_or_default());
    let server = Remote::start(world, &mut node);
    let origin = server.url.strip_suffix("/mcp").unwrap().to_owned();
    (server, origin)
}

/// Visits a page as a person with this account; where the browser ended.
#[track_caller]
fn visit(account: &str, url: &str) -> String {
    let mut browser = command(installed("node"));
    let ended = browser.arg(script("browser.mjs")).arg(url).env("ACCOUNT", account).output();
    let ended = ended.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

#[track_caller]
fn gateway(world: &World, words: &str) -> (Remote, String) {
    let mut serve =
        world.capstan(["serve", "--http", words]).env("CAPSTAN_KEYRING", "off").into_command();
    let gateway = Remote::start(world, &mut serve);
    let address = gateway.url.strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp"));
    let address = address.unwrap().to_owned();
    (gateway, address)
}

fn body(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default()
}

fn call(address: &str, token: &str, tool: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = message("POST", "/mcp", &call.to_string())
        .and("MCP-Protocol-Version", "2026-07-28")
        .and("Mcp-Method", "tools/call")
        .and("Mcp-Name", tool)
        .and("Authorization", &format!("Bearer {token}"));
    body(&exchange(address, request))
}

fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn two_callers_with_two_accounts_use_one_server_and_each_sees_its_own() {
    let world = World::new();
    let (_server, origin) = provider(&world);
    world.write_user_config(&format!(
        "[permissions]\nallow = [\"*\"]\n[gateway.auth]\nproviders = [\"bearer\"]\n\
         [gateway.auth.bearer.tokens]\ntoken-of-ann = \"ann\"\ntoken-of-bob = \"bob\"\n\
         [servers.it]\ntype = \"http\"\nurl = \"{origin}/mcp\"\nlogin = \"per-caller\"\n"
    ));
    let (_gateway, address) = gateway(&world, ":0");
    for (token, account) in [("token-of-ann", "ada"), ("token-of-bob", "bea")] {
        let refused = text(&call(&address, token, "it__whoami"));
        let page = refused.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        visit(account, page);
        assert_eq!(text(&call(&address, token, "it__whoami")), account);
    }
    assert_eq!(text(&call(&address, "token-of-ann", "it__whoami")), "ada");
    let seen = exchange(origin.strip_prefix("http://").unwrap(), request("GET", "/authorizations"));
    assert!(seen.contains("Bearer "), "{seen}");
    assert!(!seen.contains("token-of-"), "{seen}");
}

#[test]
fn a_user_of_the_authorization_server_signs_in_at_the_provider() {
    let world = World::new();
    let (_server, origin) = provider(&world);
    let provider = origin.strip_prefix("http://").unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let own = format!("http://127.0.0.1:{port}");
    let client = json!({
        "redirect_uris": [format!("{own}/authorize/callback")], "application_type": "native",
        "token_endpoint_auth_method": "none",
    });
    let client = exchange(provider, message("POST", "/reg", &client.to_string()));
    let client = body(&client)["client_id"].as_str().unwrap().to_owned();
    world.write_user_config(&format!(
        "[permissions]\nallow = [\"*\"]\n[gateway.auth]\nproviders = [\"oauth_as\"]\n\
         [gateway.auth.oauth_as]\nissuer_url = \"{own}\"\n\
         redirect_uri_allowlist = [\"http://127.0.0.1/*\"]\n\
         [gateway.auth.oauth_as.upstream]\nissuer = \"{origin}\"\nclient_id = \"{client}\"\n\
         scopes = [\"openid\"]\n"
    ));
    let (_gateway, address) = gateway(&world, &format!(":{port}"));
    let app = json!({ "redirect_uris": [CLIENT] });
    let app = exchange(&address, message("POST", "/register", &app.to_string()));
    let app = body(&app)["client_id"].as_str().unwrap().to_owned();
    let ended = visit(
        "ada",
        &format!(
            "{own}/authorize?response_type=code&client_id={app}&redirect_uri={CLIENT}&state=s\
             &code_challenge={CHALLENGE}&code_challenge_method=S256"
        ),
    );
    let code = ended.split(['?', '&']).find_map(|pair| pair.strip_prefix("code="));
    assert!(ended.starts_with(CLIENT) && code.is_some(), "{ended}");
    let code = code.unwrap();
    let form = format!(
        "grant_type=authorization_code&client_id={app}&code={code}&redirect_uri={CLIENT}\
         &code_verifier={VERIFIER}"
    );
    let redeem = request("POST", "/token").body(&form);
    let redeem = redeem.with("Content-Type", "application/x-www-form-urlencoded");
    let token = body(&exchange(&address, redeem))["access_token"].as_str().unwrap().to_owned();
    // The token is the caller's: a call gets an answer of the gateway and no 401.
    assert_eq!(call(&address, &token, "nothing__there")["error"]["code"], -32602);
    let audit = world.capstan(["audit", "--json"]).run().stdout;
    assert!(audit.contains("\"ada\""), "{audit}");
}
