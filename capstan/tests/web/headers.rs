//! Headers that are known only when a server connects: references to secrets, and a helper.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::peer::{Answer, Peer, Seen};
use crate::stage::{ends, legacy, run, says};

const TOKEN: &str = "xyzzy-7261-token";

/// Tells everything it knows to whoever asks.
fn chatty(seen: &Seen) -> Answer {
    match seen.method() {
        "tools/call" => {
            let text = format!("{:?}", seen.headers);
            Answer::json(seen.result(&json!({"content": [{"type": "text", "text": text}]})))
        }
        _ => legacy(seen),
    }
}

#[track_caller]
fn world(peer: &Peer, more: &str) -> World {
    let world = World::new();
    let url = Value::from(format!("{}/mcp", peer.origin));
    world.write_user_config(&format!("[servers.s]\nurl = {url}\n{more}\n"));
    world
}

#[track_caller]
fn set(world: &World, value: &str) {
    let set = world.capstan(["secret", "set", "gh"]).env("CAPSTAN_KEYRING", "off");
    ends(set.stdin(value).run(), 0);
}

#[track_caller]
fn program(world: &World, script: &str) -> String {
    let path = world.write("bin/helper", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_stored_secret_goes_out_with_every_request_and_is_masked_everywhere_else() {
    let peer = Peer::new(chatty);
    let world =
        world(&peer, "headers = { Authorization = \"Bearer ${keyring:gh}\", X-Plain = \"plain\" }");
    set(&world, TOKEN);
    let called = ends(run(&world, &["call", "s__do", "--debug"]), 0);
    says(&called.stderr, "tools/call");
    says(&called.stderr, "***");
    assert!(!called.stderr.contains(TOKEN), "{}", called.stderr);
    let seen = peer.seen();
    assert!(seen.len() > 2, "{}", seen.len());
    for request in &seen {
        assert_eq!(request.header("authorization"), [format!("Bearer {TOKEN}")], "{request:?}");
        assert_eq!(request.header("x-plain"), ["plain"]);
    }
}

#[test]
fn an_unknown_secret_in_a_header_sends_nothing_and_says_what_to_do() {
    let peer = Peer::new(chatty);
    let world = world(&peer, "headers = { X-Key = \"keyring:gh\" }");
    let called = ends(run(&world, &["call", "s__do"]), 7);
    says(&called.stderr, "`servers.s.headers.X-Key` in ");
    says(&called.stderr, "needs the secret `gh`, which is not stored; run `capstan secret set gh`");
    assert_eq!(peer.seen().len(), 0);
}

#[test]
fn a_secret_can_be_a_part_of_the_address() {
    let peer = Peer::new(chatty);
    let world = World::new();
    let url = Value::from(format!("{}/${{keyring:gh}}/mcp", peer.origin));
    world.write_user_config(&format!("[servers.s]\nurl = {url}\n"));
    set(&world, TOKEN);
    let called = ends(run(&world, &["call", "s__do", "--debug"]), 0);
    assert!(!called.stderr.contains(TOKEN), "{}", called.stderr);
    assert!(peer.seen().iter().all(|seen| seen.path == format!("/{TOKEN}/mcp")));
}

#[test]
fn a_helper_prints_headers_and_learns_which_server_they_are_for() {
    let peer = Peer::new(chatty);
    let world = world(&peer, "");
    let script = format!(
        "printf '{{\"X-Name\": \"%s\", \"X-Url\": \"%s\", \"X-Key\": \"{TOKEN}\"}}' \
         \"$CAPSTAN_SERVER_NAME\" \"$CLAUDE_CODE_MCP_SERVER_URL\""
    );
    let helper = program(&world, &script);
    let url = format!("{}/mcp", peer.origin);
    world.write_user_config(&format!("[servers.s]\nurl = {url:?}\nheaders_helper = {helper:?}\n"));
    let called = ends(run(&world, &["call", "s__do", "--debug"]), 0);
    assert!(!called.stderr.contains(TOKEN), "{}", called.stderr);
    for request in peer.seen() {
        assert_eq!(request.header("x-name"), ["s"]);
        assert_eq!(request.header("x-url"), std::slice::from_ref(&url));
        assert_eq!(request.header("x-key"), [TOKEN]);
    }
}

#[test]
fn a_helper_without_usable_headers_sends_nothing() {
    for (script, reason) in [
        ("echo nothing", "did not print a JSON object of headers"),
        ("echo '[1]'", "did not print a JSON object of headers"),
        ("echo '{\"X-Key\": 1}'", "did not print a JSON object of headers"),
        ("echo '{\"X Key\": \"a\"}'", "printed a header that cannot be sent"),
        ("printf '%s' '{\"X-Key\": \"a\\nb\"}'", "printed a header that cannot be sent"),
        ("exit 1", "failed with exit code 1"),
    ] {
        let peer = Peer::new(chatty);
        let world = world(&peer, "");
        let helper = program(&world, script);
        let url = format!("{}/mcp", peer.origin);
        let config = format!("[servers.s]\nurl = {url:?}\nheaders_helper = [{helper:?}]\n");
        world.write_user_config(&config);
        let called = ends(run(&world, &["call", "s__do"]), 7);
        says(&called.stderr, reason);
        says(&called.stderr, "`servers.s.headers_helper` in ");
        assert_eq!(peer.seen().len(), 0, "{script}");
    }
}

/// What Google answers: an access token, then an ID token that lasts.
fn google(seen: &Seen) -> Answer {
    if seen.path.ends_with(":generateIdToken") {
        // {"alg":"RS256"}.{"exp":4102444800}
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";
        return Answer::json(json!({"token": token}).to_string());
    }
    Answer::json(json!({"access_token": "ya29.access-7261", "expires_in": 3599}).to_string())
}

#[test]
fn c57_the_id_token_of_a_service_account_is_sent_and_fetched_once() {
    let (peer, google) = (Peer::new(chatty), Peer::new(google));
    let world = World::new();
    let url = format!("{}/mcp", peer.origin);
    let file = world.write(
        "settings.json",
        json!({"mcpServers": {"s": {
            "httpUrl": url,
            "authProviderType": "service_account_impersonation",
            "targetAudience": "YOUR_IAP_CLIENT_ID.apps.googleusercontent.com",
            "targetServiceAccount": "your-sa@your-project.iam.gserviceaccount.com",
        }}})
        .to_string(),
    );
    let config = format!("llxprt:{}", file.display());
    let adc = json!({"type": "authorized_user", "client_id": "id", "client_secret": "s3cr3t-7261",
        "refresh_token": "1//refresh-7261"});
    world.write(".config/gcloud/application_default_credentials.json", adc.to_string());
    let run = world.capstan(["--config", &config, "call", "s__do", "--debug"]);
    let run = run.env("CAPSTAN_GOOGLE_TOKEN_URL", format!("{}/token", google.origin));
    let called = ends(run.env("CAPSTAN_GOOGLE_IAM_URL", &google.origin).run(), 0);
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";
    let seen = peer.seen();
    assert!(seen.len() > 2, "{}", seen.len());
    for request in &seen {
        assert_eq!(request.header("authorization"), [format!("Bearer {token}")], "{request:?}");
    }
    assert_eq!(google.seen().len(), 2, "one access token and one ID token");
    for secret in [token, "ya29.access-7261", "s3cr3t-7261", "1//refresh-7261"] {
        assert!(!called.stderr.contains(secret), "{secret}: {}", called.stderr);
    }
}

#[test]
fn a_server_elsewhere_gets_no_access_token_of_the_google_account() {
    let world = World::new();
    world.write_user_config(
        "[servers.s]\nurl = \"https://mcp.example.com/\"\n\
         auth_provider = { type = \"google_credentials\" }\n",
    );
    let called = ends(run(&world, &["call", "s__do"]), 7);
    says(&called.stderr, "is sent only to hosts of Google");
}
