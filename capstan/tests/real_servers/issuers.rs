//! Issuers of tokens that others wrote: the gateway accepts their tokens, and follows their keys.

use capstan_testkit::http::{exchange, message};
use capstan_testkit::process::command;
use capstan_testkit::{World, wait_until};
use serde_json::{Value, json};

use crate::remote::{Remote, beside};
use crate::{LIMIT, installed};

/// Asks an issuer's control: the body of its answer.
#[track_caller]
fn control(url: &str, path: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let answer = exchange(address, capstan_testkit::http::request("GET", path));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{answer}");
    // Node sends a short body in one chunk.
    let body = body.lines().max_by_key(|line| line.len()).unwrap_or_default();
    body.to_owned()
}

/// Lists the tools with a token: the status, and the names.
#[track_caller]
fn tools(address: &str, token: &str) -> (u16, Vec<String>) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let request = message("POST", "/mcp", &list.to_string())
        .and("MCP-Protocol-Version", "2026-07-28")
        .and("Mcp-Method", "tools/list")
        .and("Authorization", &format!("Bearer {token}"));
    let answer = exchange(address, request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let tools = body["result"]["tools"].as_array().cloned().unwrap_or_default();
    (status, tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
}

fn check(issuer: &str, more: &str) {
    let world = World::new();
    let remote = Remote::start(&world, command("node").arg(beside("issuer.mjs")).arg(issuer));
    let (url, controls) = remote.url.split_once(' ').unwrap();
    let python = installed("mcp-server-time");
    world.write_user_config(&format!(
        "[permissions]\nallow = [\"*\"]\n\n[gateway]\npublic_url = \"https://mcp.example.com\"\n\
         [gateway.auth]\nproviders = [\"jwt\"]\n[gateway.auth.jwt]\nissuer = {url:?}\n{more}\n\
         [access]\ndefault = \"deny\"\n[access.roles]\ndev = [{{ server = \"time\", access = \"*\" }}]\n\n\
         [servers.time]\ncommand = {python:?}\n"
    ));
    let mut serve = world.capstan(["serve", "--http", ":0"]).into_command();
    let gateway = Remote::start(&world, &mut serve);
    let address = gateway.url.strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp"));
    let address = address.unwrap();
    let old = control(controls, "/token");
    let seen = || tools(address, &old);
    assert!(wait_until(|| !seen().1.is_empty(), LIMIT), "{issuer}: {:?}", seen());
    assert!(seen().1.iter().all(|name| name.starts_with("time__")), "{:?}", seen());
    let mut forged = old.clone();
    forged.replace_range(old.len() - 9..old.len() - 5, "AAAA");
    assert_eq!(tools(address, &forged).0, 401, "{issuer}");
    control(controls, "/rotate");
    let new = control(controls, "/token");
    // The keys are fetched at most every ten seconds.
    assert!(wait_until(|| tools(address, &new).0 == 200, LIMIT), "{issuer}: the new key");
    assert_eq!(tools(address, &old).0, 401, "{issuer}: the withdrawn key");
}

#[test]
fn tokens_of_oauth2_mock_server_are_accepted_and_its_rotation_is_followed() {
    check("oauth2-mock-server", "");
}

#[test]
fn access_tokens_of_oidc_provider_are_accepted_and_its_rotation_is_followed() {
    check("oidc-provider", "access_tokens_only = true\nalgorithms = [\"ES256\"]");
}
