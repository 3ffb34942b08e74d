//! Logins in a terminal: a command asks, the person pastes where the browser was sent, and it goes on.

use capstan_http::Url;
use capstan_testkit::World;
use serde_json::json;

use crate::peer::{Answer, Peer, Seen};
use crate::{LIMIT, Terminal, wait_until};

const TERM: (&str, &str) = ("TERM", "xterm-256color");

/// A server that wants a login, and its authorization server.
fn guarded(origin: &str, seen: &Seen) -> Answer {
    let body = match (seen.path.as_str(), seen.method()) {
        ("/.well-known/oauth-protected-resource/mcp", _) => json!({
            "resource": format!("{origin}/mcp"), "authorization_servers": [origin],
            "scopes_supported": ["notes:read"],
        }),
        ("/.well-known/oauth-authorization-server", _) => json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "code_challenge_methods_supported": ["S256"],
        }),
        ("/register", _) => json!({ "client_id": "c" }),
        ("/token", _) => json!({ "access_token": "t0ken", "token_type": "Bearer" }),
        ("/mcp", _) if seen.header("authorization") != ["Bearer t0ken"] => {
            return Answer::status(401).with("www-authenticate", "Bearer");
        }
        ("/mcp", "initialize") => {
            return Answer::json(seen.result(&json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "peer", "version": "1"},
            })));
        }
        ("/mcp", "tools/list") => {
            return Answer::json(seen.result(&json!({
                "tools": [{"name": "do", "inputSchema": {"type": "object"}}],
            })));
        }
        ("/mcp", "tools/call") => {
            return Answer::json(seen.result(&json!({
                "content": [{"type": "text", "text": "done at last"}],
            })));
        }
        ("/mcp", _) if seen.verb == "POST" => return Answer::status(202),
        ("/mcp", _) => return Answer::status(405),
        _ => return Answer::status(404),
    };
    Answer::json(body.to_string())
}

fn world() -> (World, Peer) {
    let origin = std::sync::OnceLock::<String>::new();
    let origin = std::sync::Arc::new(origin);
    let own = std::sync::Arc::clone(&origin);
    let peer = Peer::new(move |seen| guarded(own.wait(), seen));
    origin.set(peer.origin.clone()).unwrap();
    let world = World::new();
    world.write_user_config(&format!("[servers.s]\nurl = \"{}/mcp\"\n", peer.origin));
    (world, peer)
}

/// The address of the page that was printed.
fn page(terminal: &Terminal, peer: &Peer) -> Option<Url> {
    let written = terminal.written();
    let begin = written.find(&format!("{}/authorize?", peer.origin))?;
    let rest = written.get(begin..)?;
    let end = rest.find(|c: char| c.is_whitespace())?;
    Url::parse(rest.get(..end)?).ok()
}

/// C73, DEC-7.
#[test]
fn c73_a_call_asks_for_the_login_takes_the_pasted_address_and_goes_on() {
    let (world, peer) = world();
    let mut terminal =
        Terminal::start_with(&world, "call s__do", &[TERM, ("CAPSTAN_KEYRING", "off")]);
    terminal.wait_for("`s` needs a login. Log in now?");
    terminal.press("\r");
    terminal.wait_for("notes:read");
    let mut found = None;
    let shown = wait_until(
        || {
            found = page(&terminal, &peer);
            found.is_some()
        },
        LIMIT,
    );
    assert!(shown, "no address of a page:\n{}", terminal.screen());
    let page = found.unwrap();
    let of = |name: &str| page.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    terminal.press("nonsense from elsewhere\r");
    terminal.wait_for("paste the address");
    terminal.press(&format!("{}?code=c0de&state={}\r", of("redirect_uri"), of("state")));
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert!(terminal.screen().contains("done at last"), "{}", terminal.screen());
    assert!(!terminal.written().contains("t0ken"), "no token is shown");
}

#[test]
fn a_person_who_does_not_want_to_log_in_gets_the_command_for_later() {
    let (world, _peer) = world();
    let mut terminal =
        Terminal::start_with(&world, "call s__do", &[TERM, ("CAPSTAN_KEYRING", "off")]);
    terminal.wait_for("Log in now?");
    terminal.press("n\r");
    assert_eq!(terminal.end(), 5, "{}", terminal.screen());
    assert!(terminal.screen().contains("capstan login s"), "{}", terminal.screen());
}

#[test]
fn the_address_is_also_shown_as_a_code_for_a_phone() {
    let (world, peer) = world();
    let words = "login s --no-browser --qr";
    let terminal = Terminal::start_with(&world, words, &[TERM, ("CAPSTAN_KEYRING", "off")]);
    assert!(wait_until(|| page(&terminal, &peer).is_some(), LIMIT), "{}", terminal.screen());
    assert!(wait_until(|| terminal.written().matches('█').count() > 100, LIMIT), "no code");
}
