//! Logins through a proxy, with certificates of a private authority.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use capstan_testkit::{Capstan, World};
use serde_json::{Value, json};

use crate::peer::{Answer, Peer, Seen};
use crate::proxy::Proxy;
use crate::stage::{ended, ends, legacy, says};
use crate::tls::private_for;

/// Names that no resolver knows, so that only the proxy can lead there.
const SERVER: &str = "mcp.invalid";
const ISSUER: &str = "auth.invalid";

/// A server and its authorization server. Every token is good for the calls of one process only.
fn guarded() -> impl Fn(&Seen) -> Answer + Send + Sync {
    let last = AtomicU32::new(0);
    // The token with which a session has begun.
    let used = AtomicU32::new(0);
    move |seen| {
        let path = |path: &str| format!("https://{ISSUER}{path}");
        let body = match seen.path.as_str() {
            "/.well-known/oauth-protected-resource/mcp" => json!({
                "resource": format!("https://{SERVER}/mcp"),
                "authorization_servers": [format!("https://{ISSUER}")],
            }),
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": format!("https://{ISSUER}"),
                "authorization_endpoint": path("/authorize"),
                "token_endpoint": path("/token"),
                "registration_endpoint": path("/register"),
                "device_authorization_endpoint": path("/device"),
                "revocation_endpoint": path("/revoke"),
                "code_challenge_methods_supported": ["S256"],
            }),
            "/register" => json!({ "client_id": "c" }),
            "/device" => json!({
                "device_code": "d", "user_code": "ABCD", "interval": 1,
                "verification_uri": path("/codes"),
            }),
            "/token" => {
                let number = last.fetch_add(1, Ordering::SeqCst) + 1;
                json!({
                    "access_token": format!("t{number}"), "token_type": "Bearer",
                    "refresh_token": "r",
                })
            }
            "/revoke" => json!({}),
            "/mcp" => {
                let number = last.load(Ordering::SeqCst);
                let token = format!("Bearer t{number}");
                let is_over =
                    seen.method() == "initialize" && used.swap(number, Ordering::SeqCst) == number;
                return if seen.header("authorization") == [token] && !is_over {
                    legacy(seen)
                } else {
                    Answer::status(401).with("www-authenticate", "Bearer")
                };
            }
            _ => return Answer::status(404),
        };
        Answer::json(body.to_string())
    }
}

/// A run that reaches other machines through the proxy only, and believes the authority.
fn through(world: &World, words: &[&str], proxy: &Proxy, authority: &Path) -> Capstan {
    let run = world.capstan(words).env("HTTPS_PROXY", &proxy.url);
    run.env("SSL_CERT_FILE", authority).env("CAPSTAN_KEYRING", "off")
}

#[test]
fn every_request_of_a_login_uses_the_proxy_and_the_private_authority() {
    let world = World::new();
    let (peer, authority) = private_for(&world, &[SERVER, ISSUER], guarded());
    let proxy = Proxy::to(peer.address);
    world.write_user_config(&format!("[servers.s]\nurl = \"https://{SERVER}/mcp\"\n"));
    for words in [
        &["login", "s", "--no-browser"][..],
        &["call", "s__do"],
        &["call", "s__do"],
        &["logout", "s", "--revoke"],
    ] {
        ends(ended(through(&world, words, &proxy, &authority)), 0);
    }
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/register",
        "/device",
        "/token",
        "/revoke",
        "/mcp",
    ] {
        assert!(peer.seen().iter().any(|seen| seen.path == path), "{path}");
    }
    let tokens = peer.seen().iter().filter(|seen| seen.path == "/token").count();
    assert!(tokens >= 2, "granted and renewed: {tokens}");
    let expected = [SERVER, ISSUER].map(|host| format!("CONNECT {host}:443"));
    let asked = proxy.asked();
    assert!(asked.iter().all(|line| expected.contains(line)), "{asked:?}");
    assert!(expected.iter().all(|line| asked.contains(line)), "{asked:?}");
}

