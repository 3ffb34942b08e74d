//! Authentication of callers, from outside: who is let in, as whom, and what the others are told.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use capstan_testkit::World;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, http, modern, with};

/// Static tokens of two callers, as in row C34.
const BEARER: &str = "[gateway.auth]\nproviders = [\"bearer\"]\n\
    [gateway.auth.bearer.tokens]\n\"secret-abc\" = \"alice\"\n\
    \"secret-def\" = { subject = \"bob\", roles = [\"dev\", \"oncall\"] }\n\n";

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Sends a modern request with these further headers: the status and the body.
fn ask(address: &str, headers: &[&str], method: &str, params: Value) -> (u16, String) {
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str);
    let named = name.map_or_else(String::new, |name| format!("\r\nMcp-Name: {name}"));
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{named}"
    );
    for header in headers {
        head.push_str("\r\n");
        head.push_str(header);
    }
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern(params) });
    http(address, &head, &call.to_string())
}

fn list(address: &str, headers: &[&str]) -> (u16, String) {
    ask(address, headers, "tools/list", json!({}))
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// The names of the tools that a caller with this token sees.
fn tools(address: &str, token: &str) -> Vec<String> {
    let (status, body) = list(address, &[&bearer(token)]);
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    crate::stage::tool_names(&answer)
}

/// The callers in the audit log, with the methods of their entries.
fn audited(world: &World) -> Vec<(String, String, String)> {
    let ended = world.capstan(["audit", "--json"]).run();
    let rows: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = rows.as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| (text(row, "caller"), text(row, "method"), text(row, "item"))).collect()
}

#[test]
fn c34_each_token_is_its_caller_and_other_requests_are_refused() {
    let world = with(&format!("{ALL}{BEARER}{}", fixture("f", &[])));
    let (mut gateway, address) = Gateway::listening(&world, "");
    gateway.says("callers authenticate with a configured token (as alice, bob)");
    assert_eq!(list(&address, &[&bearer("secret-abc")]).0, 200);
    assert_eq!(list(&address, &[&bearer("secret-def")]).0, 200);
    for headers in [
        vec![],
        vec!["Authorization: Bearer wrong"],
        vec!["Authorization: Basic c2VjcmV0LWFiYw=="],
        vec!["Authorization: secret-abc"],
        vec!["X-Forwarded-User: alice"],
    ] {
        let (status, body) = list(&address, &headers);
        let expected = (401, "authentication is required\n".to_owned());
        assert_eq!((status, body), expected, "{headers:?}");
    }
    let in_query = "POST /mcp?access_token=secret-abc HTTP/1.1";
    assert_eq!(http(&address, in_query, "{}").0, 401, "a token in the address");
    for (path, status) in [("/health", 200), ("/ready", 200), ("/metrics", 401), (METADATA, 404)] {
        let (said, body) = http(&address, &format!("GET {path} HTTP/1.1"), "");
        assert_eq!(said, status, "{path}: {body}");
    }
    gateway.signal(Signal::TERM);
    gateway.end();
    let seen = audited(&world);
    let has =
        |caller: &str, method: &str| seen.iter().any(|one| one.0 == caller && one.1 == method);
    assert!(has("alice", "auth/login") && has("bob", "auth/login"), "{seen:?}");
    assert!(has("anonymous", "auth/failure"), "{seen:?}");
    let log = fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
    assert!(!log.contains("secret-") && !log.contains("access_token"), "{log}");
}