#[test]
fn every_login_is_shown_once_also_one_that_no_entry_uses() {
    let world = World::new();
    let (peer, authority) = private_for(&world, &[SERVER, ISSUER], guarded());
    let proxy = Proxy::to(peer.address);
    world.write_user_config(&format!(
        "[servers.s]\nurl = \"https://{SERVER}/mcp\"\n\
         [servers.t]\nurl = \"https://{SERVER}/mcp/\"\nlogin = \"work\"\n"
    ));
    for login in ["work", "spare"] {
        let words = ["login", "s", "--no-browser", "--as", login];
        ends(ended(through(&world, &words, &proxy, &authority)), 0);
    }
    let words = ["login", "--status", "--json"];
    let shown = ends(ended(through(&world, &words, &proxy, &authority)), 0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let rows: Vec<_> = shown.as_array().unwrap().iter().collect();
    let names: Vec<_> =
        rows.iter().map(|row| (row["server"].as_str(), row["login"].as_str())).collect();
    assert_eq!(names, [(Some("s"), Some("spare")), (Some("t"), Some("work"))]);
}

#[test]
fn without_the_authority_no_request_of_a_login_is_sent() {
    let world = World::new();
    let (peer, _) = private_for(&world, &[SERVER, ISSUER], guarded());
    let proxy = Proxy::to(peer.address);
    world.write_user_config(&format!("[servers.s]\nurl = \"https://{SERVER}/mcp\"\n"));
    let run = world.capstan(["login", "s", "--no-browser"]).env("HTTPS_PROXY", &proxy.url);
    let refused = ends(ended(run.env("CAPSTAN_KEYRING", "off")), 7);
    says(&refused.stderr.to_lowercase(), "certificate");
    assert!(peer.seen().is_empty());
}

#[test]
fn tokens_of_google_accounts_are_fetched_through_the_proxy_too() {
    let world = World::new();
    let (google, authority) = private_for(&world, &[ISSUER], |seen| {
        let is_identity = seen.path.ends_with(":generateIdToken");
        let body: Value = if is_identity {
            json!({ "token": "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln" })
        } else {
            json!({ "access_token": "ya29.a", "expires_in": 3599 })
        };
        Answer::json(body.to_string())
    });
    let (proxy, server) = (Proxy::to(google.address), Peer::new(legacy));
    let url = format!("{}/mcp", server.origin);
    world.write_user_config(&format!(
        "[servers.s]\nurl = {url:?}\nauth_provider = {{ type = \"service_account_impersonation\", \
         target_audience = \"a\", target_service_account = \"sa@p.iam.gserviceaccount.com\" }}\n"
    ));
    let account = json!({"type": "authorized_user", "client_id": "id", "client_secret": "s",
        "refresh_token": "r"});
    world.write(".config/gcloud/application_default_credentials.json", account.to_string());
    let run = through(&world, &["call", "s__do"], &proxy, &authority);
    let run = run.env("CAPSTAN_GOOGLE_TOKEN_URL", format!("https://{ISSUER}/token"));
    let run = run.env("CAPSTAN_GOOGLE_IAM_URL", format!("https://{ISSUER}"));
    ends(ended(run), 0);
    assert_eq!(google.seen().len(), 2, "one access token and one ID token");
    let asked = proxy.asked();
    assert!(asked.iter().all(|line| *line == format!("CONNECT {ISSUER}:443")), "{asked:?}");
}

#[test]
fn a_file_of_logins_that_cannot_be_read_is_named_without_its_text() {
    let world = World::new();
    let peer = Peer::new(legacy);
    world.write_user_config(&format!("[servers.s]\nurl = \"{}/mcp\"\n", peer.origin));
    for (text, code) in [("{\"tokens\": \"s3cr3t-7261\"}", 3), ("s3cr3t-7261", 3), ("", 4)] {
        let file = world.write("auth.json", text).display().to_string();
        let refused =
            ends(ended(world.capstan(["login".to_owned(), format!("--import={file}")])), code);
        says(&refused.stderr, "auth.json");
        assert!(!refused.stderr.contains("s3cr3t"), "{}", refused.stderr);
    }
    let inline = world.capstan(["login", "--import"]).env("MCP_AUTH_CONFIG", "[s3cr3t-7261]");
    let refused = ends(ended(inline), 3);
    says(&refused.stderr, "MCP_AUTH_CONFIG");
    assert!(!refused.stderr.contains("s3cr3t"), "{}", refused.stderr);
    assert!(peer.seen().is_empty(), "nothing is sent");
}