#[test]
fn c33_the_file_of_avelino_protects_the_gateway_and_its_mistakes_stop_it() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let serve = |auth: &str| {
        world.write("project/auth.json", format!("{{\"mcpServers\":{{}},\"serverAuth\":{auth}}}"));
        world.capstan("serve --http :0 --config avelino:auth.json".split(' ')).run()
    };
    for (auth, piece) in [
        (r#"{"providers":["bearer"]}"#, "`bearer` needs `serverAuth.bearer`"),
        (r#"{"providers":["oauth_as"]}"#, "`oauth_as` needs `serverAuth.oauthAs`"),
        (r#"{"provider":"bearer"}"#, "would leave the gateway open"),
        (r#"{"providers":["beerer"]}"#, "did you mean \"bearer\"?"),
        (
            r#"{"providers":["bearer"],"bearer":{"tokens":{"${UNSET_TOKEN}":"alice"}}}"#,
            "UNSET_TOKEN",
        ),
    ] {
        let ended = serve(auth);
        assert_eq!(ended.status, Some(3), "{auth}: {}", ended.stderr);
        assert!(ended.stderr.contains(piece), "{auth}: {}", ended.stderr);
    }
    let tokens = r#"{"providers":["bearer"],"bearer":{"tokens":{"secret-abc":"alice"}}}"#;
    world.write("project/auth.json", format!("{{\"mcpServers\":{{}},\"serverAuth\":{tokens}}}"));
    let (_gateway, address) = Gateway::listening(&world, "--config avelino:auth.json");
    assert_eq!(list(&address, &[]).0, 401);
    assert_eq!(list(&address, &[&bearer("secret-abc")]).0, 200);
    for open in ["{\"providers\":[]}", "{\"providers\":[\"none\"]}", "{}"] {
        world.write("project/auth.json", format!("{{\"mcpServers\":{{}},\"serverAuth\":{open}}}"));
        let (_gateway, address) = Gateway::listening(&world, "--config avelino:auth.json");
        assert_eq!(list(&address, &[]).0, 200, "{open}");
    }
}

#[test]
fn c35_a_proxy_on_this_machine_names_the_user_and_no_other_peer_does() {
    let auth = "[gateway.auth]\nproviders = [\"forwarded\"]\n\n";
    let access = "[access]\ndefault = \"deny\"\n[access.roles]\n\
                  B = [{ server = \"f\", access = \"*\" }]\n\n";
    let world = with(&format!("{ALL}{auth}{access}{}", fixture("f", &["--tools", "1"])));
    let (gateway, address) = Gateway::listening(&world, "");
    gateway.says("the header `x-forwarded-user` of a proxy in 127.0.0.0/8, ::1");
    let seen = |headers: &[&str]| {
        let (status, body) = list(&address, headers);
        (status, body.contains("f__echo"))
    };
    let user = "X-Forwarded-User: ann";
    assert_eq!(seen(&[user, "X-Forwarded-Groups:  a, ,B "]), (200, true));
    assert_eq!(seen(&[user, "X-Forwarded-Groups: b"]), (200, false), "another role");
    assert_eq!(seen(&[user]), (200, false), "no header, no roles");
    assert_eq!(seen(&["X-Forwarded-Groups: B"]).0, 401);
    assert_eq!(seen(&[user, "X-Forwarded-User: eve", "X-Forwarded-Groups: B"]).0, 401);
    let far = "[gateway.auth]\nproviders = [\"forwarded\"]\n\
               forwarded = { trusted_source_cidrs = [\"10.0.0.0/8\"] }\n\n";
    let world = with(&format!("{ALL}{far}{}", fixture("f", &[])));
    let (_gateway, address) = Gateway::listening(&world, "");
    assert_eq!(list(&address, &[user]).0, 401, "we are not the proxy");
}

#[test]
fn other_machines_may_reach_a_gateway_that_authenticates_and_its_metrics_may_not_be() {
    let world = with(BEARER);
    let gateway = Gateway::start(&world, "--http 0.0.0.0:0");
    gateway.says("callers authenticate with");
    gateway.says("tokens travel unencrypted");
    drop(gateway);
    for open in
        ["[gateway.auth]\nproviders = [\"tokens\", \"none\"]\n", "[gateway.auth]\nproviders = []\n"]
    {
        let ended = with(open).capstan("serve --http 0.0.0.0:0".split(' ')).run();
        assert_eq!(ended.status, Some(2), "{open}: {}", ended.stderr);
        assert!(ended.stderr.contains("[gateway.auth]"), "{}", ended.stderr);
    }
    let metrics = format!("[gateway]\nmetrics_listen = \"0.0.0.0:0\"\n{BEARER}");
    let ended = with(&metrics).capstan("serve --http :0".split(' ')).run();
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
}

#[test]
fn guesses_are_limited_and_the_caller_who_was_there_is_not_locked_out() {
    let world = with(&format!("{ALL}{BEARER}{}", fixture("f", &[])));
    let (_gateway, address) = Gateway::listening(&world, "");
    assert_eq!(list(&address, &[&bearer("secret-abc")]).0, 200);
    let mut statuses: Vec<u16> = Vec::new();
    while statuses.last() != Some(&429) && statuses.len() < 60 {
        statuses.push(list(&address, &[&bearer(&format!("guess-{}", statuses.len()))]).0);
    }
    assert!((10..40).contains(&statuses.len()), "{statuses:?}");
    assert_eq!(list(&address, &[&bearer("secret-abc")]).0, 200);
    assert_eq!(list(&address, &[&bearer("secret-def")]).0, 429, "a right guess");
    assert_eq!(list(&address, &[]).0, 401);
}

/// The table of the page that row C37 names: what each of three people may do.
#[test]
fn c37_three_callers_with_tokens_see_and_use_what_their_roles_allow() {
    let world = with(&format!(
        "{ALL}{}effect = {{ read = [\"echo\"], write = [\"tool_*\"] }}\n\
         expose = [\"echo\", \"tool_*\"]\n{}expose = [\"echo\"]\neffect = {{ read = [\"echo\"] }}\n",
        fixture("f", &["--tools", "2"]),
        fixture("g", &[])
    ));
    let auth = json!({
        "mcpServers": {},
        "serverAuth": {
            "providers": ["bearer"],
            "bearer": { "tokens": {
                "token-a": "alice",
                "token-b": { "subject": "bob", "roles": ["dev"] },
                "token-c": { "subject": "charlie", "roles": ["readonly"] },
                "token-d": { "subject": "dora", "roles": ["unknown"] },
            } },
            "acl": {
                "default": "deny",
                "roles": {
                    "admin": [{ "server": "*", "access": "*" }],
                    "dev": [
                        { "server": "f", "access": "*" },
                        { "server": "f", "access": "write", "tools": ["tool_1"], "deny": true },
                    ],
                    "readonly": [{ "server": "*", "access": "read" }],
                },
                "subjects": { "alice": { "roles": ["admin"] } },
            },
        },
    });
    world.write("project/auth.json", auth.to_string());
    let (_gateway, address) = Gateway::listening(&world, "--config avelino:auth.json");
    let all = ["f__echo", "f__tool_0", "f__tool_1", "g__echo"];
    for (token, may) in [
        ("token-a", vec!["f__echo", "f__tool_0", "f__tool_1", "g__echo"]),
        ("token-b", vec!["f__echo", "f__tool_0"]),
        ("token-c", vec!["f__echo", "g__echo"]),
        ("token-d", vec![]),
    ] {
        assert_eq!(tools(&address, token), may, "{token}");
        for name in all {
            let params = json!({ "name": name, "arguments": { "text": "hi" } });
            let call = |name: &str| {
                let params = json!({ "name": name, "arguments": params["arguments"] });
                ask(&address, &[&bearer(token)], "tools/call", params).1.replace(name, "NAME")
            };
            if may.contains(&name) {
                assert!(!call(name).contains("Unknown tool"), "{token} {name}: {}", call(name));
            } else {
                // Word for word what a tool that does not exist gets.
                assert_eq!(call(name), call(&name.replace("__", "__no_")), "{token} {name}");
            }
        }
        let (_, wrong) =
            ask(&address, &[&bearer(token)], "tools/call", json!({ "name": "f__ecko" }));
        for name in all.iter().filter(|name| !may.contains(name)) {
            assert!(!wrong.contains(name), "{token} is told of {name}: {wrong}");
        }
    }
}

#[test]
fn a_created_token_is_shown_once_accepted_listed_and_revoked() {
    let auth = "[gateway.auth]\nproviders = [\"tokens\"]\n\n";
    let access = "[access]\ndefault = \"deny\"\n[access.roles]\n\
                  dev = [{ server = \"f\", access = \"*\" }]\n\n";
    let world = with(&format!("{ALL}{auth}{access}{}", fixture("f", &[])));
    let run = |words: &str| {
        let ended = world.capstan(words.split(' ')).run();
        assert_eq!(ended.status, Some(0), "{words}: {}", ended.stderr);
        (ended.stdout, ended.stderr)
    };
    let (token, told) = run("auth token create ann --role dev --role ops --expires 90d");
    let token = token.trim();
    assert!(token.starts_with("capstan_") && token.len() > 64, "{token}");
    assert!(told.contains("not shown again") && told.contains("the role `ops`"), "{told}");
    let (other, _) = run("auth token create bob");
    let (_gateway, address) = Gateway::listening(&world, "");
    assert!(tools(&address, token).contains(&"f__echo".to_owned()));
    assert!(tools(&address, other.trim()).is_empty(), "without a role");
    assert_eq!(list(&address, &[&bearer(&token.replace("capstan_", ""))]).0, 401);
    let (listed, _) = run("auth token list --json");
    assert!(!listed.contains(token), "{listed}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (&listed[0]["caller"], &listed[0]["roles"]),
        (&json!("ann"), &json!(["dev", "ops"]))
    );
    let id = listed[0]["id"].as_str().unwrap();
    run(&format!("auth token revoke {id}"));
    let is_refused = || list(&address, &[&bearer(token)]).0 == 401;
    assert!(capstan_testkit::wait_until(is_refused, crate::stage::LIMIT), "it is still accepted");
    assert_eq!(list(&address, &[&bearer(other.trim())]).0, 200);
    let ended = world.capstan(["auth", "token", "revoke", id]).run();
    assert_eq!(ended.status, Some(4), "{}", ended.stderr);
    for words in ["auth token create operator", "auth token create ann --expires 0s"] {
        assert_eq!(world.capstan(words.split(' ')).run().status, Some(2), "{words}");
    }
    for file in fs::read_dir(world.state().join("capstan")).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap_or_default();
        let is_there = bytes.windows(token.len()).any(|part| part == token.as_bytes());
        assert!(!is_there, "the token is in {}", path.display());
    }
    let seen = audited(&world);
    for method in ["auth/create", "auth/login", "auth/revoke"] {
        assert!(seen.iter().any(|one| one.1 == method), "{method}: {seen:?}");
    }
}

#[test]
fn clients_are_told_where_to_get_a_token() {
    let auth = "[gateway]\npublic_url = \"https://mcp.example.com/mcp\"\n\
                [gateway.auth]\nproviders = [\"bearer\", \"jwt\"]\n\
                bearer = { tokens = { secret-abc = \"alice\" } }\n\
                jwt = { issuer = \"https://login.example.com\" }\n\n";
    let world = with(&format!("{ALL}{auth}{}", fixture("f", &[])));
    let (gateway, address) = Gateway::listening(&world, "");
    gateway.says("or a token of https://login.example.com");
    for (path, resource) in [
        ("", ""),
        ("/mcp", "/mcp"),
        ("/sse", "/sse"),
        ("/servers/f/mcp", "/servers/f/mcp"),
        // Whether there is such a server is not told.
        ("/servers/nix/mcp", "/servers/nix/mcp"),
    ] {
        let (status, body) = http(&address, &format!("GET {METADATA}{path} HTTP/1.1"), "");
        assert_eq!(status, 200, "{path}: {body}");
        let metadata: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(metadata["resource"], format!("https://mcp.example.com{resource}"), "{path}");
        assert_eq!(metadata["authorization_servers"], json!(["https://login.example.com"]));
    }
    for (path, status) in [("/nix", 404), ("/servers/f", 404)] {
        let (said, _) = http(&address, &format!("GET {METADATA}{path} HTTP/1.1"), "");
        assert_eq!(said, status, "{path}");
    }
    assert_eq!(http(&address, &format!("POST {METADATA} HTTP/1.1"), "{}").0, 405);
    for (path, token, error) in [("/mcp", None, false), ("/servers/f/mcp", Some("wrong"), true)] {
        let mut request = capstan_testkit::http::post(path, "{}");
        if let Some(token) = token {
            request = request.and("Authorization", &format!("Bearer {token}"));
        }
        let answer = capstan_testkit::http::exchange(&address, request);
        let challenge =
            answer.lines().find(|line| line.to_lowercase().starts_with("www-authenticate"));
        let challenge = challenge.unwrap();
        let metadata = format!("resource_metadata=\"https://mcp.example.com{METADATA}{path}\"");
        assert!(challenge.contains("Bearer ") && challenge.contains(&metadata), "{challenge}");
        assert_eq!(challenge.contains("error=\"invalid_token\""), error, "{challenge}");
    }
}

/// Carries bytes to a server and back: the address, and what was sent to the server.
fn tap(to: String) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let sent: Arc<Mutex<Vec<u8>>> = Arc::default();
    let kept = Arc::clone(&sent);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (Ok(server), kept) = (TcpStream::connect(&to), Arc::clone(&kept)) else { return };
            let (mut from, mut back) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (mut client, mut server) = (client, server);
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    kept.lock().unwrap().extend_from_slice(&buffer[..count]);
                    if server.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
            thread::spawn(move || drop(std::io::copy(&mut back, &mut client)));
        }
    });
    (address, sent)
}

#[test]
fn the_token_of_a_caller_is_never_sent_to_a_server() {
    let far = capstan_testkit::Remote::start("modern");
    let (host, path) = far.url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (address, sent) = tap(host.to_owned());
    let far = format!("[servers.far]\ntype = \"http\"\nurl = \"http://{address}/{path}\"\n");
    let world = with(&format!("{ALL}{BEARER}{far}"));
    let (_gateway, address) = Gateway::listening(&world, "");
    let listed =
        || tools(&address, "secret-abc").into_iter().find(|name| name.starts_with("far__"));
    assert!(capstan_testkit::wait_until(|| listed().is_some(), crate::stage::LIMIT));
    let call = json!({ "name": listed().unwrap(), "arguments": {} });
    let headers = [bearer("secret-abc"), "X-Forwarded-User: alice-user".to_owned()];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    assert_eq!(ask(&address, &headers, "tools/call", call).0, 200);
    let sent = String::from_utf8_lossy(&sent.lock().unwrap()).to_lowercase();
    assert!(sent.contains("tools/call"), "{sent}");
    assert!(!sent.contains("secret-abc") && !sent.contains("authorization:"), "{sent}");
    assert!(!sent.contains("alice-user"), "{sent}");
}
